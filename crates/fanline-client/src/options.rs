//! How to connect.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::address::{ServerAddress, parse_list};
use super::credentials::Credentials;
use super::error::ClientError;
use super::tls::TlsSettings;

/// Where to connect, and as whom.
///
/// ```
/// use fanline_client::ConnectOptions;
///
/// let options = ConnectOptions::new("nats://ada:s3cret@localhost:4222")?.name("prices");
/// # Ok::<(), fanline_client::ClientError>(())
/// ```
#[derive(Clone)]
pub struct ConnectOptions {
    pub(super) addresses: Vec<ServerAddress>,
    pub(super) name: Option<String>,
    pub(super) user: Option<(String, String)>,
    pub(super) token: Option<String>,
    pub(super) credentials: Option<Credentials>,
    pub(super) echo: bool,
    pub(super) no_responders: bool,
    /// Say nothing of oneself: the server knows.
    pub(super) is_insider: bool,
    pub(super) connect_timeout: Duration,
    pub(super) tls: TlsSettings,
}

impl ConnectOptions {
    /// Connects to one of a comma-separated list of servers: `nats://host:port`,
    /// `nats://user:password@host:port`, `nats://token@host`, or without `nats://`. The port is
    /// 4222 by default; special characters in credentials are percent-encoded.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidAddress`] when one of them cannot be understood.
    pub fn new(servers: &str) -> Result<Self, ClientError> {
        Ok(ConnectOptions {
            addresses: parse_list(servers)?,
            ..Default::default()
        })
    }

    /// The name that the server shows for this connection.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// User and password, in place of those in the address.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// Token, in place of the one in the address.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// The seed of an nkey (`SU…`), with which the server's nonce is signed. Other lines of the text,
    /// as files of keys have them, are passed over.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when there is no seed in it.
    pub fn nkey(mut self, text: &str) -> Result<Self, ClientError> {
        self.credentials = Some(Credentials::from_nkey(text)?);
        Ok(self)
    }

    /// The content of a credentials file (`.creds`): a user's JWT, and the seed of its key.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when one of the two is not in it.
    pub fn credentials(mut self, text: &str) -> Result<Self, ClientError> {
        self.credentials = Some(Credentials::from_file_content(text)?);
        Ok(self)
    }

    /// Whether this client's subscriptions get what it publishes itself; they do by default.
    #[must_use]
    pub fn echo(mut self, echo: bool) -> Self {
        self.echo = echo;
        self
    }

    /// For the server's own client, which need not say who it is.
    #[doc(hidden)]
    pub fn insider() -> Self {
        ConnectOptions {
            is_insider: true,
            // It is not given up: a machine that is that busy still starts a server.
            connect_timeout: Duration::from_secs(600),
            ..ConnectOptions::default()
        }
    }

    /// Whether it is told when nobody listens to what it asks.
    #[doc(hidden)]
    #[must_use]
    pub fn no_responders(mut self, no_responders: bool) -> Self {
        self.no_responders = no_responders;
        self
    }

    /// Speaks TLS, and accepts servers whose certificate comes from an authority in this PEM file
    /// alone. `tls://` speaks it with the authorities that the system trusts.
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls.ca_file = Some(file.into());
        self.tls.is_wanted = true;
        self
    }

    /// Speaks TLS, and shows this certificate where the server asks for one: PEM files of the
    /// chain and of its key.
    #[must_use]
    pub fn tls_certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.certificate = Some((chain.into(), key.into()));
        self.tls.is_wanted = true;
        self
    }

    /// Whether TLS begins before the server has said anything (`handshake_first`).
    #[must_use]
    pub fn tls_first(mut self, is_first: bool) -> Self {
        self.tls.is_first = is_first;
        self.tls.is_wanted |= is_first;
        self
    }

    /// How long opening the connection and being accepted may take, per server; two seconds by
    /// default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }
}

impl Default for ConnectOptions {
    /// A server on this machine at port 4222, without credentials.
    fn default() -> Self {
        ConnectOptions {
            addresses: vec![ServerAddress {
                host: "127.0.0.1".into(),
                port: 4222,
                ..Default::default()
            }],
            name: None,
            user: None,
            token: None,
            credentials: None,
            echo: true,
            no_responders: true,
            is_insider: false,
            connect_timeout: Duration::from_secs(2),
            tls: TlsSettings::default(),
        }
    }
}

// Credentials never reach a log.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self
            .addresses
            .iter()
            .map(ServerAddress::host_and_port)
            .collect();
        f.debug_struct("ConnectOptions")
            .field("servers", &places)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
