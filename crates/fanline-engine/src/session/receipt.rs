//! The result of handling input.

use crate::exchange::session::SessionId;

/// The result of handling input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Bytes that were handled. Pass the rest again, with more input behind it.
    pub consumed: usize,
    /// Length of the frame that the rest begins, if it is known, otherwise 0.
    pub frame_bytes: usize,
    /// Much output is pending: write it, then pass the rest of the input again.
    pub must_flush: bool,
    /// The client's admission needs a check: call [`Shard::take_check`](crate::Shard::take_check), then pass the rest
    /// of the input again.
    pub awaits_check: bool,
    /// Bytes that were queued for connections.
    pub produced_bytes: usize,
    /// Bytes of them that announce interest to other servers.
    pub told_bytes: usize,
    /// A subscriber with much pending output: delay the publisher a little.
    pub congested: Option<SessionId>,
    /// The round trip of a leaf connection was measured: see [`Shard::leaf_level`](crate::Shard::leaf_level).
    pub was_measured: bool,
}
