//! The settings of routes.

use std::fmt;
use std::time::Duration;

/// The settings of routes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RouteSettings {
    /// The host name or address that the listener for routes binds.
    pub host: String,
    /// The port that the listener for routes binds.
    pub port: u16,
    /// The address that peers dial, as `host:port`; `None` means the address that they see.
    pub advertise: Option<String>,
    /// The user name that peers must send; empty if they need none.
    pub user: String,
    /// The password that peers must send.
    pub password: String,
    /// Whether routes use TLS.
    pub has_tls: bool,
    /// Time until a route must be registered, on both sides. Then it is closed.
    pub auth_timeout: Duration,
    /// Addresses for clients, as `host:port`, which peers advertise.
    pub client_urls: Vec<String>,
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for RouteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteSettings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("advertise", &self.advertise)
            .finish_non_exhaustive()
    }
}
