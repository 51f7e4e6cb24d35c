//! The interface between a node and a consensus library, for one group.
//!
//! A [`Group`] decides and does no I/O: the caller passes in messages, finished syncs, and the time, and then takes
//! [`Output`]s until there are none. Outputs for the
//! [log](crate::wal) carry a [`Token`]. The caller writes them in order, and reports a token when everything up to it is synced. Votes, acknowledgements
//! of followers, and commits leave only after the sync that they depend on.

use std::time::Duration;

use crate::wal::Vote;
use crate::wal::limits::ENTRY_BYTES_MAX;

/// Id of a node in a group: [`Wal::member`](crate::wal::Wal::member), a random number. A node that lost its log, or
/// maybe a vote, is another one. Messages to the node that it was must not reach it.
pub type NodeId = u64;

/// Number of outputs that must be synced, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// An action for the caller. Actions are executed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Write term and vote to the log.
    Vote {
        /// Current term.
        term: u64,
        /// The node that receives the vote.
        voted_for: Option<NodeId>,
        /// To report when it is synced.
        token: Token,
    },
    /// Write an entry to the log. Entries from this index on are replaced.
    Append {
        /// Index of the entry.
        index: u64,
        /// Its term.
        term: u64,
        /// The entry as it is stored.
        bytes: Vec<u8>,
        /// To report when it is synced.
        token: Token,
    },
    /// Write a compaction to the log: the entries up to an index are removed, and the note is stored with them.
    Compact {
        /// Index of the last removed entry.
        index: u64,
        /// Its term.
        term: u64,
        /// Bytes for [`Wal::compact`](crate::wal::Wal::compact).
        note: Vec<u8>,
        /// To report when it is synced.
        token: Token,
    },
    /// Send a message to the same group of another node. It may get lost or overtaken.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        bytes: Vec<u8>,
    },
    /// All entries up to an index are on the disks of a majority. Apply them.
    Commit {
        /// Index of the last committed entry.
        index: u64,
    },
    /// The state of a group that has applied all entries up to an index, which it has, answers a read.
    Read {
        /// The number that [`Group::read`] returned.
        id: u64,
        /// The index.
        index: u64,
    },
    /// The leader has changed. If this node was the leader, its pending proposals may or may not be committed
    /// later, and its pending reads get no answer.
    Leader {
        /// The leader, if known.
        node: Option<NodeId>,
        /// Its term.
        term: u64,
    },
    /// Send a snapshot to a node, because the entries that it needs were compacted.
    NeedSnapshot {
        /// The node.
        peer: NodeId,
    },
}

/// The members of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Nodes that vote and count.
    pub voters: Vec<NodeId>,
    /// Nodes that receive entries, and neither vote nor count.
    pub learners: Vec<NodeId>,
}

/// Reason for which a group refused a request. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// This node does not lead the group, has lost contact with the majority, or cannot write its log.
    #[error("this node is not the leader")]
    NotLeader,
    /// Too many bytes are not committed. Propose again later.
    #[error("too many bytes are not committed")]
    Busy,
    /// The command exceeds [`ENTRY_BYTES_MAX`](crate::wal::limits::ENTRY_BYTES_MAX).
    #[error("the command is too long")]
    TooLong,
    /// An earlier change of members, or the first entry of this leader, is not committed yet.
    #[error("an earlier change is not committed")]
    Pending,
    /// A new voter must be a learner first, and have all entries; so must a node that takes over leadership.
    #[error("node {0} does not have all entries")]
    Behind(NodeId),
    /// A group needs a voter.
    #[error("a group must have at least one voter")]
    NoVoters,
}

/// Reason for which a message was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The message is invalid. It has no effect.
    #[error("invalid message of a peer")]
    Malformed,
    /// The leader's entries contradict a snapshot of this node. The group must stop on this node.
    #[error("the leader's entries contradict a committed snapshot")]
    Contradiction,
}

/// Maximum bytes of entries under way to a peer, at least one entry. The rest follows after the answer.
pub const PEER_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of entries that are not committed, at least one entry. More proposals are refused.
pub const UNCOMMITTED_BYTES_MAX: usize = 64 << 20;

/// Times of a group.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Id of this node, not 0: [`Wal::member`](crate::wal::Wal::member).
    pub node: NodeId,
    /// Interval between messages of an idle leader.
    pub heartbeat: Duration,
    /// Time without a leader after which a voter may start an election; it draws up to twice this time.
    pub election: Duration,
    /// Seed of the drawn times.
    pub seed: u64,
    /// Maximum bytes of entries under way to a peer: usually [`PEER_BYTES_MAX`].
    pub peer_bytes_max: usize,
    /// Maximum bytes of entries that are not committed: usually [`UNCOMMITTED_BYTES_MAX`].
    pub uncommitted_bytes_max: usize,
}

impl Settings {
    /// Checks whether a leader accepts a command, while entries of this many bytes are not committed.
    pub(crate) fn check_command(
        &self,
        command: &[u8],
        uncommitted_bytes: usize,
    ) -> Result<(), Refused> {
        if command.len() >= ENTRY_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let bytes = uncommitted_bytes + command.len() + 1;
        match uncommitted_bytes > 0 && bytes > self.uncommitted_bytes_max {
            true => Err(Refused::Busy),
            false => Ok(()),
        }
    }
}

/// The stored state of a group on a node.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Its term and vote.
    pub vote: Vote,
    /// Index and term of the last compacted entry.
    pub floor: (u64, u64),
    /// The note of the compaction; empty if nothing was compacted.
    pub note: Vec<u8>,
    /// The entries above the floor, in order, as [`Output::Append`] had them.
    pub entries: Vec<Vec<u8>>,
}

/// A stored entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Bytes that were proposed.
    Command(&'a [u8]),
    /// An entry of the library. It has no effect for the caller.
    Internal,
}

/// One consensus group on one node.
pub trait Group: Sized {
    /// Starts a node of a group. `founders` are the voters with which the group began. A node that is not one of
    /// them and has an empty log, such as a founder that lost its disk, is no member until a leader adds it.
    /// Returns `None` if the stored entries are invalid.
    ///
    /// A node whose lane of the log is not [intact](crate::wal::Condition::Intact) must not be started.
    fn start(
        settings: Settings,
        founders: &[NodeId],
        stored: Stored,
        now: Duration,
    ) -> Option<Self>;

    /// Proposes a command. It is committed when [`Output::Commit`] reaches the returned index in the same term.
    ///
    /// # Errors
    /// [`Refused::NotLeader`], [`Refused::Busy`], [`Refused::TooLong`].
    fn propose(&mut self, command: &[u8]) -> Result<u64, Refused>;

    /// Begins a read that sees everything that was committed anywhere before. Returns the number of the
    /// [`Output::Read`] after which the caller's state answers it.
    ///
    /// # Errors
    /// [`Refused::NotLeader`], [`Refused::Pending`].
    fn read(&mut self) -> Result<u64, Refused>;

    /// Handles a message of another node.
    ///
    /// # Errors
    /// [`MessageError`].
    fn deliver(&mut self, from: NodeId, bytes: &[u8]) -> Result<(), MessageError>;

    /// Reports that all outputs up to a token are synced.
    fn synced(&mut self, token: Token);

    /// Reports the time. Call it every few milliseconds. A clock that jumps costs time, and neither entries nor reads.
    fn tick(&mut self, now: Duration);

    /// Reports whether the log accepts writes, which a full disk or a failed sync prevents. While it does not, the
    /// group steps back: it refuses proposals, ignores messages, and starts no election, and a leader asks another
    /// voter to take over. If the log refused an output, the caller keeps it and all later ones until the log
    /// accepts it. A log that failed never does; the node must restart.
    fn set_writable(&mut self, is_writable: bool);

    /// Changes the members in two steps, each committed by a majority of the old and the new voters.
    ///
    /// # Errors
    /// [`Refused`].
    fn change_members(&mut self, members: &Members) -> Result<(), Refused>;

    /// Lets another voter start an election at once.
    ///
    /// # Errors
    /// [`Refused`].
    fn transfer(&mut self, to: NodeId) -> Result<(), Refused>;

    /// Returns the next output.
    fn poll_output(&mut self) -> Option<Output>;

    /// Returns an entry that was not compacted.
    fn entry(&self, index: u64) -> Option<Entry<'_>>;

    /// Removes the entries up to a committed index, because a snapshot on the disk contains their effects. Returns
    /// whether there were any; false also while the log cannot be written.
    fn compact(&mut self, index: u64) -> bool;

    /// Replaces the entries up to an index by a snapshot of another node, which is on the disk. `note` is that
    /// node's. Returns false if this node has these entries already, or cannot write its log; then the snapshot has
    /// no effect.
    fn install(&mut self, index: u64, term: u64, note: &[u8]) -> bool;

    /// Whether this node leads, is in contact with a majority, and can write its log.
    fn is_leader(&self) -> bool;

    /// Returns the current term.
    fn term(&self) -> u64;

    /// Returns index and term of the last entry.
    fn last(&self) -> (u64, u64);

    /// Returns the term of an entry.
    fn term_of(&self, index: u64) -> Option<u64>;

    /// Returns an entry as it is stored, for the [repair](crate::wal::Wal::repair) of another node's log.
    fn stored(&self, index: u64) -> Option<&[u8]>;

    /// Returns the members. During a change, the voters are those of before.
    fn members(&self) -> Members;
}
