//! The leaf protocol, by which one server is attached to another; `docs/formats/leaf.md` describes the bytes.
//!
//! A *hub* listens and a *spoke* dials; after the handshake both do the same. `session/leaf/` has what a leaf
//! connection does to a server.

mod compression;
mod connect;
mod error;
mod info;
pub mod parse;
mod write;

use std::time::Duration;

pub(crate) use compression::level_name;
pub use compression::{Compressed, LeafCompression};
pub(crate) use connect::LeafConnect;
pub use error::LeafError;
pub use info::{LeafInfo, Subjects};
pub(crate) use info::{Port, Told as InfoRecipient, Welcome, line as info_line};
pub(crate) use write::{write_head, write_interest, write_start};

/// The shard that serves all leaf connections, so that the interest of each is known where the others are.
pub(crate) const LEAF_SHARD: u16 = 0;

/// The longest line, without a payload. More: `maximum control line exceeded`, closed.
pub const LEAF_LINE_BYTES_MAX: usize = 64 * 1024;

/// Prefix of loop subjects.
pub(crate) const LOOPS: &[u8] = b"$LDS.";

/// The version of the protocol.
pub(crate) const PROTOCOL: u8 = 3;

/// The delay before a spoke dials again after an error that lasts: a loop, a clash of names, a violation of
/// permissions.
pub(crate) const RETRY_AFTER_CLASH: Duration = Duration::from_secs(30);
/// The same if the hub requires a newer server.
pub(crate) const RETRY_AFTER_VERSION: Duration = Duration::from_secs(5);
