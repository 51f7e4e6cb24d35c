//! NATS over WebSocket.

use std::time::Duration;

use std::sync::Arc;

use super::{Access, TlsOptions};

/// A listener for WebSocket connections.
///
/// ```
/// use fanline_server::{Options, WebSocketOptions};
///
/// let options = Options {
///     websocket: Some(WebSocketOptions { port: 9222, ..WebSocketOptions::default() }),
///     ..Options::default()
/// };
/// assert!(options.websocket.is_some());
/// ```
#[derive(Clone, Debug)]
pub struct WebSocketOptions {
    /// Address or host name to listen on.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
    /// TLS; `None` is `no_tls: true`.
    pub tls: Option<TlsOptions>,
    /// Address told to clients instead of the one listened on, as `host:port`.
    pub advertise: Option<String>,
    /// Pages must come from the host that they connect to.
    pub same_origin: bool,
    /// Pages must come from one of these (`https://example.org`); all may when empty.
    pub allowed_origins: Vec<String>,
    /// How long TLS and the upgrade may take. Longer: the connection is closed.
    pub handshake_timeout: Duration,
    /// Offer permessage-deflate.
    pub compression: bool,
    /// What WebSocket clients must show, instead of [`Options::access`](super::Options::access).
    pub access: Option<Arc<Access>>,
    /// User of WebSocket clients that show no credentials.
    pub no_auth_user: Option<String>,
    /// Cookie with a user's JWT, for clients whose CONNECT has none.
    pub jwt_cookie: Option<String>,
    /// The same with a user's name.
    pub user_cookie: Option<String>,
    /// The same with a password.
    pub pass_cookie: Option<String>,
    /// The same with a token.
    pub token_cookie: Option<String>,
    /// More headers of the response to an upgrade.
    pub headers: Vec<(String, String)>,
    /// Silence after which a client is pinged, instead of
    /// [`Limits::ping_interval`](super::Limits::ping_interval).
    pub ping_interval: Option<Duration>,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        WebSocketOptions {
            host: "127.0.0.1".into(),
            port: 0,
            tls: None,
            advertise: None,
            same_origin: false,
            allowed_origins: Vec::new(),
            handshake_timeout: Duration::from_secs(2),
            compression: false,
            access: None,
            no_auth_user: None,
            jwt_cookie: None,
            user_cookie: None,
            pass_cookie: None,
            token_cookie: None,
            headers: Vec::new(),
            ping_interval: None,
        }
    }
}
