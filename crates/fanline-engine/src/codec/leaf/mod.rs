//! The leaf protocol, which connects a leaf node to another server; `docs/formats/leaf.md` describes the
//! bytes.
//!
//! A *hub* listens and a *spoke* dials. After the handshake, both sides behave the same. `session/leaf/`
//! contains the sessions of leaf connections.

mod connect;
mod error;
mod info;
pub mod parse;
mod write;

use std::time::Duration;

pub(crate) use connect::LeafConnect;
pub use error::LeafError;
pub(crate) use info::{InfoRecipient, Port, Welcome, line as info_line};
pub use info::{LeafInfo, Subjects};
pub(crate) use write::{write_head, write_interest, write_start};

/// The shard that serves all leaf connections. One shard thus knows the interest of all of them.
pub(crate) const LEAF_SHARD: u16 = 0;

/// Largest length in bytes of a line, without a payload. If a line is longer, the peer receives `maximum
/// control line exceeded` and is disconnected.
pub const LEAF_LINE_BYTES_MAX: usize = 64 * 1024;

/// Prefix of loop subjects.
pub(crate) const LOOPS: &[u8] = b"$LDS.";

/// The version of the protocol.
pub(crate) const PROTOCOL: u8 = 3;

/// Delay before a spoke dials again after a lasting error: a loop, a name conflict, or a permissions
/// violation.
pub(crate) const RETRY_AFTER_CLASH: Duration = Duration::from_secs(30);
/// Delay before a spoke dials again if the hub requires a newer version.
pub(crate) const RETRY_AFTER_VERSION: Duration = Duration::from_secs(5);
