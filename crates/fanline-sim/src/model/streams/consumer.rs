//! What clients know of a consumer.

use std::collections::BTreeSet;

/// Positions of the consumers of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerKind {
    /// Clients pull from it.
    Pull,
    /// It pushes to a subject.
    Push,
}

/// A durable consumer of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Consumer {
    /// The step in which a client learned that it exists.
    pub(super) created_at: Option<u64>,
    pub(super) delivered: BTreeSet<u64>,
    /// Sequences that a client has begun to acknowledge.
    pub(super) acknowledged: BTreeSet<u64>,
    /// Acknowledged sequences that the server has confirmed (`confirmed`), and those whose confirmation
    /// arrived before the last quiet moment (`settled`).
    pub(super) confirmed: BTreeSet<u64>,
    pub(super) settled: BTreeSet<u64>,
}
