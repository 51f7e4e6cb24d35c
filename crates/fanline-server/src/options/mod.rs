//! Options of a server.

mod cluster;
mod dashboard;
mod directory;
mod encryption;
mod gateway;
mod leafnodes;
mod listener;
mod mqtt;
mod tls;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

pub use cluster::ClusterOptions;
pub use dashboard::Dashboard;
pub use directory::DirectoryOptions;
pub use encryption::{Cipher, Encryption, Secret};
pub use fanline_engine::jetstream::{AssetLimits, BatchLimits};
pub use fanline_engine::store::SyncMode;
pub use fanline_engine::{Auth, Limits};
pub use gateway::{GatewayOptions, RemoteGateway};
pub use leafnodes::{
    CompressionLevel, LEAFNODE_PORT, LeafnodeListener, LeafnodeOptions, LeafnodeProxy,
    LeafnodeRemote, LeafnodeUser, LinkCompression,
};
pub use mqtt::MqttOptions;
pub use tls::{Certificate, ClientCertificates, TlsHandshake, TlsOptions, TlsVersion};
pub use websocket::WebSocketOptions;

/// Options of a server. Start from [`Options::default`].
///
/// ```
/// let options = fanline_server::Options {
///     port: 0, // any free port
///     ..Default::default()
/// };
/// assert_eq!(options.host, "127.0.0.1");
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Address or host name to listen on. The default is `127.0.0.1`, so that a server is not open to the
    /// network by accident.
    pub host: String,
    /// Port for NATS clients; 0 lets the system choose.
    pub port: u16,
    /// Program name in the log. A program that replaces nats-server uses nats-server's name.
    pub program_name: String,
    /// `server_name` in INFO; the server's id when `None`.
    pub server_name: Option<String>,
    /// Name of the server's cluster, in INFO and monitoring. Leaf nodes of servers with the same cluster name
    /// do not forward each other's messages.
    pub cluster_name: Option<String>,
    /// Membership in the cluster: the listener for routes, and other servers.
    pub cluster: Option<ClusterOptions>,
    /// Connections of the cluster to other clusters.
    pub gateway: Option<GatewayOptions>,
    /// Tags in monitoring and system account events, in lower case.
    pub server_tags: Vec<String>,
    /// Metadata next to the tags.
    pub server_metadata: BTreeMap<String, String>,
    /// Host and port of monitoring over HTTP; port 0 lets the system choose.
    pub monitoring: Option<(String, u16)>,
    /// Prefix of monitoring paths, such as `/nats`; may be empty.
    pub monitoring_base_path: String,
    /// Whether monitoring uses HTTPS, with the certificates of [`Options::tls`] (`https_port`).
    pub monitoring_tls: bool,
    /// Permissions of the dashboard on the monitoring port.
    pub dashboard: Dashboard,
    /// TLS for NATS clients; no TLS if `None`.
    pub tls: Option<TlsOptions>,
    /// Whether clients may connect without TLS even if it is configured.
    pub allow_non_tls: bool,
    /// The listener for WebSocket clients.
    pub websocket: Option<WebSocketOptions>,
    /// The listener for MQTT clients.
    pub mqtt: Option<MqttOptions>,
    /// Leaf nodes: listener and remotes.
    pub leafnodes: LeafnodeOptions,
    /// Path of an additional unix socket. A socket file that a stopped server has left is replaced.
    pub unix_socket: Option<PathBuf>,
    /// Whether connections may begin with a PROXY header (version 1 or 2), which contains the client's
    /// address. The server trusts the header, so only trusted proxies may be able to connect.
    pub proxy_protocol: bool,
    /// Number of shards (threads). If `None`, half the number of cores, rounded up.
    pub shards: Option<NonZeroUsize>,
    /// Users and credentials.
    pub auth: Auth,
    /// Limits of clients.
    pub limits: Limits,
    /// Largest number of closed connections that are stored for monitoring. The oldest is removed first.
    pub closed_clients_max: usize,
    /// Time over which lame duck mode closes all clients.
    pub lame_duck_duration: Duration,
    /// Delay before lame duck mode closes the first client.
    pub lame_duck_grace_period: Duration,
    /// Address in INFO instead of the listening address, as `host:port`.
    pub client_advertise: Option<String>,
    /// Folder for `<program>_<pid>.ports`.
    pub ports_file_dir: Option<PathBuf>,
    /// PID file.
    pub pid_file: Option<PathBuf>,
    /// JetStream; disabled if `None`.
    pub jetstream: Option<JetStreamOptions>,
    /// The configuration file that these options come from, for the log.
    pub origin: Option<Origin>,
    /// Whether to emit a `tracing` event at TRACE for every protocol line (nats-server's `-V`).
    pub trace_protocol: bool,
    /// Whether the server sends no events to the system account and answers no requests there.
    pub no_system_account: bool,
    /// Source of unknown accounts in operator mode.
    pub resolver: Option<ResolverOptions>,
}

/// A source of accounts in operator mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolverOptions {
    /// Only the configured accounts.
    #[default]
    Memory,
    /// A folder.
    Directory(DirectoryOptions),
    /// A web server.
    Url(UrlOptions),
}

/// A web server with account tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlOptions {
    /// `http://` or `https://` URL. An account's key is appended to it.
    pub url: String,
    /// TLS options; the system's authorities if `None`.
    pub tls: Option<TlsOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: "127.0.0.1".into(),
            port: 4222,
            program_name: "Fanline".into(),
            server_name: None,
            cluster_name: None,
            cluster: None,
            gateway: None,
            server_tags: Vec::new(),
            server_metadata: BTreeMap::new(),
            monitoring: None,
            monitoring_base_path: String::new(),
            monitoring_tls: false,
            dashboard: Dashboard::default(),
            tls: None,
            allow_non_tls: false,
            websocket: None,
            mqtt: None,
            leafnodes: LeafnodeOptions::default(),
            unix_socket: None,
            proxy_protocol: false,
            shards: None,
            auth: Auth::Open,
            limits: Limits::default(),
            closed_clients_max: 10_000,
            lame_duck_duration: Duration::from_secs(120),
            lame_duck_grace_period: Duration::from_secs(10),
            client_advertise: None,
            ports_file_dir: None,
            pid_file: None,
            jetstream: None,
            origin: None,
            trace_protocol: false,
            no_system_account: false,
            resolver: None,
        }
    }
}

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The path as it was configured.
    pub path: PathBuf,
    /// `sha256:…` of the file's values. nats-server computes the same digest.
    pub digest: String,
}

/// Options of JetStream.
///
/// ```
/// use fanline_server::{JetStreamOptions, Options};
///
/// let options = Options {
///     jetstream: Some(JetStreamOptions {
///         store_dir: Some("/var/lib/fanline".into()),
///         ..Default::default()
///     }),
///     ..Default::default()
/// };
/// assert!(options.jetstream.is_some());
/// ```
#[derive(Clone, Debug)]
pub struct JetStreamOptions {
    /// Folder of stored streams. They are in its subfolder `jetstream/fanline`, or in `fanline` if the
    /// folder's own name is `jetstream`. Only one server can use the folder at a time. If `None`, streams are
    /// in memory only.
    pub store_dir: Option<PathBuf>,
    /// Largest size of all streams in memory, in bytes; three quarters of the machine's memory if `None`.
    pub memory_bytes_max: Option<u64>,
    /// Largest size of all streams on disk, in bytes; three quarters of the free space at the start if
    /// `None`.
    pub file_bytes_max: Option<u64>,
    /// Condition under which a stored message is acknowledged. A stream may configure its own.
    pub sync: SyncMode,
    /// The JetStream domain. The API is then also available at `$JS.<domain>.API.>`.
    pub domain: Option<String>,
    /// Whether to reject requests with unknown fields, as nats-server does.
    pub strict: bool,
    /// Limits of each stream and consumer.
    pub asset_limits: AssetLimits,
    /// Encryption of stored streams; off if `None`.
    pub encryption: Option<Encryption>,
}

impl Default for JetStreamOptions {
    fn default() -> Self {
        JetStreamOptions {
            store_dir: None,
            memory_bytes_max: None,
            file_bytes_max: None,
            sync: SyncMode::default(),
            domain: None,
            strict: true,
            asset_limits: AssetLimits::default(),
            encryption: None,
        }
    }
}

/// Addresses of a started server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The address for NATS clients.
    pub clients: SocketAddr,
    /// The address of monitoring, if enabled.
    pub monitoring: Option<SocketAddr>,
    /// The address for WebSocket clients, if enabled.
    pub websocket: Option<SocketAddr>,
    /// The address for MQTT clients, if enabled.
    pub mqtt: Option<SocketAddr>,
    /// The address for leaf nodes, if enabled.
    pub leafnodes: Option<SocketAddr>,
    /// The address for routes, if enabled.
    pub cluster: Option<SocketAddr>,
    /// The address for gateways, if enabled.
    pub gateway: Option<SocketAddr>,
}
