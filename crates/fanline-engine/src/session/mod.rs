//! What connections do to a server: what those of all kinds share, and a module for each kind.
//!
//! A handle is a session and the [`Broker`] that it acts on: [`ClientSession`], [`MqttSession`], [`LeafSession`], and
//! [`AnySession`] for what does not depend on the kind. Its methods are what the connection's verbs do.

mod admission;
mod backlog;
pub(crate) mod client;
pub(crate) mod connections;
mod kind;
pub mod leaf;
pub(crate) mod mqtt;
pub(crate) mod permit;
pub(crate) mod publish;
mod receipt;
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
use leaf::LeafSession;
use mqtt::MqttSession;

/// What sessions of all kinds act on.
pub(crate) type Broker = accounts::Broker<Kind>;
pub(crate) type Exchange = exchange::Exchange<Kind>;
pub(crate) type FanOut<'a> = exchange::deliver::FanOut<'a, Kind>;
pub(crate) type Session = exchange::session::Session<Kind>;

/// A session of any kind, and what it acts on.
pub(crate) struct AnySession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl AnySession<'_> {
    fn is_leaf(&self) -> bool {
        self.broker.exchange.sessions[self.id.index()]
            .kind
            .is_leaf()
    }
}

impl Broker {
    /// A session, for what does not depend on its kind.
    #[inline]
    pub(crate) fn any(&mut self, id: SessionId) -> AnySession<'_> {
        AnySession { broker: self, id }
    }

    /// The session of a NATS client.
    #[inline]
    pub(crate) fn client(&mut self, id: SessionId) -> ClientSession<'_> {
        ClientSession { broker: self, id }
    }

    /// Returns the session of an MQTT client; `None` if the connection is gone or speaks another protocol.
    #[inline]
    pub(crate) fn mqtt(&mut self, id: SessionId) -> Option<MqttSession<'_>> {
        MqttSession::of(self, id)
    }

    /// Returns the session of a connection that speaks MQTT.
    #[inline]
    pub(crate) fn mqtt_of(&mut self, id: SessionId) -> MqttSession<'_> {
        MqttSession::new(self, id)
    }

    /// The session of a leaf connection.
    #[inline]
    pub(crate) fn leaf(&mut self, id: SessionId) -> LeafSession<'_> {
        LeafSession { broker: self, id }
    }
}
