//! Leaf connections: sessions with other servers, by the [leaf protocol](crate::codec::leaf).

mod accounts;
mod cycles;
mod handshake;
mod interest;
mod receive;
mod rules;
mod settings;
mod state;

use super::{AnySession, Broker, Kind, Session};
use crate::codec::leaf::LeafError;
use crate::codec::nats::error::CloseReason;
use crate::exchange::session::SessionId;

pub(crate) use accounts::LeafConnections;
pub(crate) use cycles::Cycle;
pub(crate) use rules::Rules;
pub use settings::{Agreed, Dialled, LeafRemote};
pub(crate) use state::{Leaf, Phase, Side};
pub use state::{LeafCredentials, LeafEnded, LeafStatus};

pub use crate::codec::compression::{Compressed, LinkCompression};
pub use crate::exchange::LeafListener;

/// The handle of a leaf connection's session.
pub(crate) struct LeafSession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl LeafSession<'_> {
    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    /// Returns the handle with the operations that all kinds of sessions share.
    fn any(&mut self) -> AnySession<'_> {
        self.broker.any(self.id)
    }

    /// Returns the state of the connection.
    fn state(&self) -> &Leaf {
        self.session().kind.expect_leaf()
    }

    fn state_mut(&mut self) -> &mut Leaf {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.kind.expect_leaf_mut()
    }

    /// Sends an error to the other server, and closes the connection.
    fn refuse(&mut self, error: &LeafError, reason: CloseReason) {
        self.send_error(error);
        self.broker.end(self.id, reason);
    }

    /// Sends an error to the other server, and logs it.
    fn send_error(&mut self, error: &LeafError) {
        let exchange = &mut self.broker.exchange;
        exchange.outputs.notice(self.id, || error.to_string());
        exchange.send(self.id, format!("-ERR '{error}'\r\n").as_bytes());
    }
}

impl Kind {
    /// Returns the state of a leaf connection. [`LeafSession`] is made for no other kind.
    fn expect_leaf(&self) -> &Leaf {
        self.leaf().expect("a leaf connection")
    }

    fn expect_leaf_mut(&mut self) -> &mut Leaf {
        self.leaf_mut().expect("a leaf connection")
    }
}
