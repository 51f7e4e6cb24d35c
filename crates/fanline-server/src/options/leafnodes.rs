//! Options of leaf nodes, as hub and as spoke.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fanline_engine::auth::User;
pub use fanline_engine::codec::s2::Level as CompressionLevel;
pub use fanline_engine::leaf::LinkCompression;

use super::TlsOptions;
use crate::client::url::Url;

/// The default port of leaf nodes.
pub const LEAFNODE_PORT: u16 = 7422;

/// Options of leaf nodes: a listener for a hub, remotes for a spoke.
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
    /// The listener for leaf nodes, if there is one.
    pub listener: Option<LeafnodeListener>,
    /// Remote servers to connect to as a leaf node.
    pub remotes: Vec<LeafnodeRemote>,
    /// Delay before a remote is dialed again. While the remote does not answer, the delay grows to at most
    /// eight times this value.
    pub reconnect: Duration,
    /// Time limit of a connection attempt.
    pub dial_timeout: Duration,
    /// How often failures of the first connection to a remote are logged: a value `n` logs the first attempt,
    /// and every `n`th attempt. `None` logs the first few attempts, then about one per minute.
    pub connect_error_reports: Option<u64>,
    /// How often failures of a reconnection to a remote are logged. The value has the same meaning as that of
    /// `connect_error_reports`.
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
    /// Address to advertise instead of the listening one, as `host:port`.
    pub advertise: Option<String>,
    /// Whether to advertise no addresses.
    pub no_advertise: bool,
    /// Users of leaf nodes, each with its account; the users of clients if empty.
    pub users: Vec<LeafnodeUser>,
    /// Account of leaf nodes without credentials; `$G` if `None`.
    pub account: Option<String>,
    /// Time limit of authentication; the limit of clients if `None`.
    pub auth_timeout: Option<Duration>,
    /// Whether leaf nodes must connect through a trusted proxy.
    pub needs_proxy: bool,
    /// The oldest accepted version of nats-server.
    pub min_version: Option<String>,
    /// Whether subscriptions of one leaf node are not sent to others.
    pub isolates: bool,
    /// Compression of connections. It is off on WebSocket connections that use WebSocket compression.
    pub compression: LinkCompression,
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
            compression: LinkCompression::default(),
        }
    }
}

/// A user for leaf nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafnodeUser {
    /// Name, credentials, and permissions.
    pub user: User,
    /// The user's account; `$G` if `None`.
    pub account: Option<String>,
}

/// A remote server, or several of one cluster, to connect to as a leaf node.
#[derive(Clone, PartialEq, Eq)]
pub struct LeafnodeRemote {
    /// URLs: `nats-leaf://user:password@host:7422` and its shorter forms, or `wss://host:443/path`. The
    /// server connects to one of them at a time.
    pub urls: Vec<String>,
    /// The local account.
    pub account: String,
    /// A credentials file with a user's JWT and nkey seed.
    pub credentials: Option<PathBuf>,
    /// An nkey seed, or a file with one.
    pub nkey: Option<String>,
    /// TLS options; if `None`, the URL and the remote's INFO decide.
    pub tls: Option<TlsOptions>,
    /// Whether this server is the hub, although it opens the connection.
    pub is_hub: bool,
    /// Subjects that are not imported from the remote.
    pub deny_imports: Vec<String>,
    /// Subjects that are not exported to the remote.
    pub deny_exports: Vec<String>,
    /// Whether URLs are tried in order instead of randomly.
    pub no_randomize: bool,
    /// Time limit until the remote sends INFO.
    pub first_info_timeout: Duration,
    /// Time limit of a connection attempt; [`LeafnodeOptions::dial_timeout`] if `None`.
    pub dial_timeout: Option<Duration>,
    /// Whether subscriptions of other leaf nodes are not sent to the remote.
    pub isolates: bool,
    /// Whether to request that the remote does not send subscriptions of its other leaf nodes.
    pub requests_isolation: bool,
    /// Whether the remote is not dialed.
    pub is_disabled: bool,
    /// Whether addresses that the remote advertises are ignored.
    pub ignore_discovered_servers: bool,
    /// Compression of the connection.
    pub compression: LinkCompression,
    /// Over WebSocket, whether to request WebSocket compression instead of leaf node compression.
    pub websocket_compression: bool,
    /// Over WebSocket, whether to request frames without masks.
    pub websocket_no_masking: bool,
    /// The proxy to the remote, if there is one.
    pub proxy: Option<LeafnodeProxy>,
}

/// An HTTP proxy with support for `CONNECT`.
#[derive(Clone, PartialEq, Eq)]
pub struct LeafnodeProxy {
    /// `http://host:port`, or `https://host:port` for TLS to the proxy.
    pub url: String,
    /// TLS options for an `https` URL; the system's authorities if `None`.
    pub tls: Option<TlsOptions>,
    /// User name for the proxy; requires a password.
    pub username: Option<String>,
    /// The password of `username`.
    pub password: Option<String>,
    /// Time limit until the proxy has connected to the remote; the dial timeout if `None`.
    pub timeout: Option<Duration>,
}

impl LeafnodeProxy {
    /// Returns a proxy without credentials.
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

// The URL and the password are omitted, because secrets must not appear in a log.
impl fmt::Debug for LeafnodeProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafnodeProxy")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl LeafnodeRemote {
    /// Returns a remote with one URL, for the account `$G`.
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
            compression: LinkCompression::default(),
            websocket_compression: false,
            websocket_no_masking: false,
            proxy: None,
        }
    }
}

// Secrets must not appear in a log, and URLs may contain passwords.
impl fmt::Debug for LeafnodeRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafnodeRemote")
            .field("account", &self.account)
            .field("urls", &self.shown_urls())
            .finish_non_exhaustive()
    }
}

impl LeafnodeRemote {
    /// Returns whether both remotes describe the same connection. They may differ in options that apply only
    /// while the server dials.
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

    /// Returns the URLs without credentials.
    pub fn shown_urls(&self) -> Vec<String> {
        let shown = self
            .urls
            .iter()
            .map(|url| Url::split(url).without_user_info());
        shown.collect()
    }
}
