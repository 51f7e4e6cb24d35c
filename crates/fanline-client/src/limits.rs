//! Limits of everything that a server or a slow reader can make grow.

use std::time::Duration;

/// Maximum number of bytes that wait to be written. Above this number, `publish` waits.
pub const WRITE_BUFFER_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of messages queued for a subscription. Above this number, new messages are dropped and
/// counted.
pub const SUBSCRIPTION_MESSAGES_MAX: usize = 512 * 1024;
/// Maximum number of bytes queued for a subscription. Above this number, new messages are dropped and
/// counted.
pub const SUBSCRIPTION_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of bytes of a protocol line. Above this number, the connection is closed. The number leaves
/// room for an INFO with the addresses of a large cluster.
pub const LINE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of header and payload bytes of a message. Above this number, the connection is closed.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of unread events. Above this number, the oldest are dropped.
pub const EVENTS_MAX: usize = 64;
/// Maximum number of pings without a response. Above this number, the connection is closed.
pub const PINGS_OUT_MAX: u32 = 2;

/// Number of free bytes in the buffer before each read.
pub(super) const READ_BYTES: usize = 128 * 1024;
/// Maximum number of consecutive reads before other tasks run.
pub(super) const READS_PER_POLL_MAX: u32 = 16;
/// Interval of pings.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(120);
