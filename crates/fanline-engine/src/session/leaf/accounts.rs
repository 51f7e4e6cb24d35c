//! State that leaf connections share on one shard.
//!
//! One shard serves all leaf connections. Every shard sees the interest of all of them as the interest of one
//! remote ([`LinkSet::Leafs`](crate::exchange::remote::LinkSet::Leafs)), so a message crosses to this shard
//! once. This shard then uses separate routers, which contain only leaf connections, to find the receivers.

use hashbrown::HashMap;

use crate::auth::AccountId;
use crate::codec::leaf::LOOPS;
use crate::exchange::session::SessionId;
use crate::random::Random;

/// Length of the random part of a server's loop subject.
const LOOP_CHARS: usize = 22;

/// Largest number of leaf connections of an account whose reconnections are counted.
const KNOWN_MAX: usize = 1024;

/// State that leaf connections share on one shard.
#[derive(Default)]
pub(crate) struct LeafConnections {
    pub(crate) accounts: HashMap<AccountId, LeafAccount>,
    /// Reused buffer for lines of interest.
    pub(super) line: Vec<u8>,
    /// Lines for the log.
    pub(crate) log_lines: Vec<(SessionId, String)>,
}

/// The leaf connections of one account.
pub(crate) struct LeafAccount {
    /// The loop subject of this server in the account, which detects cycles.
    pub(super) own_loop: Vec<u8>,
    /// Connections whose handshake is complete.
    pub(crate) ready: Vec<SessionId>,
    /// Number of times that each connection was established, by `Leaf::key`.
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

    /// Counts a connection that is established. Returns how often it was established before.
    pub(super) fn count_connection(&mut self, link: String) -> u64 {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&link) {
            return 0;
        }
        let times = self.known.entry(link).or_default();
        *times += 1;
        *times - 1
    }
}
