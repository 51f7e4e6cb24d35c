//! Sizes and limits of the log, with the effect of reaching each.

/// Highest number of lanes. A frame of another lane is refused; recovery counts such a frame as damage.
pub const LANES_MAX: u16 = 256;
/// Highest index of an entry, highest number of a node, and highest position. A higher one is refused, and a
/// frame with one counts as damage.
pub const INDEX_MAX: u64 = 1 << 62;
/// Highest number of a segment. A file of another number is ignored.
pub const SEGMENT_NUMBER_MAX: u32 = 1 << 31;
/// Longest payload of an entry in bytes. A longer one is refused.
pub const ENTRY_BYTES_MAX: usize = 72 << 20;
/// Longest note of a compaction in bytes. A longer one is refused. Recovery corrects a flipped bit in a note,
/// and a short note makes it improbable that other damage looks like one.
pub const NOTE_BYTES_MAX: usize = 4 << 10;
/// Bytes of frames in memory, not yet written, from which on appends are refused with
/// [`WalError::Busy`](super::WalError::Busy).
pub const PENDING_BYTES_MAX: usize = 16 << 20;
/// Length at which a segment is full. Its last batch may exceed it.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Number of segments from which on the live entries of the oldest one are carried forward, so that its
/// file can be removed.
pub const SEGMENTS_WANTED: usize = 4;
/// Bytes of entries that one batch carries forward, at least one entry.
pub const CARRIED_BYTES_MAX: usize = 1 << 20;

// A longer entry than the batch is accepted only into an empty batch; lengths fit into 32 bits.
const _: () = assert!(ENTRY_BYTES_MAX + PENDING_BYTES_MAX < u32::MAX as usize / 2);
const _: () = assert!(CARRIED_BYTES_MAX < PENDING_BYTES_MAX && NOTE_BYTES_MAX < PENDING_BYTES_MAX);
