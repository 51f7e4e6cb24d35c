//! Errors of the log.

use fanline_engine::store::DiskError;

use super::limits::LANES_MAX;
use super::segment::Identity;

/// Reason for which an operation on the log failed. Nothing has changed, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// The lane's number is too high.
    #[error("lane must be below {LANES_MAX}, got {lane}")]
    Lane {
        /// The lane.
        lane: u16,
    },
    /// A payload exceeds its limit.
    #[error("payload must have at most {bytes_max} bytes, got {bytes}")]
    TooLong {
        /// Length of the payload.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The request contradicts the lane's state: consensus rules do not permit it.
    #[error("index, term, or vote contradicts the state of lane {lane}")]
    Order {
        /// The lane.
        lane: u16,
    },
    /// The lane has no such entry.
    #[error("lane {lane} has no entry {index} of this term")]
    NoEntry {
        /// The lane.
        lane: u16,
        /// Index of the entry.
        index: u64,
    },
    /// The entry is damaged on the disk. Another member may have it.
    #[error("entry {index} of lane {lane} is damaged")]
    Damaged {
        /// The lane.
        lane: u16,
        /// Index of the entry.
        index: u64,
    },
    /// Too many frames wait to be written. Retry after the next [`poll_sync`](super::Wal::poll_sync).
    #[error("too many pending bytes, retry after the next sync")]
    Busy,
    /// The disk is full. Pending frames stay in memory.
    #[error("no space left on the disk")]
    Full,
    /// Reading failed.
    #[error("cannot read the log: {0}")]
    Disk(DiskError),
    /// A write or a sync failed earlier. The log accepts nothing until it is opened again.
    #[error("the log failed and must be opened again: {0}")]
    Failed(DiskError),
}

/// Reason for which a log was not opened. Nothing on the disk has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An operation of the disk failed. Repairs may have begun; opening again continues them.
    #[error("cannot open the log: {0}")]
    Disk(#[from] DiskError),
    /// The log belongs to another node, or to a node of another cluster.
    #[error("the log belongs to node {} of cluster {}, not to node {} of cluster {}", found.node, found.cluster, wanted.node, wanted.cluster)]
    Identity {
        /// The node whose log it is.
        found: Identity,
        /// The node that opens it.
        wanted: Identity,
    },
    /// Segments of different logs are in one folder.
    #[error("segment {segment} belongs to another incarnation of the log")]
    Mixed {
        /// Number of the segment.
        segment: u32,
    },
    /// A newer version wrote the log.
    #[error("segment {segment} has version {version}, not 1")]
    Version {
        /// Number of the segment.
        segment: u32,
        /// Its version.
        version: u16,
    },
    /// There are segments, and none has an intact head. The folder needs an operator: a node without its log
    /// is a new member.
    #[error("no segment of the log has a readable head")]
    Unreadable,
}
