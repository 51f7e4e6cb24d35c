//! Leaf nodes: servers that attach to this one, and those that it attaches to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fanline_engine::auth::User;
pub use fanline_engine::codec::leaf::LeafCompression;
pub use fanline_engine::codec::s2::Level as CompressionLevel;

use super::TlsOptions;
use crate::client::url::Url;

/// The port of leaf nodes when an address names none.
pub const LEAFNODE_PORT: u16 = 7422;

/// How a server is attached to others, as hub, as spoke or both.
///
/// ```
/// use fanline_server::{LeafnodeOptions, LeafnodeRemote, Options};
///
/// let options = Options {
///     leafnodes: LeafnodeOptions {
///         remotes: vec![LeafnodeRemote::new("nats-leaf://hub.example:7422")],
///         ..LeafnodeOptions::default()
///     },
///     ..Options::default()
/// };
/// assert_eq!(options.leafnodes.remotes[0].account, "$G");
/// ```
#[derive(Clone, Debug)]
pub struct LeafnodeOptions {
    /// A listener for leaf nodes; none when `None`.
    pub listener: Option<LeafnodeListener>,
    /// Servers to be attached to.
    pub remotes: Vec<LeafnodeRemote>,
    /// How long to wait before a remote is dialled again. While nobody answers, it is more and more,
    /// up to eight times as long.
    pub reconnect: Duration,
    /// How long dialling may take.
    pub dial_timeout: Duration,
    /// Of how many attempts in a row to reach a remote one is logged, the first one always; `None` is
    /// the first few, and then one in a minute or so.
    pub connect_error_reports: Option<u64>,
    /// The same for a remote that was reached before.
    pub reconnect_error_reports: Option<u64>,
}

impl Default for LeafnodeOptions {
    fn default() -> Self {
        LeafnodeOptions {
            listener: None,
            remotes: Vec::new(),
            reconnect: Duration::from_secs(1),
            dial_timeout: Duration::from_secs(1),
            connect_error_reports: None,
            reconnect_error_reports: None,
        }
    }
}

/// A listener for leaf nodes.
#[derive(Clone, Debug)]
pub struct LeafnodeListener {
    /// Address or host name to listen on.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
    /// TLS; none when `None`.
    pub tls: Option<TlsOptions>,
    /// Address told to leaf nodes instead of the one listened on, as `host:port`.
    pub advertise: Option<String>,
    /// Leaf nodes are told no addresses.
    pub no_advertise: bool,
    /// Who may come as a leaf node, each with its account; clients' users when empty.
    pub users: Vec<LeafnodeUser>,
    /// The account of those who need not say who they are; `$G` when `None`.
    pub account: Option<String>,
    /// How long it may take to say who it is; as long as clients when `None`.
    pub auth_timeout: Option<Duration>,
    /// All must come through a proxy that is trusted, as clients do where that is asked of them.
    pub needs_proxy: bool,
    /// The oldest version that may come.
    pub min_version: Option<String>,
    /// What one leaf node wants is not told to others.
    pub isolates: bool,
    /// Whether links are compressed. Over WebSocket they are not where its own compression is on.
    pub compression: LeafCompression,
}

impl Default for LeafnodeListener {
    fn default() -> Self {
        LeafnodeListener {
            host: "127.0.0.1".into(),
            port: LEAFNODE_PORT,
            tls: None,
            advertise: None,
            no_advertise: false,
            users: Vec::new(),
            account: None,
            auth_timeout: None,
            needs_proxy: false,
            min_version: None,
            isolates: false,
            compression: LeafCompression::default(),
        }
    }
}

/// A user who may come as a leaf node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafnodeUser {
    /// Who it is, and what it may do.
    pub user: User,
    /// Its account; `$G` when `None`.
    pub account: Option<String>,
}

/// A server, or several of one cluster, to be attached to.
#[derive(Clone, PartialEq, Eq)]
pub struct LeafnodeRemote {
    /// `nats-leaf://user:password@host:7422` and its shorter forms, or `wss://host:443/path`; one of them is
    /// used at a time.
    pub urls: Vec<String>,
    /// The account here.
    pub account: String,
    /// A file with a user's JWT and the seed of its key.
    pub credentials: Option<PathBuf>,
    /// The seed of an nkey, or a file with it.
    pub nkey: Option<String>,
    /// TLS; as the address and the other server say when `None`.
    pub tls: Option<TlsOptions>,
    /// This side is the hub, though it dials.
    pub is_hub: bool,
    /// Subjects that are not taken from there.
    pub deny_imports: Vec<String>,
    /// Subjects that do not go there.
    pub deny_exports: Vec<String>,
    /// The addresses are tried in the order in which they stand.
    pub no_randomize: bool,
    /// How long the other server's first word may take.
    pub first_info_timeout: Duration,
    /// How long dialling may take; as of all remotes when `None`.
    pub dial_timeout: Option<Duration>,
    /// What other leaf nodes want is not told to it.
    pub isolates: bool,
    /// It is asked not to tell what its other leaf nodes want.
    pub requests_isolation: bool,
    /// It is not dialled.
    pub is_disabled: bool,
    /// Only addresses that are listed here are dialled, not those that the other server tells.
    pub ignore_discovered_servers: bool,
    /// Whether the link is compressed.
    pub compression: LeafCompression,
    /// Over WebSocket, its own compression is asked for instead.
    pub websocket_compression: bool,
    /// Over WebSocket, it is asked whether what is sent may go unmasked.
    pub websocket_no_masking: bool,
    /// The proxy by which it is reached; at once when `None`.
    pub proxy: Option<LeafnodeProxy>,
}

/// An HTTP proxy that is asked to connect to other servers (`CONNECT`).
#[derive(Clone, PartialEq, Eq)]
pub struct LeafnodeProxy {
    /// `http://host:port`, or `https://host:port` to speak to it by TLS.
    pub url: String,
    /// That TLS, with an `https` URL; as the system trusts when `None`.
    pub tls: Option<TlsOptions>,
    /// Who asks; with a password, or nobody.
    pub username: Option<String>,
    /// The password of `username`.
    pub password: Option<String>,
    /// How long it may take until the other server is reached; as long as dialling when `None`.
    pub timeout: Option<Duration>,
}

impl LeafnodeProxy {
    /// A proxy that asks nobody who it is.
    pub fn new(url: impl Into<String>) -> Self {
        LeafnodeProxy {
            url: url.into(),
            tls: None,
            username: None,
            password: None,
            timeout: None,
        }
    }
}

// It has a password, and secrets never reach a log.
impl fmt::Debug for LeafnodeProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafnodeProxy")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl LeafnodeRemote {
    /// A remote with one address, for `$G`.
    pub fn new(url: impl Into<String>) -> Self {
        LeafnodeRemote {
            urls: vec![url.into()],
            account: "$G".into(),
            credentials: None,
            nkey: None,
            tls: None,
            is_hub: false,
            deny_imports: Vec::new(),
            deny_exports: Vec::new(),
            no_randomize: false,
            first_info_timeout: Duration::from_secs(1),
            dial_timeout: None,
            isolates: false,
            requests_isolation: false,
            is_disabled: false,
            ignore_discovered_servers: false,
            compression: LeafCompression::default(),
            websocket_compression: false,
            websocket_no_masking: false,
            proxy: None,
        }
    }
}

// Addresses hold passwords, and secrets never reach a log.
impl fmt::Debug for LeafnodeRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafnodeRemote")
            .field("account", &self.account)
            .field("urls", &self.shown_urls())
            .finish_non_exhaustive()
    }
}

impl LeafnodeRemote {
    /// Whether a link to the one would be a link to the other: what they differ in, if anything, is how it is
    /// dialled.
    pub(crate) fn is_linked_as(&self, other: &LeafnodeRemote) -> bool {
        let linked = |remote: &LeafnodeRemote| LeafnodeRemote {
            tls: None,
            proxy: None,
            no_randomize: false,
            first_info_timeout: Duration::ZERO,
            dial_timeout: None,
            ignore_discovered_servers: false,
            ..remote.clone()
        };
        linked(self) == linked(other)
    }

    /// The addresses without credentials.
    pub fn shown_urls(&self) -> Vec<String> {
        let shown = self
            .urls
            .iter()
            .map(|url| Url::split(url).without_user_info());
        shown.collect()
    }
}
