//! Sessions: how the verbs of a connection change the server. There is a module for each kind of session, and
//! one for each part that all kinds share.
//!
//! A handle combines a session with the [`Broker`] that it changes: [`ClientSession`], [`MqttSession`],
//! [`LeafSession`], [`RouteSession`], [`GatewaySession`], and [`AnySession`] for operations of every kind. The methods of a handle perform the
//! verbs.

mod admission;
mod announced;
mod arrival;
mod backlog;
pub(crate) mod client;
pub(crate) mod connections;
pub mod gateway;
mod kind;
pub mod leaf;
pub(crate) mod mqtt;
pub(crate) mod permit;
pub(crate) mod publish;
mod receipt;
pub mod route;
mod status;
pub(crate) mod timers;
mod tracing;

pub(crate) use kind::{Client, Kind};
pub use receipt::Receipt;
pub use status::{ConnectionStatus, MqttStatus, SubscriptionStatus};

use crate::accounts;
use crate::exchange;
use crate::exchange::session::SessionId;
use client::ClientSession;
use gateway::GatewaySession;
use leaf::LeafSession;
use mqtt::MqttSession;
use route::RouteSession;

/// The exchange and the accounts that sessions act on.
pub(crate) type Broker = accounts::Broker<Kind>;
pub(crate) type Exchange = exchange::Exchange<Kind>;
pub(crate) type FanOut<'a> = exchange::deliver::FanOut<'a, Kind>;
pub(crate) type Session = exchange::session::Session<Kind>;

/// The handle of a session of any kind.
pub(crate) struct AnySession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl AnySession<'_> {
    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    fn is_leaf(&self) -> bool {
        self.session().kind.is_leaf()
    }
}

impl Broker {
    /// Returns the handle with the operations that all kinds of sessions share.
    #[inline]
    pub(crate) fn any(&mut self, id: SessionId) -> AnySession<'_> {
        AnySession { broker: self, id }
    }

    /// Returns the handle of a session; `None` if the connection is gone or ending.
    pub(crate) fn open_session(&mut self, id: SessionId) -> Option<AnySession<'_>> {
        let session = self.exchange.sessions.get(id.index())?;
        session.ending.is_none().then_some(self.any(id))
    }

    /// Returns the handle of a NATS client's session.
    #[inline]
    pub(crate) fn client(&mut self, id: SessionId) -> ClientSession<'_> {
        ClientSession { broker: self, id }
    }

    /// Returns the handle of an MQTT session; `None` if the connection is gone or speaks another protocol.
    #[inline]
    pub(crate) fn mqtt(&mut self, id: SessionId) -> Option<MqttSession<'_>> {
        MqttSession::of(self, id)
    }

    /// Returns the handle of a session whose kind is known to be MQTT.
    #[inline]
    pub(crate) fn mqtt_of(&mut self, id: SessionId) -> MqttSession<'_> {
        MqttSession::new(self, id)
    }

    /// Returns the handle of a route's session.
    #[inline]
    pub(crate) fn route(&mut self, id: SessionId) -> RouteSession<'_> {
        RouteSession { broker: self, id }
    }

    /// Returns the handle of a gateway's session.
    #[inline]
    pub(crate) fn gateway(&mut self, id: SessionId) -> GatewaySession<'_> {
        GatewaySession { broker: self, id }
    }

    /// Returns the handle of a leaf connection's session.
    #[inline]
    pub(crate) fn leaf(&mut self, id: SessionId) -> LeafSession<'_> {
        LeafSession { broker: self, id }
    }
}
