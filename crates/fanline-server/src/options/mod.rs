//! Everything that a server can be told before it starts.

mod dashboard;
mod directory;
mod encryption;
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

pub use dashboard::Dashboard;
pub use directory::DirectoryOptions;
pub use encryption::{Cipher, Encryption, Secret};
pub use fanline_engine::jetstream::{AssetLimits, BatchLimits};
pub use fanline_engine::store::SyncMode;
pub use fanline_engine::{Auth, Limits};
pub use leafnodes::{
    CompressionLevel, LEAFNODE_PORT, LeafCompression, LeafnodeListener, LeafnodeOptions,
    LeafnodeProxy, LeafnodeRemote, LeafnodeUser,
};
pub use mqtt::MqttOptions;
pub use tls::{Certificate, ClientCertificates, TlsHandshake, TlsOptions, TlsVersion};
pub use websocket::WebSocketOptions;

/// How a server is set up. Start from [`Options::default`] and change what differs.
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
    /// Address or host name to listen on. The default is `127.0.0.1`: nobody gets an open broker
    /// by accident.
    pub host: String,
    /// Port for NATS clients; 0 lets the system choose.
    pub port: u16,
    /// What the log says is starting: programs that stand in for nats-server say its name.
    pub program_name: String,
    /// `server_name` in INFO; the server's id when `None`.
    pub server_name: Option<String>,
    /// The name of the server's cluster, in INFO and monitoring. There are no routes to other servers: leaf
    /// nodes of servers with the same name do not forward each other's messages.
    pub cluster_name: Option<String>,
    /// Tags that monitoring and events of the system account tell of, in lower case.
    pub server_tags: Vec<String>,
    /// More that is told with them.
    pub server_metadata: BTreeMap<String, String>,
    /// Where to serve monitoring over HTTP, as host and port; port 0 lets the system choose.
    pub monitoring: Option<(String, u16)>,
    /// What the paths of monitoring begin with, as `/nats`; nothing when empty.
    pub monitoring_base_path: String,
    /// Serve monitoring over HTTPS, with the certificates of [`Options::tls`] (`https_port`).
    pub monitoring_tls: bool,
    /// What the dashboard at the monitoring port may do.
    pub dashboard: Dashboard,
    /// TLS for NATS clients; none when `None`.
    pub tls: Option<TlsOptions>,
    /// Clients may come without TLS although there is some.
    pub allow_non_tls: bool,
    /// A listener for WebSocket clients.
    pub websocket: Option<WebSocketOptions>,
    /// A listener for MQTT clients.
    pub mqtt: Option<MqttOptions>,
    /// Servers that attach to this one, and those that it attaches to.
    pub leafnodes: LeafnodeOptions,
    /// Path of a unix socket to listen on as well. A socket that a server left there is replaced.
    pub unix_socket: Option<PathBuf>,
    /// Connections may begin with a line of the PROXY protocol (1 or 2) that tells whose they
    /// are. Only for servers that nobody reaches but through such a proxy: it is believed.
    pub proxy_protocol: bool,
    /// How many shards (threads) share the connections; the measured default when `None`.
    pub shards: Option<NonZeroUsize>,
    /// What clients must show.
    pub auth: Auth,
    /// What clients are granted.
    pub limits: Limits,
    /// Closed clients that are remembered for monitoring; the oldest is forgotten first.
    pub closed_clients_max: usize,
    /// Over how long the clients are closed in lame duck mode.
    pub lame_duck_duration: Duration,
    /// How long lame duck mode waits before it closes the first client.
    pub lame_duck_grace_period: Duration,
    /// Address told to clients in INFO instead of the one listened on, as `host:port`.
    pub client_advertise: Option<String>,
    /// Folder for `<program>_<pid>.ports`.
    pub ports_file_dir: Option<PathBuf>,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
    /// Streams that keep what is published; none when `None`.
    pub jetstream: Option<JetStreamOptions>,
    /// The file that this was read from, for the log.
    pub origin: Option<Origin>,
    /// Emit a `tracing` event at TRACE for every protocol line (nats-server's `-V`).
    pub trace_protocol: bool,
    /// Nothing is told or answered in the system account.
    pub no_system_account: bool,
    /// In operator mode, where accounts are that this server was not told of.
    pub resolver: Option<ResolverOptions>,
}

/// Where a server in operator mode looks for accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolverOptions {
    /// Nowhere: it knows those that it was told of.
    #[default]
    Memory,
    /// In a folder.
    Directory(DirectoryOptions),
    /// On a web server.
    Url(UrlOptions),
}

/// A web server with tokens of accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlOptions {
    /// `http://` or `https://`: an account's key is appended to it.
    pub url: String,
    /// What TLS is begun with; as the system trusts when `None`.
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
    /// The file, as it was named.
    pub path: PathBuf,
    /// `sha256:…` of its values, the same as nats-server's.
    pub digest: String,
}

/// How JetStream is set up.
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
    /// The folder that streams are stored below: in `jetstream/fanline`, or in `fanline` if it is called
    /// `jetstream` itself. It belongs to one server at a time. Without it there are streams in memory only.
    pub store_dir: Option<PathBuf>,
    /// Bytes of all streams in memory; three quarters of the machine's memory when `None`.
    pub memory_bytes_max: Option<u64>,
    /// Bytes of all streams on disk; three quarters of what is free there at the start when `None`.
    pub file_bytes_max: Option<u64>,
    /// When an acknowledgement may be sent, unless a stream says otherwise.
    pub sync: SyncMode,
    /// The domain: `$JS.<domain>.API.>` is answered too.
    pub domain: Option<String>,
    /// Refuse requests with fields that nobody knows, as nats-server does.
    pub strict: bool,
    /// What each stream and each consumer may have.
    pub asset_limits: AssetLimits,
    /// How streams on disk are encrypted; not at all when `None`.
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

/// Where a started server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For NATS clients.
    pub clients: SocketAddr,
    /// For monitoring over HTTP, when it is on.
    pub monitoring: Option<SocketAddr>,
    /// For WebSocket clients, when that is on.
    pub websocket: Option<SocketAddr>,
    /// For MQTT clients, when that is on.
    pub mqtt: Option<SocketAddr>,
    /// For leaf nodes, when that is on.
    pub leafnodes: Option<SocketAddr>,
}
