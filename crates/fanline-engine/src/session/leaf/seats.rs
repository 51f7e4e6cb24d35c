//! What leaf connections share on one shard.
//!
//! One shard serves all of them. To the other shards, and to its own clients, what leafs want is interest
//! of one more shard ([`LEAFS`](crate::exchange::router::LEAFS)), so that a message is handed here once. Who among the
//! leafs gets it is found by routers of their own.

use hashbrown::HashMap;

use crate::auth::AccountId;
use crate::codec::leaf::LOOPS;
use crate::exchange::session::SessionId;
use crate::random::Random;

/// How many letters and digits tell the subjects apart by which loops are found.
const LOOP_CHARS: usize = 22;

/// So many links of an account are known again when they come back. Of others it is not counted how often.
const KNOWN_MAX: usize = 1024;

/// What leaf connections share on one shard.
#[derive(Default)]
pub(crate) struct Leafs {
    pub(crate) seats: HashMap<AccountId, Seat>,
    /// A line that is put together.
    pub(super) line: Vec<u8>,
    /// What the log is to say.
    pub(crate) lines: Vec<(SessionId, String)>,
}

/// What there is of leafs in one account.
pub(crate) struct Seat {
    /// The subject by which loops are found.
    pub(super) own_loop: Vec<u8>,
    /// The links over which messages cross.
    pub(crate) ready: Vec<SessionId>,
    /// How often each link was there.
    known: HashMap<String, u64>,
}

impl Seat {
    pub(super) fn new(random: &mut Random) -> Self {
        Seat {
            own_loop: [LOOPS, random.token(LOOP_CHARS).as_bytes()].concat(),
            ready: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Takes note of a link that is there; tells how often it was before.
    pub(super) fn note_known(&mut self, link: String) -> u64 {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&link) {
            return 0;
        }
        let times = self.known.entry(link).or_default();
        *times += 1;
        *times - 1
    }
}
