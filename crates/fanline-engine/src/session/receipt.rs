//! What became of the input of a connection.

use crate::exchange::session::SessionId;

/// What became of some input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How many bytes are done with. The rest has to be handed in again, with more behind it.
    pub consumed: usize,
    /// How long the frame is that the rest begins, when that is known, else 0.
    pub frame_bytes: usize,
    /// The input was left because much is to be written: write, then hand the rest in again.
    pub must_flush: bool,
    /// The input was left because it is to be decided whether its client may connect:
    /// [`Shard::take_check`](crate::Shard::take_check) first, then hand the rest in again.
    pub awaits_check: bool,
    /// How many bytes were queued for connections.
    pub produced_bytes: usize,
    /// How many of them tell other servers what a client wants.
    pub told_bytes: usize,
    /// A subscriber of what was published has much waiting: hold the publisher back a little.
    pub congested: Option<SessionId>,
    /// It is known anew how far the other side of a link is: see [`Shard::leaf_level`](crate::Shard::leaf_level).
    pub was_measured: bool,
}
