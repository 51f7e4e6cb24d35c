//! How connections are encrypted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// TLS for one listener. Files are read when the server starts, and again by
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
    /// What the server shows; at least one. With several, the one whose names contain the name
    /// that the client asked for (SNI), else the first.
    pub certificates: Vec<Certificate>,
    /// PEM file of the authorities that client certificates must come from; the system's when
    /// `None`.
    pub ca_file: Option<PathBuf>,
    /// What is asked of clients.
    pub client_certificates: ClientCertificates,
    /// How long a handshake may take. Longer: the connection is closed.
    pub timeout: Duration,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// Names of cipher suites (`TLS_AES_128_GCM_SHA256`), best first; all that are safe when empty.
    pub cipher_suites: Vec<String>,
    /// Names of curves (`X25519`, `CurveP256`, `CurveP384`), best first; all when empty.
    pub curve_preferences: Vec<String>,
    /// SHA-256 of the public keys (SPKI) of the client certificates that are let in; those of any
    /// key when empty.
    pub pinned_certs: BTreeSet<[u8; 32]>,
    /// Whether INFO comes before the handshake or after it.
    pub handshake: TlsHandshake,
    /// Handshakes begun in a second, at most. More: the connection is told to come again later.
    pub connection_rate_limit: Option<u32>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        TlsOptions {
            certificates: Vec::new(),
            ca_file: None,
            client_certificates: ClientCertificates::default(),
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

/// What a client has after its handshake to say who it is.
const AUTH_AFTER_HANDSHAKE: Duration = Duration::from_secs(1);

impl TlsOptions {
    /// How long a client of such a listener has to say who it is, handshake included, when nobody says.
    pub fn auth_timeout(&self) -> Duration {
        self.timeout.saturating_add(AUTH_AFTER_HANDSHAKE)
    }
}

/// A chain of certificates and the key of its first one, as PEM files. Keys are PKCS#8, SEC1 or
/// PKCS#1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain, the server's own first.
    pub cert_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
}

/// What is asked of clients about certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// None is asked for.
    #[default]
    NotAsked,
    /// A valid one is needed (`verify`).
    Required,
    /// A valid one is needed, and says which user it is (`verify_and_map`).
    RequiredAndMapped,
}

impl ClientCertificates {
    /// Whether clients without one are turned away.
    pub fn is_required(self) -> bool {
        self != ClientCertificates::NotAsked
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2.
    #[default]
    V1_2,
    /// 1.3.
    V1_3,
}

/// When the handshake takes place. WebSocket listeners begin with it always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsHandshake {
    /// After INFO, as the protocol has it.
    #[default]
    AfterInfo,
    /// Before INFO (`handshake_first: true`).
    First,
    /// Before INFO if the client begins within this time, else after it. `auto` is 50 ms.
    FirstWithin(Duration),
}
