//! Options of TLS.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// TLS of one listener. Files are read at the start, and again by
/// [`Handle::reload_tls`](crate::Handle::reload_tls).
///
/// ```
/// use fanline_server::{Certificate, TlsOptions};
///
/// let tls = TlsOptions {
///     certificates: vec![Certificate {
///         cert_file: "/etc/fanline/server.pem".into(),
///         key_file: "/etc/fanline/server.key".into(),
///     }],
///     ..TlsOptions::default()
/// };
/// assert_eq!(tls.timeout.as_secs(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Server certificates, at least one. The server uses the first certificate that matches the requested
    /// host name (SNI). If none matches, it uses the first.
    pub certificates: Vec<Certificate>,
    /// PEM file of the authorities that sign client certificates; the system's authorities if `None`.
    pub ca_file: Option<PathBuf>,
    /// Requirements on client certificates.
    pub client_certificates: ClientCertificates,
    /// Whether a certificate for a host name among the addresses of other servers authorizes a server, of routes only
    /// (`verify_cert_and_check_known_urls`). Then user name and password do not.
    pub checks_known_urls: bool,
    /// Time limit of the handshake. When it expires, the connection is closed.
    pub timeout: Duration,
    /// The oldest supported version.
    pub min_version: TlsVersion,
    /// Names of cipher suites (`TLS_AES_128_GCM_SHA256`), best first; all safe ones if empty.
    pub cipher_suites: Vec<String>,
    /// Names of curves (`X25519`, `CurveP256`, `CurveP384`), best first; all if empty.
    pub curve_preferences: Vec<String>,
    /// SHA-256 of the public keys (SPKI) of accepted client certificates; all if empty.
    pub pinned_certs: BTreeSet<[u8; 32]>,
    /// Whether the handshake takes place before or after INFO.
    pub handshake: TlsHandshake,
    /// Largest number of handshakes that start within a second. Further connections receive an error.
    pub connection_rate_limit: Option<u32>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        TlsOptions {
            certificates: Vec::new(),
            ca_file: None,
            client_certificates: ClientCertificates::default(),
            checks_known_urls: false,
            timeout: Duration::from_secs(2),
            min_version: TlsVersion::default(),
            cipher_suites: Vec::new(),
            curve_preferences: Vec::new(),
            pinned_certs: BTreeSet::new(),
            handshake: TlsHandshake::default(),
            connection_rate_limit: None,
        }
    }
}

/// Time for authentication after a handshake.
const AUTH_AFTER_HANDSHAKE: Duration = Duration::from_secs(1);

impl TlsOptions {
    /// Returns the default time limit of authentication, handshake included.
    pub fn auth_timeout(&self) -> Duration {
        self.timeout.saturating_add(AUTH_AFTER_HANDSHAKE)
    }
}

/// PEM files of a certificate chain and its key. Keys are PKCS#8, SEC1, or PKCS#1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain, beginning with the server's own certificate.
    pub cert_file: PathBuf,
    /// The key.
    pub key_file: PathBuf,
}

/// Requirements on client certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No certificate is requested.
    #[default]
    NotAsked,
    /// A valid certificate is required (`verify`).
    Required,
    /// A valid certificate is required, and identifies the user (`verify_and_map`).
    RequiredAndMapped,
}

impl ClientCertificates {
    /// Returns whether clients without a certificate are refused.
    pub fn is_required(self) -> bool {
        self != ClientCertificates::NotAsked
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Whether the handshake takes place before or after INFO. WebSocket listeners always begin with the
/// handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsHandshake {
    /// After INFO, as the NATS protocol specifies.
    #[default]
    AfterInfo,
    /// Before INFO (`handshake_first: true`).
    First,
    /// Before INFO if the client begins within this time, otherwise after it. `auto` is 50 ms.
    FirstWithin(Duration),
}
