//! Nodes of a cluster in one thread: each has a write-ahead log on a simulated disk, and groups over one of the libraries. A
//! seed determines everything.

mod network;
mod node;
mod record;
mod tests;
mod world;

/// Groups of the cluster. They share each node's log.
pub(crate) const LANES: u16 = 2;
/// A node's id in a group is its place, counted from 1, and a multiple of this for each loss.
const ID_STEP: u64 = 16;

/// Limits of a group. No pair of nodes may have more than several times the first under way: messages may
/// be late, duplicated, or sent again.
const PEER_BYTES_MAX: usize = 1000;
const UNCOMMITTED_BYTES_MAX: usize = 10_000;
const UNDER_WAY_BYTES_MAX: usize = 9 * PEER_BYTES_MAX;

/// A bug that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An append counts as synced when it is written.
    AcknowledgeBeforeSync,
    /// A vote counts as synced when it is written.
    SkipSyncOfVote,
    /// A lane with a damaged entry loses it and all later ones, and the node votes on.
    TruncateAtDamage,
    /// A node that lost its disk, or maybe a vote, returns as the member that it was.
    KeepIdAfterLoss,
    /// A leader sends and accepts without limits.
    UnlimitedFlight,
    /// A leader answers a read without asking the others.
    ReadWithoutRound,
    /// A clock that goes back stops a node until it has caught up.
    WaitForClock,
    /// A learner's answers count as those of a voter.
    CountLearner,
    /// After a failed sync the next one succeeds, and counts for both.
    RetryFailedSync,
    /// A write that the log refuses, because the disk is full, counts as synced.
    IgnoreFullDisk,
}
