//! Leaf nodes: how one server is attached to another, byte by byte as in `docs/formats/leaf.md`.
//!
//! A *hub* listens and a *spoke* dials; once they have agreed, both do the same. Here are the lines of
//! the protocol. What a leaf connection does to a server is in `session/leaf/`.

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
pub(crate) use info::{Port, Told as InfoTold, Welcome, line as info_line};
pub(crate) use write::{write_head, write_interest, write_start};

/// The shard that serves all leafs: what one of them wants is then known where the others are.
pub(crate) const LEAF_SHARD: u16 = 0;

/// The longest line of a leaf, its payload aside. More: `maximum control line exceeded`, closed.
pub const LEAF_LINE_BYTES_MAX: usize = 64 * 1024;

/// What begins the subjects by which loops are found.
pub(crate) const LOOPS: &[u8] = b"$LDS.";

/// What both say of their protocol.
pub(crate) const PROTOCOL: u8 = 3;

/// How long a spoke waits before it dials again, after what will not pass soon: a loop, a clash of
/// names, something that it may not do.
pub(crate) const RETRY_AFTER_CLASH: Duration = Duration::from_secs(30);
/// The same when the hub wants a newer server.
pub(crate) const RETRY_AFTER_VERSION: Duration = Duration::from_secs(5);
