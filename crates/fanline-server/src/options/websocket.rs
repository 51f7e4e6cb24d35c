//! Options of WebSocket.

use std::time::Duration;

use fanline_engine::auth::ListenerAccess;
use fanline_engine::codec::websocket::{CookieNames, Origin, UpgradeRules};

use super::{Auth, TlsOptions, listener};

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
    /// Address that all servers of the cluster advertise to WebSocket clients, as `host:port`; the one of the
    /// listener if `None`.
    pub advertise: Option<String>,
    /// Whether a web page may connect only to the host that it was loaded from.
    pub same_origin: bool,
    /// Accepted origins of pages (`https://example.org`); all if empty.
    pub allowed_origins: Vec<String>,
    /// Time limit of TLS and the upgrade. When it expires, the connection is closed.
    pub handshake_timeout: Duration,
    /// Whether to offer permessage-deflate.
    pub compression: bool,
    /// Credentials of WebSocket clients instead of [`Options::auth`](super::Options::auth): one token, or one
    /// user and password. [`Auth::Open`] changes nothing.
    pub auth: Option<Auth>,
    /// User of WebSocket clients without credentials, in place of the server's `no_auth_user`. Unless `auth`
    /// is set, the server's users and accounts apply as well.
    pub no_auth_user: Option<String>,
    /// Time limit of authentication after the upgrade, instead of
    /// [`Limits::auth_timeout`](super::Limits::auth_timeout).
    pub auth_timeout: Option<Duration>,
    /// Name of the cookie with a user's JWT, for clients whose CONNECT has none.
    pub jwt_cookie: Option<String>,
    /// Name of the cookie with a user name.
    pub user_cookie: Option<String>,
    /// Name of the cookie with a password.
    pub pass_cookie: Option<String>,
    /// Name of the cookie with a token.
    pub token_cookie: Option<String>,
    /// Additional headers of the upgrade response.
    pub headers: Vec<(String, String)>,
    /// Silence after which the server sends a ping, instead of
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
            auth: None,
            no_auth_user: None,
            auth_timeout: None,
            jwt_cookie: None,
            user_cookie: None,
            pass_cookie: None,
            token_cookie: None,
            headers: Vec::new(),
            ping_interval: None,
        }
    }
}

impl WebSocketOptions {
    /// Returns the access rules of WebSocket clients.
    pub(crate) fn access(&self) -> Result<ListenerAccess, String> {
        listener::access("websocket", self.auth.as_ref(), self.no_auth_user.clone())
    }

    /// Returns the rules of upgrades.
    pub(crate) fn upgrade_rules(&self) -> Result<UpgradeRules, String> {
        let origins = self.allowed_origins.iter().map(|text| {
            Origin::parse(text).ok_or_else(|| format!("websocket: {text:?} is not an origin"))
        });
        let mut extra_headers = String::new();
        for (name, value) in &self.headers {
            check_header(name, value)?;
            extra_headers.push_str(&format!("{name}: {value}\r\n"));
        }
        Ok(UpgradeRules {
            is_tls: self.tls.is_some(),
            same_origin: self.same_origin,
            allowed_origins: origins.collect::<Result<_, _>>()?,
            compression: self.compression,
            cookies: CookieNames {
                jwt: self.jwt_cookie.clone(),
                user: self.user_cookie.clone(),
                password: self.pass_cookie.clone(),
                token: self.token_cookie.clone(),
            },
            extra_headers,
            mqtt: false,
            leafnodes: false,
        })
    }
}

/// Rejects headers that the response already has, and headers that would end the response early.
fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.!#$%&'*+^`|~".contains(c);
    let is_ours = [
        "host",
        "content-length",
        "connection",
        "upgrade",
        "nats-no-masking",
    ]
    .iter()
    .any(|ours| name.eq_ignore_ascii_case(ours))
        || name.to_ascii_lowercase().starts_with("sec-websocket-");
    if name.is_empty() || !name.chars().all(is_token) || value.chars().any(char::is_control) {
        return Err(format!(
            "websocket: {name:?} is not a header that can be sent"
        ));
    }
    match is_ours {
        true => Err(format!(
            "websocket: header {name:?} is reserved for the server"
        )),
        false => Ok(()),
    }
}
