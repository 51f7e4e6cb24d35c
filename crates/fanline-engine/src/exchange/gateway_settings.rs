//! The settings of gateways.

use std::fmt;
use std::time::Duration;

/// The settings of gateways.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Name of this server's cluster.
    pub name: String,
    /// The host name or address that the listener for gateways binds.
    pub host: String,
    /// The port that the listener for gateways binds.
    pub port: u16,
    /// The address that other clusters dial, as `host:port`.
    pub url: String,
    /// The user name that dialers must send; empty if they need none.
    pub user: String,
    /// The password that dialers must send.
    pub password: String,
    /// Whether gateways use TLS.
    pub has_tls: bool,
    /// Time until a connection must be registered, on both sides. Then it is closed.
    pub auth_timeout: Duration,
    /// Names of the configured clusters.
    pub configured: Vec<String>,
    /// Whether other clusters than the configured ones are refused.
    pub rejects_unknown: bool,
}

impl GatewaySettings {
    /// Returns whether a cluster may connect.
    pub(crate) fn admits(&self, gateway: &str) -> bool {
        !self.rejects_unknown || self.configured.iter().any(|known| known == gateway)
    }
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for GatewaySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewaySettings")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
