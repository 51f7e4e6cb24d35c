//! INFO and CONNECT.

use serde::{Deserialize, Serialize};

/// The server's INFO. Fields that it does not send have their default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Unique id of the server.
    pub server_id: String,
    /// Name.
    pub server_name: String,
    /// The version of nats-server that it is compatible with.
    pub version: String,
    /// Address that it listens on.
    pub host: String,
    /// Port that it listens on.
    pub port: u16,
    /// Whether messages may have headers.
    pub headers: bool,
    /// Maximum number of header and payload bytes of a message; 0 if not set.
    pub max_payload: usize,
    /// Number of this connection.
    pub client_id: u64,
    /// Address of this client as the server sees it.
    pub client_ip: String,
    /// Whether credentials are required.
    pub auth_required: bool,
    /// Nonce that a client with a key signs.
    pub nonce: String,
    /// Whether the connection must be encrypted.
    pub tls_required: bool,
    /// Whether streams can be stored.
    pub jetstream: bool,
    /// Other addresses of the same cluster.
    pub connect_urls: Vec<String>,
    /// Whether the server is about to stop: clients should connect to another one.
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
