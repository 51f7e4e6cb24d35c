//! The peer of a connection.

use super::certificate::CertificateNames;
use super::nkey::PublicKey;
use super::{ConnectionKind, Vouched};
use crate::codec::nats::connect::CookieCredentials;

/// The peer of a connection, with the facts that authentication needs.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The address, as INFO reports it to the client.
    pub ip: String,
    /// The port; 0 if there is none.
    pub port: u16,
    /// The kind of listener that accepted the connection.
    pub kind: ConnectionKind,
    /// Facts about the TLS session, if there is one.
    pub tls: Option<Box<TlsPeer>>,
    /// Credentials from cookies. They apply if CONNECT does not contain these credentials.
    pub cookies: CookieCredentials,
    /// Unique nonce that the client signs; empty if no signature is needed.
    pub nonce: String,
    /// Whether INFO was sent before the TLS handshake, so that the server does not send INFO again.
    pub is_greeted: bool,
    /// The trusted proxy that forwards the connection, after its signature was verified.
    pub proxy: Option<PublicKey>,
    /// An identity that the server has already established. It replaces the credentials of CONNECT.
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
    /// Names in the client's certificate, if a certificate was required.
    pub names: Option<CertificateNames>,
}
