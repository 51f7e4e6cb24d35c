//! A NATS client: publish and subscribe, request and reply, JetStream, key-value buckets, and object stores.
//!
//! A [`Client`] is a connection to a NATS server. Connect with [`ConnectOptions`], then publish and
//! subscribe:
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
//!     println!("{}: {}", order.subject(), String::from_utf8_lossy(order.payload()));
//! }
//! let reply = client.request("menu", "", Duration::from_secs(1)).await?;
//! client.drain().await?;
//! # Ok(()) }
//! ```
//!
//! # JetStream
//!
//! [`jetstream`] stores messages in streams and reads them with consumers. Key-value buckets and object
//! stores are streams that follow a convention.
//!
//! # Connections
//!
//! The client connects over TCP, with TLS if required, or over any byte stream ([`Client::over`]), such as a
//! pipe to a server in the same process. It does not reconnect. When the connection is lost, subscriptions
//! end and calls return [`ClientError::Disconnected`]. [`Client::events`] reports errors that belong to no
//! call, such as a missing permission.
//!
//! # Runtime and memory
//!
//! Each connection has one task, which needs a tokio runtime with I/O and time enabled. Calls append to a
//! buffer, which this task writes once per wake-up. So many small messages cost one system call. [`limits`]
//! bounds everything that a server or a slow reader can make grow.

mod address;
mod codec;
mod credentials;
mod driver;
mod embedded;
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
#[doc(hidden)]
pub mod subject;
mod subscription;
mod tls;
#[doc(hidden)]
pub mod url;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, broadcast, oneshot};
use tokio::time::timeout;

#[doc(hidden)]
pub use codec::decode_all;
#[doc(hidden)]
pub use credentials::Credentials;
#[doc(hidden)]
pub use embedded::{Inlet, Outgoing};
pub use error::{ClientError, Disconnect};
pub use headers::Headers;
pub use info::ServerInfo;
pub use message::{Message, OutgoingMessage};
pub use options::ConnectOptions;
pub use shared::Event;
pub use subscription::Subscription;

#[doc(hidden)]
pub use address::ServerAddress;
use codec::Decoder;
use driver::Driver;
use queue::SubscriptionQueue;
use shared::Shared;

/// The status of a message that the server sends if the subject of a request has no subscribers.
const STATUS_NO_RESPONDERS: u16 = 503;

/// A connection to a NATS server.
///
/// Clones share the connection. It closes when it is drained, or when the last clone and the last
/// subscription are dropped.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

/// The part of a connection that all [`Client`]s and subscriptions share.
struct Connection {
    shared: Arc<Shared>,
    /// Prefix of the inboxes of this connection.
    inbox: String,
    requests: OnceCell<()>,
}

impl Client {
    /// Connects over TCP to the first server of the list that accepts the connection.
    ///
    /// # Errors
    ///
    /// The error of the last server of the list.
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
        // Writes are already batched here, so the kernel should not wait for more bytes.
        stream.set_nodelay(true).map_err(unreachable)?;
        timeout(
            options.connect_timeout,
            Self::begin(stream, options, address),
        )
        .await
        .map_err(|_| ClientError::TimedOut)?
    }

    /// Performs the handshake over TCP, with TLS if the server or the options require it.
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
            return Err(handshake::protocol("bytes between INFO and TLS"));
        }
        let stream = tls::begin(stream, address, &options.tls).await?;
        Self::log_in(stream, decoder, info, options, address).await
    }

    /// Connects over a byte stream that is already open. The addresses in `options` are not used.
    ///
    /// # Errors
    ///
    /// When the server refuses the connection or does not reply in time.
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

    /// Publishes a payload.
    ///
    /// Returns when the message is in the write buffer, not when the server has received it; see
    /// [`flush`](Client::flush). Waits while the buffer is full.
    ///
    /// # Errors
    ///
    /// When the subject is invalid, the payload is too large, or the connection is closed.
    pub async fn publish(
        &self,
        subject: &str,
        payload: impl Into<Bytes>,
    ) -> Result<(), ClientError> {
        self.connection
            .publish(subject, None, None, &payload.into())
            .await
    }

    /// Publishes a message with a reply subject or headers. Otherwise it works like
    /// [`publish`](Client::publish).
    ///
    /// # Errors
    ///
    /// Those of [`publish`](Client::publish), and [`ClientError::HeadersUnsupported`].
    pub async fn publish_message(&self, message: &OutgoingMessage) -> Result<(), ClientError> {
        let OutgoingMessage {
            subject,
            reply,
            headers,
            payload,
        } = message;
        let headers = (!headers.is_empty()).then_some(headers);
        self.connection
            .publish(subject, reply.as_deref(), headers, payload)
            .await
    }

    /// Subscribes to the subjects that match `filter`.
    ///
    /// The subscription is active on the server when a later [`flush`](Client::flush) returns. A missing
    /// permission is reported as an [`Event`].
    ///
    /// # Errors
    ///
    /// When the filter is invalid or the connection is closed.
    pub async fn subscribe(&self, filter: &str) -> Result<Subscription, ClientError> {
        self.connection.subscribe(filter, None).await
    }

    /// Subscribes as a member of a queue group. Each message goes to one member of the group.
    ///
    /// # Errors
    ///
    /// Those of [`subscribe`](Client::subscribe).
    pub async fn queue_subscribe(
        &self,
        filter: &str,
        queue: &str,
    ) -> Result<Subscription, ClientError> {
        self.connection.subscribe(filter, Some(queue)).await
    }

    /// Publishes a request and waits for the first reply.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoResponders`], [`ClientError::TimedOut`], and those of
    /// [`publish`](Client::publish).
    pub async fn request(
        &self,
        subject: &str,
        payload: impl Into<Bytes>,
        limit: Duration,
    ) -> Result<Message, ClientError> {
        let message = OutgoingMessage {
            subject: subject.into(),
            payload: payload.into(),
            ..Default::default()
        };
        self.request_message(&message, limit).await
    }

    /// Publishes a request with headers and waits for the first reply. The field `reply` of the message is
    /// ignored.
    ///
    /// # Errors
    ///
    /// Those of [`request`](Client::request).
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

    /// Returns a new, unique subject for replies.
    pub fn new_inbox(&self) -> String {
        format!("{}.{}", self.connection.inbox, random_name())
    }

    /// Waits until the server has processed everything that was sent before.
    ///
    /// All messages that the server sent before its response are then in the queues of their subscriptions.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`].
    pub async fn flush(&self) -> Result<(), ClientError> {
        self.connection.flush().await
    }

    /// Measures the time between a PING and its PONG.
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

    /// Unsubscribes, waits for messages that are in transit, writes the buffer, and closes the connection.
    ///
    /// The subscriptions can still be read to their end.
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

    /// Returns the last INFO of the server.
    pub fn server_info(&self) -> Arc<ServerInfo> {
        self.connection.shared.info()
    }

    /// Returns a receiver of all later events. A receiver that is not read loses the oldest events
    /// ([`limits::EVENTS_MAX`]).
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.connection.shared.events.subscribe()
    }

    /// Returns the reason why the connection was closed, or `None` while it is open.
    pub fn disconnect(&self) -> Option<Disconnect> {
        self.connection.shared.disconnect()
    }

    /// Waits until the connection is closed, and returns the reason.
    pub async fn closed(&self) -> Disconnect {
        self.connection.shared.closed().await
    }
}

impl Connection {
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        headers: Option<&Headers>,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        subject::check_subject(subject)?;
        if let Some(reply) = reply {
            subject::check_subject(reply)?;
        }
        let message = Outgoing {
            subject,
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
        subject::check_filter(filter)?;
        queue_name.map_or(Ok(()), subject::check_queue)?;
        let queue = Arc::new(SubscriptionQueue::default());
        let sid = self
            .shared
            .with_routes(|routes| routes.add_subscription(Arc::clone(&queue)));
        // From here on, dropping the subscription removes it, even if this call is cancelled.
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
        // All requests share one subscription. The last token of a reply's subject is the number of the
        // request.
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
        self.publish(&message.subject, Some(&reply), headers, &message.payload)
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

/// A guard that removes a request when its call returns or is cancelled.
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

/// Returns a random name of 26 characters. Do not use it as a secret: it comes from the hash keys of the
/// standard library, which the system's random generator seeds.
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

/// Locks a mutex, even if a thread panicked while it held the lock. This is safe because no panic can
/// interrupt an update of the locked state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
