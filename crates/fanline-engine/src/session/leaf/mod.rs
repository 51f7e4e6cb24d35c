//! Leaf connections: sessions with another server, by the [leaf protocol](crate::codec::leaf).

mod cycles;
mod handshake;
mod interest;
mod link;
mod receive;
mod rules;
mod seats;
mod settings;
mod told;

use super::{AnySession, Broker, Kind};
use crate::codec::leaf::LeafError;
use crate::codec::nats::error::CloseReason;
use crate::exchange::session::SessionId;

pub(crate) use cycles::Cycle;
pub(crate) use link::{Leaf, Phase, Side};
pub use link::{LeafCredentials, LeafEnded, LeafStatus};
pub(crate) use rules::Rules;
pub(crate) use seats::Leafs;
pub use settings::{Agreed, Dialled, LeafRemote};

pub use crate::codec::leaf::{Compressed, LeafCompression};
pub use crate::exchange::LeafListener;

/// The session of a leaf connection, and what it acts on.
pub(crate) struct LeafSession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl LeafSession<'_> {
    /// The same session as one of any kind.
    fn any(&mut self) -> AnySession<'_> {
        self.broker.any(self.id)
    }

    /// The state of the connection.
    fn link(&self) -> &Leaf {
        self.broker.exchange.sessions[self.id.index()]
            .kind
            .expect_leaf()
    }

    fn link_mut(&mut self) -> &mut Leaf {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.kind.expect_leaf_mut()
    }

    /// Tells the other server what is wrong, and closes the link.
    fn refuse(&mut self, error: &LeafError, reason: CloseReason) {
        self.complain(error);
        self.broker.end(self.id, reason);
    }

    /// Tells the other server what is wrong.
    fn complain(&mut self, error: &LeafError) {
        let exchange = &mut self.broker.exchange;
        exchange.outputs.notice(self.id, || error.to_string());
        exchange.send(self.id, format!("-ERR '{error}'\r\n").as_bytes());
    }
}

impl Kind {
    /// The state of a leaf connection. Only [`LeafSession`] asks for it like this, which no other kind has.
    fn expect_leaf(&self) -> &Leaf {
        self.leaf().expect("a leaf connection")
    }

    fn expect_leaf_mut(&mut self) -> &mut Leaf {
        self.leaf_mut().expect("a leaf connection")
    }
}
