//! The result of handling input.

use crate::exchange::session::SessionId;

/// The result of handling input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of handled bytes. The caller passes the remaining bytes again, followed by new input.
    pub consumed: usize,
    /// Length of the frame at the start of the remaining bytes; 0 if it is not known.
    pub frame_bytes: usize,
    /// Whether much output is pending. The caller writes it, then passes the rest of the input again.
    pub must_flush: bool,
    /// Whether the client's admission needs a check. The caller calls
    /// [`Shard::take_check`](crate::Shard::take_check), then passes the rest of the input again.
    pub awaits_check: bool,
    /// Number of bytes that were queued for connections.
    pub produced_bytes: usize,
    /// Number of these bytes that announce interest to other servers.
    pub announced_bytes: usize,
    /// A subscriber with much pending output, for which the caller delays the publisher a little.
    pub congested: Option<SessionId>,
    /// Whether the round trip of a leaf connection was measured; see
    /// [`Shard::link_level`](crate::Shard::link_level).
    pub was_measured: bool,
}
