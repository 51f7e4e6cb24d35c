//! State that leaf connections share on one shard.
//!
//! One shard serves all leaf connections. To the other shards, and to clients of this one, their interest is that of
//! one remote ([`LinkSet::Leafs`](crate::exchange::remote::LinkSet::Leafs)), so that a message crosses to this shard
//! once. Leaf connections have routers of their own.

use hashbrown::HashMap;

use crate::auth::AccountId;
use crate::codec::leaf::LOOPS;
use crate::exchange::session::SessionId;
use crate::random::Random;

/// Length of the random part of a server's loop subject.
const LOOP_CHARS: usize = 22;

/// Most leaf connections of an account whose reconnections are counted.
const KNOWN_MAX: usize = 1024;

/// State that leaf connections share on one shard.
#[derive(Default)]
pub(crate) struct LeafConnections {
    pub(crate) accounts: HashMap<AccountId, LeafAccount>,
    /// Scratch: lines of interest.
    pub(super) line: Vec<u8>,
    /// Lines for the log.
    pub(crate) log_lines: Vec<(SessionId, String)>,
}

/// The leaf connections of one account.
pub(crate) struct LeafAccount {
    /// The subject that detects loops.
    pub(super) own_loop: Vec<u8>,
    /// Connections that are ready.
    pub(crate) ready: Vec<SessionId>,
    /// How often each connection was established.
    known: HashMap<String, u64>,
}

impl LeafAccount {
    pub(super) fn new(random: &mut Random) -> Self {
        LeafAccount {
            own_loop: [LOOPS, random.token(LOOP_CHARS).as_bytes()].concat(),
            ready: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Counts a connection that is established. Returns how often it was before.
    pub(super) fn count_connection(&mut self, link: String) -> u64 {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&link) {
            return 0;
        }
        let times = self.known.entry(link).or_default();
        *times += 1;
        *times - 1
    }
}
