//! Options of gateways.

use std::fmt;
use std::time::Duration;

use super::TlsOptions;
use crate::client::url::Url;

/// The connections of a cluster to other clusters. All servers of the cluster need the same block.
///
/// ```
/// use fanline_server::{GatewayOptions, Options, RemoteGateway};
///
/// let options = Options {
///     gateway: Some(GatewayOptions {
///         name: "east".into(),
///         port: 7222,
///         gateways: vec![RemoteGateway {
///             name: "west".into(),
///             urls: vec!["nats://west-1.example:7222".into()],
///         }],
///         ..GatewayOptions::default()
///     }),
///     ..Options::default()
/// };
/// assert!(options.gateway.is_some());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct GatewayOptions {
    /// Name of this server's cluster.
    pub name: String,
    /// Address or host name to listen on for gateways.
    pub host: String,
    /// Port for gateways; 0 lets the system choose.
    pub port: u16,
    /// User name that other clusters must send, and that this server sends; none if `None`.
    pub user: Option<String>,
    /// Password of `user`.
    pub password: Option<String>,
    /// TLS between the clusters, from the first byte; none if `None`. Each side must present a certificate that
    /// the other one accepts, so it needs a certificate for both directions.
    pub tls: Option<TlsOptions>,
    /// Time limit of the handshake, after that of TLS.
    pub auth_timeout: Duration,
    /// Address that other clusters dial, as `host:port` or `host`.
    pub advertise: Option<String>,
    /// Number of further attempts to reach a cluster that is not configured.
    pub connect_retries: u32,
    /// Whether the delay between attempts doubles, up to 30 s, instead of staying at 1 s.
    pub connect_backoff: bool,
    /// Whether clusters that are not among `gateways` are refused.
    pub rejects_unknown: bool,
    /// The other clusters. An entry with the name of this one has no effect.
    pub gateways: Vec<RemoteGateway>,
}

/// Another cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteGateway {
    /// Its name.
    pub name: String,
    /// URLs of its servers, such as `nats://user:password@host:7222`. One of them is enough to find the others.
    pub urls: Vec<String>,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        GatewayOptions {
            name: String::new(),
            host: "127.0.0.1".into(),
            port: 0,
            user: None,
            password: None,
            tls: None,
            auth_timeout: Duration::from_secs(2),
            advertise: None,
            connect_retries: 0,
            connect_backoff: false,
            rejects_unknown: false,
            gateways: Vec::new(),
        }
    }
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayOptions")
            .field("name", &self.name)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("gateways", &self.gateways)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteGateway")
            .field("name", &self.name)
            .field("urls", &self.shown_urls())
            .finish()
    }
}

impl RemoteGateway {
    /// Returns the URLs without users and passwords.
    pub(crate) fn shown_urls(&self) -> Vec<String> {
        let shown = |url: &String| Url::split(url).without_user_info();
        self.urls.iter().map(shown).collect()
    }
}
