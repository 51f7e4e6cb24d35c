//! Gateways: sessions with servers of other clusters, by the [gateway protocol](crate::codec::gateway).
//!
//! A dialed connection sends messages to another cluster and receives its interest; an accepted one does the
//! opposite. The first shard serves all of them.

mod connections;
mod handshake;
mod interest;
mod receive;
mod recent;
mod replies;
mod state;

use super::{Broker, Kind, Session};
use crate::codec::gateway::GatewayError;
use crate::codec::nats::error::CloseReason;
use crate::exchange::session::SessionId;

pub(crate) use connections::GatewayConnections;
pub use connections::{GatewayEvent, KnownGateway};
pub(crate) use replies::{MappedReply, Unmarked};
pub(crate) use state::Gateway;
pub use state::{
    GatewayAccount, GatewayDial, GatewayEnded, GatewayMode, GatewayOutcome, GatewayStatus,
};

pub use crate::exchange::GatewaySettings;

/// The handle of a gateway's session.
pub(crate) struct GatewaySession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl GatewaySession<'_> {
    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    /// Returns the state of the connection.
    pub(super) fn state(&self) -> &Gateway {
        self.session().kind.expect_gateway()
    }

    fn state_mut(&mut self) -> &mut Gateway {
        self.session_mut().kind.expect_gateway_mut()
    }

    /// Sends an error to the peer, and closes the connection.
    fn refuse(&mut self, error: &GatewayError, reason: CloseReason) {
        self.send_error(error);
        self.broker.end(self.id, reason);
    }

    /// Sends an error to the peer, and logs it.
    fn send_error(&mut self, error: &GatewayError) {
        let exchange = &mut self.broker.exchange;
        exchange.outputs.notice(self.id, || error.to_string());
        exchange.send(self.id, format!("-ERR '{error}'\r\n").as_bytes());
    }

    /// Logs a violation of the protocol, and closes the connection.
    fn end_as_violation(&mut self, what: &str) {
        let outputs = &mut self.broker.exchange.outputs;
        outputs.notice(self.id, || what.to_owned());
        self.broker.end(self.id, CloseReason::ProtocolViolation);
    }
}

impl Kind {
    /// Returns the state of a gateway. [`GatewaySession`] is made for no other kind.
    fn expect_gateway(&self) -> &Gateway {
        self.gateway().expect("a gateway")
    }

    fn expect_gateway_mut(&mut self) -> &mut Gateway {
        self.gateway_mut().expect("a gateway")
    }
}
