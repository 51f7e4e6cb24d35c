//! Options of the cluster.

use std::fmt;
use std::time::Duration;

use fanline_engine::auth::Permissions;

use super::{LinkCompression, TlsOptions};
use crate::client::url::{Url, percent_decode, split_host_port};

/// A server's membership in a cluster: its listener for routes, and the servers that it dials.
///
/// The name is [`Options::cluster_name`](crate::Options::cluster_name).
///
/// ```
/// use fanline_server::{ClusterOptions, Options};
///
/// let options = Options {
///     cluster_name: Some("east".into()),
///     cluster: Some(ClusterOptions {
///         port: 6222,
///         routes: vec!["nats-route://east-2.example:6222".into()],
///         ..ClusterOptions::default()
///     }),
///     ..Options::default()
/// };
/// assert!(options.cluster.is_some());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Address or host name to listen on for routes.
    pub host: String,
    /// Port for routes; 0 lets the system choose.
    pub port: u16,
    /// URLs of other servers of the cluster, such as `nats-route://user:password@host:6222`. One of them is
    /// enough to find the others.
    pub routes: Vec<String>,
    /// User name that other servers must send; none if `None`.
    pub user: Option<String>,
    /// Password of `user`.
    pub password: Option<String>,
    /// TLS between the servers, from the first byte; none if `None`. Each side must present a certificate that
    /// the other one accepts, so it needs a certificate for both directions.
    pub tls: Option<TlsOptions>,
    /// Time limit of the handshake of a route, after that of TLS.
    pub auth_timeout: Duration,
    /// Address that other servers dial, as `host:port`; the address that they see if `None`.
    pub advertise: Option<String>,
    /// Whether other servers do not receive the addresses of this server for clients, and its clients not those
    /// of other servers.
    pub no_advertise: bool,
    /// Number of further attempts to reach a server that is not among `routes`.
    pub connect_retries: u32,
    /// Whether the delay between attempts doubles, up to 30 s, instead of staying at 1 s.
    pub connect_backoff: bool,
    /// Number of connections to each server, among which accounts are divided. 0 means one connection for all
    /// accounts, and none for `accounts`.
    pub pool_size: u32,
    /// Permissions of the other servers, in all accounts. They `publish` what this server imports, and
    /// `subscribe` to what it exports.
    pub permissions: Permissions,
    /// Names of accounts that have a connection of their own to each server. The system account always has one.
    pub accounts: Vec<String>,
    /// S2 compression between the servers. By default, a connection is compressed if the other server requests
    /// it.
    pub compression: LinkCompression,
}

/// Default number of connections to each server.
const POOL_SIZE: u32 = 3;

impl Default for ClusterOptions {
    fn default() -> Self {
        ClusterOptions {
            host: "127.0.0.1".into(),
            port: 0,
            routes: Vec::new(),
            user: None,
            password: None,
            tls: None,
            auth_timeout: Duration::from_secs(2),
            advertise: None,
            no_advertise: false,
            connect_retries: 0,
            connect_backoff: false,
            pool_size: POOL_SIZE,
            permissions: Permissions::default(),
            accounts: Vec::new(),
            compression: LinkCompression::Accept,
        }
    }
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("routes", &self.shown_routes())
            .finish_non_exhaustive()
    }
}

impl ClusterOptions {
    /// Sets the address to listen on, and the user and password that other servers must send, to those of a
    /// URL. The port -1 lets the system choose.
    ///
    /// # Errors
    ///
    /// Fails if the host or the port is invalid.
    ///
    /// ```
    /// let mut options = fanline_server::ClusterOptions::default();
    /// options.listen_at("nats://ada:secret@127.0.0.1:6222")?;
    /// assert_eq!((&*options.host, options.port), ("127.0.0.1", 6222));
    /// assert_eq!(options.user.as_deref(), Some("ada"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn listen_at(&mut self, url: &str) -> Result<(), String> {
        let parts = Url::split(url.trim());
        let (location, _) = parts.host_and_path();
        let invalid = |why: &str| {
            let shown = parts.without_user_info();
            format!("cluster address {shown:?} {why}")
        };
        let (host, port) = split_host_port(location).map_err(invalid)?;
        self.port = match port {
            None => return Err(invalid("has no port")),
            Some("-1") => 0,
            Some(port) => port.parse().map_err(|_| invalid("has an invalid port"))?,
        };
        host.clone_into(&mut self.host);
        let decode = |text: &str| String::from_utf8_lossy(&percent_decode(text).0).into_owned();
        let user_info = parts
            .user_info
            .map(|info| info.split_once(':').unwrap_or((info, "")));
        self.user = user_info.map(|(user, _)| decode(user));
        self.password = user_info.map(|(_, password)| decode(password));
        Ok(())
    }

    /// Returns the route URLs without users and passwords.
    pub(crate) fn shown_routes(&self) -> Vec<String> {
        let shown = |url: &String| Url::split(url).without_user_info();
        self.routes.iter().map(shown).collect()
    }
}
