//! An asynchronous NATS client over any byte stream: TCP to any NATS server, or a pipe to a server
//! in the same process.
//!
//! ```no_run
//! use std::time::Duration;
//! use fanline_client::{Client, ConnectOptions};
//!
//! # async fn example() -> Result<(), fanline_client::ClientError> {
//! let client = Client::connect(&ConnectOptions::new("nats://localhost:4222")?).await?;
//! let mut orders = client.subscribe("orders.*").await?;
//! client.publish("orders.new", "one coffee").await?;
//! if let Some(order) = orders.next().await {
//!     println!("{}: {}", order.topic(), String::from_utf8_lossy(order.payload()));
//! }
//! let answer = client.request("menu", "", Duration::from_secs(1)).await?;
//! client.drain().await?;
//! # Ok(()) }
//! ```
//!
//! Each connection has one task, which needs a tokio runtime with I/O and time. Handles append to
//! a buffer that this task writes once per wake-up, so many small messages cost one system call;
//! nothing is sent by the caller's own thread. What a peer can make grow is bounded by
//! [`limits`].

mod address;
mod codec;
mod credentials;
mod driver;
mod error;
mod handshake;
mod headers;
mod info;
pub mod jetstream;
pub mod limits;
mod message;
mod options;
mod queue;
mod shared;
mod subscription;
mod tls;
#[doc(hidden)]
pub mod topics;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, broadcast, oneshot};
use tokio::time::timeout;

#[doc(hidden)]
pub use codec::heard;
#[doc(hidden)]
pub use credentials::Credentials;
pub use error::{ClientError, Disconnect};
pub use headers::Headers;
pub use info::ServerInfo;
pub use message::{Message, OutgoingMessage};
pub use options::ConnectOptions;
pub use shared::Event;
#[doc(hidden)]
pub use subscription::Inlet;
pub use subscription::Subscription;

#[doc(hidden)]
pub use address::{ServerAddress, parse_with_port};
use codec::Decoder;
use driver::Driver;
use queue::SubscriptionQueue;
use shared::Shared;

/// The status of an answer that says that nobody listens.
const STATUS_NO_RESPONDERS: u16 = 503;

/// A connection to a NATS server. Clones share it; it ends when it is drained, or when the last
/// clone and the last subscription are dropped.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

/// What handles and subscriptions keep alive.
struct Connection {
    shared: Arc<Shared>,
    /// Start of every inbox of this connection.
    inbox: String,
    requests: OnceCell<()>,
}

impl Client {
    /// Connects over TCP to the first server of the list that accepts.
    ///
    /// # Errors
    ///
    /// What the last server failed with.
    pub async fn connect(options: &ConnectOptions) -> Result<Client, ClientError> {
        let mut outcome = Err(ClientError::TimedOut);
        for address in &options.addresses {
            outcome = Self::connect_to(address, options).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn connect_to(
        address: &ServerAddress,
        options: &ConnectOptions,
    ) -> Result<Client, ClientError> {
        let unreachable = |source| ClientError::Unreachable {
            address: address.host_and_port(),
            source,
        };
        let stream = TcpStream::connect((address.host.as_str(), address.port));
        let stream = timeout(options.connect_timeout, stream)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        // Writes are batched here already: the kernel should not wait for more.
        stream.set_nodelay(true).map_err(unreachable)?;
        timeout(
            options.connect_timeout,
            Self::begin(stream, options, address),
        )
        .await
        .map_err(|_| ClientError::TimedOut)?
    }

    /// Begins over TCP, with TLS where one side asks for it.
    async fn begin(
        mut stream: TcpStream,
        options: &ConnectOptions,
        address: &ServerAddress,
    ) -> Result<Client, ClientError> {
        let mut decoder = Decoder::default();
        if options.tls.is_first {
            let mut stream = tls::begin(stream, address, &options.tls).await?;
            let info = handshake::read_info(&mut stream, &mut decoder).await?;
            return Self::log_in(stream, decoder, info, options, address).await;
        }
        let info = handshake::read_info(&mut stream, &mut decoder).await?;
        if !(info.tls_required || options.tls.is_wanted || address.is_tls) {
            return Self::log_in(stream, decoder, info, options, address).await;
        }
        if !decoder.buffer.is_empty() {
            return Err(handshake::protocol("something between INFO and TLS"));
        }
        let stream = tls::begin(stream, address, &options.tls).await?;
        Self::log_in(stream, decoder, info, options, address).await
    }

    /// Speaks NATS over a stream that is already open. The addresses in `options` are not used.
    ///
    /// # Errors
    ///
    /// When the server refuses or does not answer in time.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        options: &ConnectOptions,
    ) -> Result<Client, ClientError> {
        let address = options.addresses.first().cloned().unwrap_or_default();
        Self::start(stream, options, &address).await
    }

    async fn start(
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        options: &ConnectOptions,
        address: &ServerAddress,
    ) -> Result<Client, ClientError> {
        let hands = async {
            let mut decoder = Decoder::default();
            let info = handshake::read_info(&mut stream, &mut decoder).await?;
            if info.tls_required {
                return Err(ClientError::TlsRequired);
            }
            Self::log_in(stream, decoder, info, options, address).await
        };
        let hands = timeout(options.connect_timeout, hands).await;
        hands.map_err(|_| ClientError::TimedOut)?
    }

    async fn log_in(
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        decoder: Decoder,
        info: ServerInfo,
        options: &ConnectOptions,
        address: &ServerAddress,
    ) -> Result<Client, ClientError> {
        let (info, decoder) =
            handshake::log_in(&mut stream, decoder, info, options, address).await?;
        let shared = Arc::new(Shared::new(info));
        tokio::spawn(Driver::new(stream, decoder, Arc::clone(&shared)).run());
        let inbox = format!("_INBOX.{}", random_name());
        let connection = Connection {
            shared,
            inbox,
            requests: OnceCell::new(),
        };
        Ok(Client {
            connection: Arc::new(connection),
        })
    }

    /// Publishes a payload. Returns once it is buffered, which is when there is room, not when the
    /// server has it: see [`flush`](Client::flush).
    ///
    /// # Errors
    ///
    /// When the topic or the size is not acceptable, or the connection is gone.
    pub async fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<(), ClientError> {
        self.connection
            .publish(topic, None, None, &payload.into())
            .await
    }

    /// Publishes a message with a reply topic or headers; otherwise as [`publish`](Client::publish).
    ///
    /// # Errors
    ///
    /// As [`publish`](Client::publish), and when the server takes no headers.
    pub async fn publish_message(&self, message: &OutgoingMessage) -> Result<(), ClientError> {
        let OutgoingMessage {
            topic,
            reply,
            headers,
            payload,
        } = message;
        let headers = (!headers.is_empty()).then_some(headers);
        self.connection
            .publish(topic, reply.as_deref(), headers, payload)
            .await
    }

    /// Sends what was [encoded](Outgoing::encode) if there is room for it now, and says whether there was.
    #[doc(hidden)]
    pub fn try_send(&self, encoded: &[u8]) -> Result<bool, ClientError> {
        self.send_within(limits::WRITE_BUFFER_BYTES_MAX, encoded)
    }

    /// Sends what was encoded as long as no more than `bytes_max` wait, and says whether it did. For
    /// the thread that makes the room, which cannot wait for it.
    #[doc(hidden)]
    pub fn send_within(&self, bytes_max: usize, encoded: &[u8]) -> Result<bool, ClientError> {
        let append = &mut |outgoing: &mut shared::Outgoing| {
            outgoing.buffer.extend_from_slice(encoded);
        };
        self.connection.shared.try_send_within(bytes_max, append)
    }

    /// Sends what was encoded as soon as there is room.
    #[doc(hidden)]
    pub async fn send(&self, encoded: &[u8]) -> Result<(), ClientError> {
        let append = |outgoing: &mut shared::Outgoing| outgoing.buffer.extend_from_slice(encoded);
        self.connection.shared.send(append).await
    }

    /// Subscribes to every message that matches `filter`. The server knows of it once a later
    /// [`flush`](Client::flush) returns. A missing permission shows as an [`Event`].
    ///
    /// # Errors
    ///
    /// When the filter is not acceptable, or the connection is gone.
    pub async fn subscribe(&self, filter: &str) -> Result<Subscription, ClientError> {
        self.connection.subscribe(filter, None).await
    }

    /// Subscribes as a member of a queue group: each message goes to one member.
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Client::subscribe).
    pub async fn queue_subscribe(
        &self,
        filter: &str,
        queue: &str,
    ) -> Result<Subscription, ClientError> {
        self.connection.subscribe(filter, Some(queue)).await
    }

    /// Publishes and waits for the first answer.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoResponders`], [`ClientError::TimedOut`], and those of
    /// [`publish`](Client::publish).
    pub async fn request(
        &self,
        topic: &str,
        payload: impl Into<Bytes>,
        limit: Duration,
    ) -> Result<Message, ClientError> {
        let message = OutgoingMessage {
            topic: topic.into(),
            payload: payload.into(),
            ..Default::default()
        };
        self.request_message(&message, limit).await
    }

    /// [`request`](Client::request) with headers; the message's own `reply` is not used.
    ///
    /// # Errors
    ///
    /// As [`request`](Client::request).
    pub async fn request_message(
        &self,
        message: &OutgoingMessage,
        limit: Duration,
    ) -> Result<Message, ClientError> {
        let answer = timeout(limit, self.connection.request(message)).await;
        let answer = answer.map_err(|_| ClientError::TimedOut)??;
        if answer.status() == Some(STATUS_NO_RESPONDERS) && answer.payload().is_empty() {
            return Err(ClientError::NoResponders);
        }
        Ok(answer)
    }

    /// A new topic for answers, which nobody else uses.
    pub fn new_inbox(&self) -> String {
        format!("{}.{}", self.connection.inbox, random_name())
    }

    /// Waits until the server has handled all that was sent before, and until all that it had sent
    /// before it answered has been handed to the subscriptions.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`].
    pub async fn flush(&self) -> Result<(), ClientError> {
        self.connection.flush().await
    }

    /// How long a PING takes to be answered.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`].
    pub async fn rtt(&self) -> Result<Duration, ClientError> {
        self.flush().await?;
        let start = Instant::now();
        self.flush().await?;
        Ok(start.elapsed())
    }

    /// Ends every subscription after what was on its way, sends what is buffered, and closes. The
    /// subscriptions can still be read to their end.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`] when the connection was lost before.
    pub async fn drain(&self) -> Result<(), ClientError> {
        let shared = &self.connection.shared;
        for sid in shared.with_routes(|routes| routes.subscription_sids()) {
            shared
                .send(|outgoing| codec::encode_unsubscribe(&mut outgoing.buffer, sid, None))
                .await?;
        }
        self.flush().await?;
        shared.finish();
        shared.closed().await;
        Ok(())
    }

    /// What the server last told about itself.
    pub fn server_info(&self) -> Arc<ServerInfo> {
        self.connection.shared.info()
    }

    /// How often it has told that anew: as long as it is the same, so is [`server_info`](Client::server_info).
    #[doc(hidden)]
    pub fn server_info_changes(&self) -> u64 {
        self.connection.shared.info_changes()
    }

    /// What happens from now on. A receiver that does not look misses the oldest
    /// ([`limits::EVENTS_MAX`]).
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.connection.shared.events.subscribe()
    }

    /// Why the connection is gone, if it is.
    pub fn disconnect(&self) -> Option<Disconnect> {
        self.connection.shared.disconnect()
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> Disconnect {
        self.connection.shared.closed().await
    }
}

/// A message on its way out, borrowed from wherever it lies. Whoever makes it has checked the names.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    pub topic: &'a str,
    pub reply: Option<&'a str>,
    pub headers: Option<&'a Headers>,
    pub payload: &'a [u8],
}

impl Outgoing<'_> {
    /// Whether a server that says this of itself takes it.
    pub fn check(&self, info: &ServerInfo) -> Result<(), ClientError> {
        if self.headers.is_some() && !info.headers {
            return Err(ClientError::HeadersUnsupported);
        }
        let bytes = self.headers.map_or(0, Headers::encoded_bytes) + self.payload.len();
        if info.max_payload > 0 && bytes > info.max_payload {
            return Err(ClientError::PayloadTooLarge {
                bytes,
                bytes_max: info.max_payload,
            });
        }
        Ok(())
    }

    /// How much its line has of what a server allows one to have: all behind the verb.
    pub fn line_bytes(&self) -> usize {
        let head_bytes = self.headers.map_or(0, Headers::encoded_bytes);
        let field_bytes = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 2;
        self.topic.len()
            + self.reply.map_or(0, |reply| reply.len() + 1)
            + self.headers.map_or(0, |_| field_bytes(head_bytes))
            + field_bytes(head_bytes + self.payload.len())
    }

    /// Appends it as it goes over the wire.
    pub fn encode(&self, buffer: &mut BytesMut) {
        codec::encode_publish(buffer, self.topic, self.reply, self.headers, self.payload);
    }
}

impl Connection {
    async fn publish(
        &self,
        topic: &str,
        reply: Option<&str>,
        headers: Option<&Headers>,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        topics::check_topic(topic)?;
        if let Some(reply) = reply {
            topics::check_topic(reply)?;
        }
        let message = Outgoing {
            topic,
            reply,
            headers,
            payload,
        };
        message.check(&self.shared.info())?;
        self.shared
            .send(|outgoing| message.encode(&mut outgoing.buffer))
            .await
    }

    async fn subscribe(
        self: &Arc<Self>,
        filter: &str,
        queue_name: Option<&str>,
    ) -> Result<Subscription, ClientError> {
        topics::check_filter(filter)?;
        queue_name.map_or(Ok(()), topics::check_queue)?;
        let queue = Arc::new(SubscriptionQueue::default());
        let sid = self
            .shared
            .with_routes(|routes| routes.add_subscription(Arc::clone(&queue)));
        // From here on it cleans up after itself, also when this call is cancelled.
        let connection = Arc::clone(self);
        let subscription = Subscription {
            connection,
            queue,
            sid,
            batch: VecDeque::new(),
        };
        self.send_subscribe(filter, queue_name, sid).await?;
        Ok(subscription)
    }

    async fn send_subscribe(
        &self,
        filter: &str,
        queue: Option<&str>,
        sid: u64,
    ) -> Result<(), ClientError> {
        self.shared
            .send(|outgoing| codec::encode_subscribe(&mut outgoing.buffer, filter, queue, sid))
            .await
    }

    async fn request(&self, message: &OutgoingMessage) -> Result<Message, ClientError> {
        // One subscription serves every request: the last token of an answer's topic says whose
        // it is.
        self.requests
            .get_or_try_init(async || {
                let sid = self.shared.with_routes(|routes| routes.add_request_inbox());
                self.send_subscribe(&format!("{}.r.*", self.inbox), None, sid)
                    .await
            })
            .await?;
        let (id, answer) = self.shared.with_routes(|routes| routes.add_request());
        let _guard = RequestGuard {
            shared: &self.shared,
            id,
        };
        let reply = format!("{}.r.{id}", self.inbox);
        let headers = (!message.headers.is_empty()).then_some(&message.headers);
        self.publish(&message.topic, Some(&reply), headers, &message.payload)
            .await?;
        answer.await.map_err(|_| self.gone())
    }

    async fn flush(&self) -> Result<(), ClientError> {
        let (sender, pong) = oneshot::channel();
        let mut sender = Some(sender);
        self.shared
            .send(|outgoing| {
                outgoing.pongs.push_back(sender.take());
                outgoing.buffer.extend_from_slice(b"PING\r\n");
            })
            .await?;
        pong.await.map_err(|_| self.gone())
    }

    fn gone(&self) -> ClientError {
        ClientError::Disconnected(self.shared.disconnect().unwrap_or(Disconnect::Closed))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.finish();
    }
}

/// Forgets a request that was answered or given up.
struct RequestGuard<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.shared
            .with_routes(|routes| routes.remove_request(self.id));
    }
}

/// Twenty-six letters that nobody else has: the standard library's hash keys come from the
/// system's randomness, which saves a dependency. Not a secret.
fn random_name() -> String {
    let [high, low] = [0, 1].map(|salt| RandomState::new().hash_one(salt));
    let mut number = u128::from(high) << 64 | u128::from(low);
    let mut name = String::with_capacity(26);
    for _ in 0..26 {
        let digit = u8::try_from(number & 31).unwrap_or_default();
        name.push(char::from(if digit < 26 {
            b'A' + digit
        } else {
            b'2' + digit - 26
        }));
        number >>= 5;
    }
    name
}

/// A lock whose holder panicked is still good: no update here is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
