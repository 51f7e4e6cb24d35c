//! The other end of a connection.

use super::certificate::CertificateNames;
use super::nkey::PublicKey;
use super::{ConnectionKind, Vouched};
use crate::codec::nats::connect::CookieCredentials;

/// The other end of a connection, as far as authentication needs it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The address, as INFO reports it to the client.
    pub ip: String,
    /// The port; 0 without one.
    pub port: u16,
    /// The kind of listener that accepted it.
    pub kind: ConnectionKind,
    /// Facts about its TLS session, with TLS.
    pub tls: Option<Box<TlsPeer>>,
    /// Credentials from cookies, which fill what CONNECT leaves out.
    pub cookies: CookieCredentials,
    /// The nonce that the client signs, unique; empty without signatures.
    pub nonce: String,
    /// INFO was sent before the TLS handshake and is not repeated.
    pub is_greeted: bool,
    /// The trusted proxy that forwards the connection, once it has proved itself.
    pub proxy: Option<PublicKey>,
    /// An identity that the server has established already; it replaces the credentials of CONNECT.
    pub vouched: Option<Box<Vouched>>,
}

/// Facts about the TLS session of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPeer {
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite's name.
    pub cipher_suite: String,
    /// Whether the handshake preceded INFO.
    pub is_first: bool,
    /// The names in the client's certificate, if one was required.
    pub names: Option<CertificateNames>,
}
