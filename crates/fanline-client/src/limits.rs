//! Everything that a server, or a slow reader on this side, can make grow.

use std::time::Duration;

/// Bytes that wait to be written. More: `publish` waits for room.
pub const WRITE_BUFFER_BYTES_MAX: usize = 1024 * 1024;
/// Messages queued for one subscription. More: new ones are dropped and counted.
pub const SUBSCRIPTION_MESSAGES_MAX: usize = 512 * 1024;
/// Payload and header bytes queued for one subscription. More: new ones are dropped and counted.
pub const SUBSCRIPTION_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest line without payload that a server may send (INFO lists a whole cluster's addresses).
/// More: disconnected.
pub const LINE_BYTES_MAX: usize = 256 * 1024;
/// Largest header + payload that a server may announce. More: disconnected.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Events kept for an observer that does not look. More: it misses the oldest.
pub const EVENTS_MAX: usize = 64;
/// Unanswered pings; one more tick and the connection is given up.
pub const PINGS_OUT_MAX: u32 = 2;

/// Free room offered to each read.
pub(super) const READ_BYTES: usize = 128 * 1024;
/// Reads in a row before other tasks get their turn.
pub(super) const READS_PER_TURN_MAX: u32 = 16;
/// Silence after which the server is pinged.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(120);
