//! The bridge binds subjects, replay subjects, and hubs of the [`fanline`] library to subjects of an embedded server, in
//! either direction.
//!
//! A program publishes once. The emitter calls observers in the same process within nanoseconds, and NATS and
//! WebSocket clients receive the message within microseconds. Late subscribers receive a replay from memory
//! or from a stream's log. Slow consumers of a hub delay its producers.
//!
//! ```
//! use fanline::{Replay, ReplaySubject};
//! use fanline_server::bridge::{Encode, Json};
//! use fanline_server::{Options, Server};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Tick { symbol: String, price: f64 }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(Options { port: 0, ..Options::default() })?;
//!
//! // Values of the program go to `ticks.MUG`, `ticks.CUP` and so on.
//! let ticks = ReplaySubject::<Tick>::new(Replay::many(100));
//! let codec = Json.to(|tick: &Tick| format!("ticks.{}", tick.symbol));
//! let binding = server.publish_from("ticks.>", &ticks, codec)?;
//!
//! // Messages to `orders.*`, published by clients or by this program.
//! let orders = server.observe("orders.*")?;
//! let guard = orders.subscribe(|order| println!("{}: {} bytes", order.subject(), order.payload().len()));
//!
//! ticks.next(Tick { symbol: "MUG".into(), price: 9.5 });
//! # drop((binding, guard));
//! # server.shutdown();
//! # Ok(()) }
//! ```
//!
//! # Bindings
//!
//! | from | to | method |
//! | --- | --- | --- |
//! | a subject, a replay subject, a source, a chain of operators | subjects of the server | [`publish_from`](Bridge::publish_from) |
//! | the receiving end of a hub, or any `Stream` | subjects of the server; the hub's producer waits for the server | [`publish_stream`](Bridge::publish_stream) |
//! | one message | a subject of the server | [`publish`](Bridge::publish) |
//! | subjects of the server | a source, of messages or of values | [`observe`](Bridge::observe), [`observe_as`](Bridge::observe_as) |
//! | subjects of the server | a `Stream`, to which the producing end of a hub can be [attached](fanline::hub::MergeSender::attach) | [`messages`](Bridge::messages) |
//! | a stream's log | a source with replay | [`stream`](Bridge::stream), then [`replay`](BridgedStream::replay) |
//! | a stream's log | a `Stream`; unread messages stay in the log | [`stream`](Bridge::stream), then [`records`](BridgedStream::records) |
//!
//! These are methods of a [`Bridge`]. A server's [`Handle`](crate::Handle) has the same methods, and uses one
//! shared bridge without credentials. If the server requires credentials, open a bridge with
//! [`Handle::bridge_with`](crate::Handle::bridge_with). This bridge has the permissions of its user.
//!
//! # Operation and cost
//!
//! A bridge is one connection in this process, like that of [`Handle::client`](crate::Handle::client). One
//! thread named `bridge` serves the connection. The bridge opens at its first use, and closes when its last
//! handle, binding, and source are dropped. The server treats the connection like any other client: limits,
//! permissions, monitoring, and order are the same.
//!
//! Messages between two ends of one bridge bypass the server. The publisher's thread calls the observers with
//! the payload itself ([`Raw`] bytes are not copied), and the server sends no echo. If the server has users
//! with permissions or accounts with mappings ([`Auth::Directory`](crate::Auth::Directory)), it may rename or
//! reject messages. Then all messages pass through the server.
//!
//! The emitter's thread encodes a value once. If a source is bound to one subject, and the subject has no
//! subscribers, values are not encoded. A subscriber whose subscription the server has confirmed misses
//! nothing. [`next_slice`](fanline::Producer::next_slice) sends many values at once.
//!
//! # Slow consumers
//!
//! | consumer | effect |
//! | --- | --- |
//! | an observer in this process | blocks the thread that calls it: the publisher's, or the `bridge` thread for messages of other clients. [`observe_on`](fanline::ObservableExt::observe_on) avoids this |
//! | a subscriber over the network | the server delays publishers by a few milliseconds at a time, and drops the subscriber at 64 MiB of pending bytes. [`WhenFull`] decides whether the emitter waits until then, or values are skipped |
//! | an observer that waits for its own bridge, such as for a full hub whose [`publish_stream`](Bridge::publish_stream) uses the same bridge | waits forever. Let the hub read [`messages`](Bridge::messages) instead, or use two bridges ([`Handle::bridge_with`](crate::Handle::bridge_with)) |
//! | a reader of [`Messages`] | messages wait in a bounded queue; messages that do not fit are dropped and counted |
//! | a reader of [`Records`] | messages stay in the log |
//! | the server, for a hub's receiving end | the hub fills, and its producer waits, or follows the hub's policy |
//!
//! # Errors
//!
//! Immediate errors are returned by the call. Later errors skip the message and are reported as a [`Fault`]
//! by [`faults`](Bridge::faults). Examples are a message that cannot be decoded, a codec that panics, and a
//! publish that is not permitted. Faults that nothing observes are logged. The bridge does not wait until
//! streams of the server have stored the messages, and does not report messages that a stream rejects, for
//! instance because it is full. If every message must be stored, publish with
//! [`JetStream::publish`](crate::client::jetstream::JetStream::publish), which waits for the acknowledgement.
//! When the server stops, sources complete, and the last fault is [`Fault::Closed`].

mod blocking;
mod codec;
mod connection;
mod fault;
mod handle;
mod observe;
mod publish;
mod receivers;
mod stream;

use std::sync::Arc;

use bytes::Bytes;
use fanline::{Guard, IntoObservable, Observable, Source};
use futures_core::Stream;

#[cfg(feature = "msgpack")]
pub use codec::MessagePack;
pub use codec::{BoxError, Decode, Draft, Encode, Json, Raw, To};
pub use fault::{BridgeError, Fault};
pub use observe::Messages;
pub use publish::{Binding, WhenFull};
pub use stream::{BridgedStream, Records};

use crate::client::{Message, OutgoingMessage};
use connection::Connection;
use publish::Publisher;

/// A connection between this process and its server for all bindings. Clones share the connection. See the
/// [module](self).
#[derive(Clone)]
pub struct Bridge {
    connection: Arc<Connection>,
}

impl Bridge {
    /// Publishes the values of a source until the binding is dropped or the source ends.
    ///
    /// `subject` is the subject of all values. If it has wildcards, the codec sets each value's subject
    /// ([`Encode::to`]), and a subject that does not match is a [`Fault`].
    ///
    /// Retained values of a replay subject are published before this returns.
    ///
    /// # Errors
    ///
    /// Fails if the subject is invalid, or the bridge is closed.
    pub fn publish_from<S, C>(
        &self,
        subject: &str,
        source: &S,
        codec: C,
    ) -> Result<Binding, BridgeError>
    where
        S: IntoObservable + Clone,
        S::Item: 'static,
        S::Error: 'static,
        C: Encode<S::Item>,
    {
        self.publish_from_with(subject, source, codec, WhenFull::default())
    }

    /// Publishes the values of a source. `when_full` decides what happens while the server accepts less than
    /// the source emits.
    ///
    /// # Errors
    ///
    /// Fails like [`publish_from`](Self::publish_from).
    pub fn publish_from_with<S, C>(
        &self,
        subject: &str,
        source: &S,
        codec: C,
        when_full: WhenFull,
    ) -> Result<Binding, BridgeError>
    where
        S: IntoObservable + Clone,
        S::Item: 'static,
        S::Error: 'static,
        C: Encode<S::Item>,
    {
        let publisher = Publisher::new(Arc::clone(&self.connection), subject, codec, when_full)?;
        let binding = publisher.binding();
        let observable = source.clone().into_observable();
        Ok(binding(observable.subscribe_with(publisher)))
    }

    /// Publishes the items of a stream, such as the receiving end of a hub. The stream is read as fast as the
    /// server accepts items, so a hub's producer waits for the server.
    ///
    /// ```
    /// use fanline_server::bridge::Raw;
    /// use fanline_server::{Options, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::start(Options { port: 0, ..Options::default() })?;
    /// let (hub, receiver) = fanline::hub::merge::<String>(64);
    /// let binding = server.bridge()?.publish_stream("lines", receiver, Raw)?;
    /// let mut producer = hub.producer();
    /// producer.blocking_send("a line".to_owned())?; // waits while 64 of them wait
    /// # drop(binding);
    /// # server.shutdown();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`publish_from`](Self::publish_from).
    pub fn publish_stream<S, C>(
        &self,
        subject: &str,
        stream: S,
        codec: C,
    ) -> Result<Binding, BridgeError>
    where
        S: Stream + Send + 'static,
        S::Item: Send + Sync + 'static,
        C: Encode<S::Item>,
    {
        let connection = Arc::clone(&self.connection);
        let publisher = Publisher::new(connection, subject, codec, WhenFull::Wait)?;
        let binding = publisher.binding();
        let task = self.connection.inner.spawn(publisher.pump(stream));
        Ok(binding(Guard::new(move || task.abort())))
    }

    /// Publishes a message, for instance as a reply. When this returns, observers in this process have
    /// received the message. It may still be buffered before it is sent to the server.
    ///
    /// # Errors
    ///
    /// Fails if the subject or size is invalid, or the bridge is closed.
    pub fn publish(&self, subject: &str, payload: impl Into<Bytes>) -> Result<(), BridgeError> {
        self.publish_message(OutgoingMessage {
            subject: subject.to_owned(),
            payload: payload.into(),
            ..OutgoingMessage::default()
        })
    }

    /// Publishes a message with a reply subject or headers.
    ///
    /// # Errors
    ///
    /// Fails like [`publish`](Self::publish), or if the server does not support headers.
    pub fn publish_message(&self, message: OutgoingMessage) -> Result<(), BridgeError> {
        publish::publish(&self.connection, message)
    }

    /// Returns a source of messages that match a filter, from all publishers.
    ///
    /// The source receives all messages that are published after this method has returned. The subscription
    /// ends within a second after the last source and observer are dropped.
    ///
    /// Observers are called one at a time. The publishing thread calls them for messages of this process, and
    /// the bridge's thread for messages of clients. An observer may store messages: a clone of a [`Message`]
    /// copies no bytes.
    ///
    /// # Errors
    ///
    /// Fails if the filter is invalid or not permitted, or the bridge is closed.
    pub fn observe(&self, filter: &str) -> Result<Source<Message>, BridgeError> {
        self.observe_as(filter, Raw)
    }

    /// Returns a source of decoded messages. A message that cannot be decoded is a [`Fault`].
    ///
    /// # Errors
    ///
    /// Fails like [`observe`](Self::observe).
    pub fn observe_as<T, C>(&self, filter: &str, codec: C) -> Result<Source<T>, BridgeError>
    where
        T: Send + Sync + 'static,
        C: Decode<T>,
    {
        observe::observe(&self.connection, filter, codec)
    }

    /// Returns a stream of the messages that match a filter. It is for asynchronous code, and for hubs: the
    /// producing end of a hub can be attached to any `Stream`.
    ///
    /// # Errors
    ///
    /// Fails like [`observe`](Self::observe).
    pub fn messages(&self, filter: &str) -> Result<Messages, BridgeError> {
        observe::messages(&self.connection, filter)
    }

    /// Returns a stream of the server, to [replay](BridgedStream::replay) or [read](BridgedStream::records).
    pub fn stream(&self, name: &str) -> BridgedStream {
        BridgedStream::new(Ok(self.clone()), name)
    }

    /// Returns future faults. The source completes when the bridge closes. Faults without observers are logged.
    pub fn faults(&self) -> Source<Fault> {
        self.connection.inner.faults.source()
    }

    /// Returns whether the server has stopped or closed the connection.
    pub fn is_closed(&self) -> bool {
        self.connection.inner.client.disconnect().is_some()
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
