//! Options of a connection.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::address::{ServerAddress, parse_list};
use super::credentials::Credentials;
use super::error::ClientError;
use super::tls::TlsSettings;

/// The servers, credentials, and other options of a connection.
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
    /// Whether to send no CONNECT, because the server has already authenticated this client.
    pub(super) is_system_client: bool,
    pub(super) connect_timeout: Duration,
    pub(super) tls: TlsSettings,
}

impl ConnectOptions {
    /// Creates options for a comma-separated list of servers. Each is `nats://host:port`,
    /// `nats://user:password@host:port`, or `nats://token@host`, with or without `nats://`. The port is 4222
    /// by default. Special characters in credentials are percent-encoded.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidAddress`] when an address is invalid.
    pub fn new(servers: &str) -> Result<Self, ClientError> {
        Ok(ConnectOptions {
            addresses: parse_list(servers)?,
            ..Default::default()
        })
    }

    /// Sets the name that the server shows for this connection.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Sets user and password, which replace those in the address.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// Sets the token, which replaces the one in the address.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Sets the seed of an nkey (`SU…`), with which the client signs the server's nonce. Other lines of the
    /// text, as in key files, are ignored.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when the text has no seed.
    pub fn nkey(mut self, text: &str) -> Result<Self, ClientError> {
        self.credentials = Some(Credentials::from_nkey(text)?);
        Ok(self)
    }

    /// Sets a user's JWT and the seed of its key, from the content of a credentials file (`.creds`).
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when the JWT or the seed is missing.
    pub fn credentials(mut self, text: &str) -> Result<Self, ClientError> {
        self.credentials = Some(Credentials::from_file_content(text)?);
        Ok(self)
    }

    /// Sets whether this client's subscriptions receive messages that it publishes itself. By default they
    /// do.
    #[must_use]
    pub fn echo(mut self, echo: bool) -> Self {
        self.echo = echo;
        self
    }

    /// Requires TLS and a server certificate from an authority in this PEM file.
    ///
    /// `tls://` in an address requires TLS with the authorities that the system trusts.
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls.ca_file = Some(file.into());
        self.tls.is_wanted = true;
        self
    }

    /// Requires TLS and sets the client certificate. `chain` and `key` are PEM files of the certificate chain
    /// and its key.
    #[must_use]
    pub fn tls_certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.certificate = Some((chain.into(), key.into()));
        self.tls.is_wanted = true;
        self
    }

    /// Sets whether TLS starts before the server sends INFO (`handshake_first`).
    #[must_use]
    pub fn tls_first(mut self, is_first: bool) -> Self {
        self.tls.is_first = is_first;
        self.tls.is_wanted |= is_first;
        self
    }

    /// Sets the time limit for connecting, per server; 2 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }
}

impl Default for ConnectOptions {
    /// Returns the options for a server on this machine at port 4222, without credentials.
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
            is_system_client: false,
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
