//! Bridges of a server: the default bridge without credentials, and further bridges.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use fanline::{IntoObservable, Source};
use futures_core::Stream;

use super::codec::{Decode, Encode};
use super::connection::{self, Connection};
use super::fault::BridgeError;
use super::{Binding, Bridge, BridgedStream, Messages};
use crate::Handle;
use crate::client::{ConnectOptions, Message};

impl Handle {
    /// Returns the default bridge, without credentials. If the bridge is not open, this opens it and waits
    /// for the server.
    ///
    /// # Errors
    ///
    /// Fails if the server has stopped or requires credentials.
    pub fn bridge(&self) -> Result<Bridge, BridgeError> {
        let mut known = self.shared.default_bridge.lock();
        let connection = known.as_ref().and_then(Weak::upgrade);
        if let Some(Ok(connection)) = connection.map(Arc::downcast::<Connection>) {
            let bridge = Bridge { connection };
            if !bridge.is_closed() {
                return Ok(bridge);
            }
        }
        let bridge = self.bridge_with(&ConnectOptions::default().name("bridge"))?;
        let connection = Arc::downgrade(&bridge.connection);
        *known = Some(connection);
        Ok(bridge)
    }

    /// Opens another bridge, with its own thread, and credentials if needed. The bridge ignores the option
    /// `echo`.
    ///
    /// # Errors
    ///
    /// Fails if the server has stopped or refuses the credentials.
    pub fn bridge_with(&self, options: &ConnectOptions) -> Result<Bridge, BridgeError> {
        let connection = connection::open(self, options)?;
        Ok(Bridge { connection })
    }

    /// Calls [`Bridge::publish_from`] of the default bridge.
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::publish_from`], or if [`bridge`](Self::bridge) fails.
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
        self.bridge()?.publish_from(subject, source, codec)
    }

    /// Calls [`Bridge::publish_stream`] of the default bridge.
    ///
    /// ```
    /// use fanline_server::bridge::Json;
    /// use fanline_server::client::Message;
    /// use fanline_server::{Options, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::start(Options { port: 0, ..Options::default() })?;
    ///
    /// // Publish a broadcast hub of this program.
    /// let (mut prices, hub) = fanline::hub::broadcast::<f64>(64);
    /// let binding = server.publish_stream("prices.mug", hub.subscribe(), Json)?;
    ///
    /// // The other direction: distribute messages to the consumers of a hub.
    /// let (seen, desks) = fanline::hub::broadcast::<Message>(64);
    /// let mut desk = desks.subscribe();
    /// let guard = seen.attach_source(server.observe("prices.*")?);
    ///
    /// prices.blocking_send(9.5)?;
    /// assert_eq!(desk.blocking_recv().ok_or("the hub has ended")?.payload(), b"9.5");
    /// # drop((binding, guard));
    /// # server.shutdown();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::publish_stream`], or if [`bridge`](Self::bridge) fails.
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
        self.bridge()?.publish_stream(subject, stream, codec)
    }

    /// Calls [`Bridge::publish`] of the default bridge. The bridge closes again if nothing else uses it. A program
    /// that publishes often should hold a [`bridge`](Self::bridge).
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::publish`], or if [`bridge`](Self::bridge) fails.
    pub fn publish(&self, subject: &str, payload: impl Into<Bytes>) -> Result<(), BridgeError> {
        self.bridge()?.publish(subject, payload)
    }

    /// Calls [`Bridge::observe`] of the default bridge.
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::observe`], or if [`bridge`](Self::bridge) fails.
    pub fn observe(&self, filter: &str) -> Result<Source<Message>, BridgeError> {
        self.bridge()?.observe(filter)
    }

    /// Calls [`Bridge::observe_as`] of the default bridge.
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::observe_as`], or if [`bridge`](Self::bridge) fails.
    pub fn observe_as<T, C>(&self, filter: &str, codec: C) -> Result<Source<T>, BridgeError>
    where
        T: Send + Sync + 'static,
        C: Decode<T>,
    {
        self.bridge()?.observe_as(filter, codec)
    }

    /// Calls [`Bridge::messages`] of the default bridge.
    ///
    /// # Errors
    ///
    /// Fails like [`Bridge::messages`], or if [`bridge`](Self::bridge) fails.
    pub fn messages(&self, filter: &str) -> Result<Messages, BridgeError> {
        self.bridge()?.messages(filter)
    }

    /// Calls [`Bridge::stream`] of the default bridge. If the bridge cannot be opened, `replay` and `records`
    /// return the error.
    pub fn stream(&self, name: &str) -> BridgedStream {
        BridgedStream::new(self.bridge(), name)
    }
}
