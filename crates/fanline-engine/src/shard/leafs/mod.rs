//! Other servers that are attached to this one, or to which it is attached, by the
//! [leaf protocol](crate::codec::leaf).
//!
//! One shard serves all of them. To the other shards, and to its own clients, what leafs want is interest
//! of one more remote ([`LinkSet::Leafs`]), so that a message is handed here once. Who among the
//! leafs gets it is found by routers of their own.

mod circles;
mod handshake;
mod interest;
mod receive;
mod status;

pub(super) use circles::Circle;
pub(super) use status::ended;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;

use super::{Session, SessionId, Shard};
use crate::auth::AccountId;
use crate::codec::leaf::{LOOPS, LeafError};
use crate::codec::nats::error::CloseReason;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::Router;
use crate::random::Random;

/// How many letters and digits tell the subjects apart by which loops are found.
const LOOP_CHARS: usize = 22;

/// So many links of an account are known again when they come back. Of others it is not counted how often.
const KNOWN_MAX: usize = 1024;

/// What leaf connections share on one shard.
#[derive(Default)]
pub(super) struct Leafs {
    seats: HashMap<AccountId, Seat>,
    /// A line that is put together.
    line: Vec<u8>,
    /// What the log is to say.
    lines: Vec<(SessionId, String)>,
}

/// What there is of leafs in one account.
struct Seat {
    /// The subject by which loops are found.
    own_loop: Vec<u8>,
    /// The links over which messages cross.
    ready: Vec<SessionId>,
    /// How often each link was there.
    known: HashMap<String, u64>,
}

impl Seat {
    fn new(random: &mut Random) -> Self {
        Seat {
            own_loop: [LOOPS, random.token(LOOP_CHARS).as_bytes()].concat(),
            ready: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Takes note of a link that is there; tells how often it was before.
    fn note_known(&mut self, link: String) -> u64 {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&link) {
            return 0;
        }
        let times = self.known.entry(link).or_default();
        *times += 1;
        *times - 1
    }
}

impl Shard {
    /// Tells a leaf what is wrong, and closes the link.
    fn refuse_leaf(&mut self, id: SessionId, error: &LeafError, reason: CloseReason) {
        self.complain(id, error);
        self.end(id, reason);
    }

    /// Tells a leaf what is wrong.
    fn complain(&mut self, id: SessionId, error: &LeafError) {
        self.broker
            .exchange
            .outputs
            .notice(id, || error.to_string());
        self.broker
            .exchange
            .send(id, format!("-ERR '{error}'\r\n").as_bytes());
    }

    /// Where what a session wants is found.
    pub(super) fn router_of(&self, session: &Session) -> &Router {
        match session.kind.leaf {
            Some(_) => &self.broker.exchange.links[LinkSet::Leafs].routers[session.account],
            None => &self.broker.exchange.routers[session.account],
        }
    }

    /// Whether there are lines for [`take_leaf_lines`](Shard::take_leaf_lines).
    pub fn has_leaf_lines(&self) -> bool {
        !self.broker.exchange.shared.leafs.lines.is_empty()
    }

    /// Lines for the log since the last call, each about a link that works now.
    pub fn take_leaf_lines(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.broker.exchange.shared.leafs.lines)
    }

    /// Closes the link that was dialled for this remote, if there is one.
    pub fn end_leaf(&mut self, remote: u64) {
        let mut sessions = self.broker.exchange.sessions.iter();
        let found = sessions.find(|(_, session)| {
            let leaf = session.kind.leaf.as_ref();
            leaf.is_some_and(|leaf| leaf.remote().is_some_and(|known| known.id == remote))
        });
        if let Some((index, _)) = found {
            self.end(SessionId::from_index(index), CloseReason::ServerShutdown);
        }
    }

    /// All links, at whatever stage.
    pub fn leaf_ids(&self) -> Vec<SessionId> {
        let leafs = self.broker.exchange.sessions.iter();
        let leafs = leafs.filter(|(_, session)| session.kind.leaf.is_some());
        leafs
            .map(|(index, _)| SessionId::from_index(index))
            .collect()
    }
}
