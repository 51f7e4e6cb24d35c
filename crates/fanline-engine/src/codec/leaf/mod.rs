//! Leaf nodes: how one server is attached to another, byte by byte as in `docs/formats/leaf.md`.
//!
//! A *hub* listens and a *spoke* dials; once they have agreed, both do the same. Here are the lines of
//! the protocol and what is known of one link. What a link does to a server is in `shard/leafs/`.

mod compression;
mod connect;
mod error;
mod info;
mod link;
pub mod parse;
mod rules;
mod told;
mod write;

use std::sync::Arc;
use std::time::Duration;

use crate::auth::Access;
use crate::codec::nats::info::TlsTold;

pub(crate) use compression::level_name;
pub use compression::{Compressed, LeafCompression};
pub(crate) use connect::LeafConnect;
pub use error::LeafError;
pub use info::LeafInfo;
pub(crate) use info::{Told as InfoTold, Welcome, line as info_line};
pub(crate) use link::{Leaf, Phase, Side};
pub use link::{LeafCredentials, LeafEnded, LeafStatus};
pub(crate) use rules::Rules;
pub(crate) use told::{Key, Told};
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

/// A server to be attached to, as far as the engine cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafRemote {
    /// A number that no other has as long as the server runs.
    pub id: u64,
    /// The account here.
    pub account: String,
    /// This side is the hub, though it dials.
    pub is_hub: bool,
    /// Subjects that are not taken from there.
    pub deny_imports: Vec<String>,
    /// Subjects that do not go there.
    pub deny_exports: Vec<String>,
    /// What other leafs want is not told to it.
    pub isolates: bool,
    /// It is asked to keep what its other leafs want to itself.
    pub requests_isolation: bool,
}

/// What is agreed on before the session of a link begins.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// When it was greeted, if that was before: the time to answer counts from then.
    pub greeted_at: Option<Duration>,
    /// Nothing is compressed when `None`.
    pub compressed: Option<Compressed>,
}

/// What a listener for leafs needs to know.
#[derive(Clone, Debug, Default)]
pub struct LeafListener {
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// What leafs are told of where it is, as `host:port`.
    pub urls: Vec<String>,
    /// What leafs have to know of TLS.
    pub tls: TlsTold,
    /// Who may come as a leaf, if not those who may come as clients. Accounts are found by name.
    pub access: Option<Arc<Access>>,
    /// The account of those who need not say who they are; `$G` when `None`.
    pub account: Option<String>,
    /// All must come through a proxy that is trusted.
    pub needs_proxy: bool,
    /// The oldest version that may come.
    pub min_version: Option<String>,
    /// What one leaf wants is not told to others.
    pub isolates: bool,
    /// Whether links are compressed.
    pub compression: LeafCompression,
}

/// A connection to a hub, whose INFO has come.
#[derive(Clone, Debug, Default)]
pub struct Dialled {
    /// What for.
    pub remote: Arc<LeafRemote>,
    /// What the hub has said.
    pub info: LeafInfo,
    /// What it is shown.
    pub credentials: LeafCredentials,
}
