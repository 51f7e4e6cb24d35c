//! INFO and CONNECT.

use serde::{Deserialize, Serialize};

/// The server's INFO. Fields that the server does not send have their default value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Unique id of the server.
    pub server_id: String,
    /// Name of the server.
    pub server_name: String,
    /// The nats-server version that the server is compatible with.
    pub version: String,
    /// Address on which it listens.
    pub host: String,
    /// Port on which it listens.
    pub port: u16,
    /// Whether messages may have headers.
    pub headers: bool,
    /// Maximum number of header and payload bytes of a message; 0 if not set.
    pub max_payload: usize,
    /// Id of this connection.
    pub client_id: u64,
    /// Address of this client as the server sees it.
    pub client_ip: String,
    /// Whether credentials are required.
    pub auth_required: bool,
    /// Nonce that a client signs with its key.
    pub nonce: String,
    /// Whether the connection must be encrypted.
    pub tls_required: bool,
    /// Whether the server has JetStream.
    pub jetstream: bool,
    /// Other addresses of the same cluster.
    pub connect_urls: Vec<String>,
    /// Whether the server is about to stop. Clients should then connect to another server.
    #[serde(rename = "ldm")]
    pub lame_duck: bool,
}

/// The client's CONNECT.
#[derive(Serialize)]
pub(super) struct Connect<'a> {
    pub(super) verbose: bool,
    pub(super) pedantic: bool,
    pub(super) tls_required: bool,
    pub(super) protocol: u8,
    pub(super) echo: bool,
    pub(super) headers: bool,
    pub(super) no_responders: bool,
    pub(super) lang: &'static str,
    pub(super) version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) auth_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jwt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nkey: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sig: Option<String>,
}
