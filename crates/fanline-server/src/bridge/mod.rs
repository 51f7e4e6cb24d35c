//! The bridge: subjects, replay subjects and hubs of the [`fanline`] library bound to subjects of an
//! embedded server, in either direction.
//!
//! A program publishes once. Observers in the same process are called by whoever emits, in nanoseconds;
//! NATS and WebSocket clients get it in microseconds; who comes late gets a replay, from memory or from a
//! stream's log; and where a hub is asked for, who is slow holds up who is fast.
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
//! // What the program emits goes to `ticks.MUG`, `ticks.CUP` and so on.
//! let ticks = ReplaySubject::<Tick>::new(Replay::many(100));
//! let codec = Json.to(|tick: &Tick| format!("ticks.{}", tick.symbol));
//! let binding = server.publish_from("ticks.>", &ticks, codec)?;
//!
//! // What anybody publishes to `orders.*`, over the wire or here.
//! let orders = server.observe("orders.*")?;
//! let guard = orders.subscribe(|order| println!("{}: {} bytes", order.subject(), order.payload().len()));
//!
//! ticks.next(Tick { symbol: "MUG".into(), price: 9.5 });
//! # drop((binding, guard));
//! # server.shutdown();
//! # Ok(()) }
//! ```
//!
//! # What is bound to what
//!
//! | from | to | by |
//! | --- | --- | --- |
//! | a subject, a replay subject, a source, a chain of operators | subjects of the server | [`publish_from`](Bridge::publish_from) |
//! | the receiving end of a hub, or any `Stream` | subjects of the server; the hub's producer waits for the server | [`publish_stream`](Bridge::publish_stream) |
//! | one message | a subject of the server | [`publish`](Bridge::publish) |
//! | subjects of the server | a source, of messages or of values | [`observe`](Bridge::observe), [`observe_as`](Bridge::observe_as) |
//! | subjects of the server | a `Stream` to be pulled, which the producing end of a hub can be [attached](fanline::hub::MergeSender::attach) to | [`messages`](Bridge::messages) |
//! | a stream's log | a source that replays | [`stream`](Bridge::stream), then [`replay`](BridgedStream::replay) |
//! | a stream's log | a `Stream` to be pulled: what is not taken stays in the log | [`stream`](Bridge::stream), then [`records`](BridgedStream::records) |
//!
//! All of these are methods of a [`Bridge`], and of a server's [`Handle`](crate::Handle), where they use
//! one bridge without credentials, which all of them share. A server that asks for some takes
//! [`Handle::bridge_with`](crate::Handle::bridge_with): a bridge may do what its user may do.
//!
//! # How it works, and what it costs
//!
//! A bridge is one connection in this process, as [`Handle::client`](crate::Handle::client) has, served by
//! one thread that is called `bridge`. It is opened when it is needed first, and closed when its last
//! handle, binding and source are gone. So the server treats it as any other client: limits, permissions,
//! monitoring and order are the same.
//!
//! Between two ends of one bridge messages do not go round by the server: the publisher's thread calls the
//! observers, with the payload as it is (no byte of [`Raw`] bytes is copied), and the server sends no
//! echo. Where the server may do something else with a message, because it has users with permissions or
//! accounts with mappings ([`Auth::Directory`](crate::Auth::Directory)), all of them go round by it.
//!
//! A value is encoded once, on the thread of whoever emits it. Bound to one subject, it is not even that
//! as long as nobody subscribes to it; who has subscribed, and has the server's word for it, misses nothing.
//! [`next_slice`](fanline::Producer::next_slice) hands many to the connection in one piece.
//!
//! # When somebody is slow
//!
//! | who | what happens |
//! | --- | --- |
//! | an observer in this process | it holds up whoever emits, as ever in the library: the publisher, or the `bridge` thread for what comes over the wire. Put [`observe_on`](fanline::ObservableExt::observe_on) before it |
//! | a subscriber over the wire | the server holds publishers back for a few milliseconds at a time, and drops it when 64 MiB wait for it. Meanwhile [`WhenFull`] says whether the emitter waits or values are left out |
//! | an observer that waits for the bridge itself, as for a hub that is full until [`publish_stream`](Bridge::publish_stream) of the same bridge has taken something | it waits for ever. Let a hub pull [`messages`](Bridge::messages) instead, or give one of the two a bridge of its own ([`Handle::bridge_with`](crate::Handle::bridge_with)) |
//! | who pulls [`Messages`] | they wait in a bounded queue; what does not fit is dropped and counted |
//! | who pulls [`Records`] | they stay in the log |
//! | the server, for a hub's receiving end | the hub fills, and its producer waits, or does what the hub was told |
//!
//! # When something goes wrong
//!
//! What can be said at once is an error of the call. What comes later, a message that cannot be decoded, a
//! codec that panics, a publish that is not allowed, is left out and told as a [`Fault`] by [`faults`](Bridge::faults); faults
//! that nobody listens to are logged. A stream of the server that keeps what is published is not waited for, and
//! what it refuses, as when it is full, is not told: where each must be kept, publish by
//! [`JetStream`](crate::client::jetstream::JetStream::publish), which is answered. When the server stops, sources complete, and the last fault is
//! [`Fault::Closed`].

mod blocking;
mod codec;
mod fault;
mod handle;
mod line;
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
use line::Line;
use publish::Publisher;

/// A connection between this process and its server, for everything that is bound. Clones share it. See
/// the [module](self).
#[derive(Clone)]
pub struct Bridge {
    line: Arc<Line>,
}

impl Bridge {
    /// Publishes what a source emits, until the binding is dropped or the source ends.
    ///
    /// `subject` is where all values go, or with wildcards where they may go: then the codec says which
    /// subject each one has ([`Encode::to`]), and a value for another one is a [`Fault`].
    ///
    /// Retained values of a replay subject are published before this returns.
    ///
    /// # Errors
    /// When the subject is none, or the bridge is closed.
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

    /// The same, and says what happens when the server takes less than the source emits.
    ///
    /// # Errors
    /// As [`publish_from`](Self::publish_from).
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
        let publisher = Publisher::new(Arc::clone(&self.line), subject, codec, when_full)?;
        let binding = publisher.binding();
        let observable = source.clone().into_observable();
        Ok(binding(observable.subscribe_with(publisher)))
    }

    /// Publishes what a stream yields: the receiving end of a hub, say. The stream is pulled as the
    /// server takes what it yields, so a hub's producer waits for the server.
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
    /// As [`publish_from`](Self::publish_from).
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
        let line = Arc::clone(&self.line);
        let publisher = Publisher::new(line, subject, codec, WhenFull::Wait)?;
        let binding = publisher.binding();
        let task = self.line.inner.spawn(publisher.pump(stream));
        Ok(binding(Guard::new(move || task.abort())))
    }

    /// Publishes a message, as an answer to one that was observed. Observers in this process have got it
    /// when this returns; for the server it may still wait in a buffer.
    ///
    /// # Errors
    /// When the subject or the size is not acceptable, or the bridge is closed.
    pub fn publish(&self, subject: &str, payload: impl Into<Bytes>) -> Result<(), BridgeError> {
        self.publish_message(OutgoingMessage {
            subject: subject.to_owned(),
            payload: payload.into(),
            ..OutgoingMessage::default()
        })
    }

    /// The same with a reply subject or headers.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and when the server takes no headers.
    pub fn publish_message(&self, message: OutgoingMessage) -> Result<(), BridgeError> {
        publish::publish(&self.line, message)
    }

    /// A source of the messages that match a filter, from whoever publishes them.
    ///
    /// What is published after this has returned arrives. The server is told that nobody is interested
    /// any more when the last source and the last observer are gone, within a second.
    ///
    /// Observers are called by the thread that publishes in this process, or by the bridge's own for what
    /// comes over the wire, one at a time. They keep what they want: a clone of a [`Message`] copies no
    /// byte.
    ///
    /// # Errors
    /// When the filter is none, the server does not allow it, or the bridge is closed.
    pub fn observe(&self, filter: &str) -> Result<Source<Message>, BridgeError> {
        self.observe_as(filter, Raw)
    }

    /// A source of the values that such messages carry. What cannot be decoded is a [`Fault`].
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub fn observe_as<T, C>(&self, filter: &str, codec: C) -> Result<Source<T>, BridgeError>
    where
        T: Send + Sync + 'static,
        C: Decode<T>,
    {
        observe::observe(&self.line, filter, codec)
    }

    /// The messages that match a filter, to be pulled: for asynchronous code, and for hubs, whose
    /// producing ends can be attached to any `Stream`.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub fn messages(&self, filter: &str) -> Result<Messages, BridgeError> {
        observe::messages(&self.line, filter)
    }

    /// A stream of the server, to be [replayed](BridgedStream::replay) or [read](BridgedStream::records).
    pub fn stream(&self, name: &str) -> BridgedStream {
        BridgedStream::new(Ok(self.clone()), name)
    }

    /// What goes wrong from now on; it completes when the bridge is closed. Faults that nobody observes
    /// are logged.
    pub fn faults(&self) -> Source<Fault> {
        self.line.inner.faults.source()
    }

    /// Whether the server has stopped, or has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.line.inner.client.disconnect().is_some()
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
