//! The JSON object of INFO.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

/// The fields of INFO that are the same for all clients, and the start time.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// The server's id: `N` and 55 more characters.
    pub server_id: String,
    /// The configured name, or the id.
    pub server_name: String,
    /// The compatible nats-server version, which clients use to enable features.
    pub version: String,
    /// Fanline's own version, in an additional field.
    pub fanline: String,
    /// Host that the server listens on.
    pub host: String,
    /// Port that the server listens on.
    pub port: u16,
    /// Whether clients need credentials.
    pub auth_required: bool,
    /// Whether the server supports headers.
    pub headers: bool,
    /// Largest message in bytes.
    pub max_payload: usize,
    /// Whether JetStream is enabled.
    pub jetstream: bool,
    /// JetStream domain.
    pub domain: Option<String>,
    /// Name of the server's cluster. Without a cluster, leaf nodes receive the server's name instead.
    pub cluster: Option<String>,
    /// Addresses of this server and of its peers in the cluster for clients. Empty until the first peer has
    /// been connected.
    pub connect_urls: Arc<ClientUrls>,
    /// Address for clients, if it differs from the address that the server listens on.
    pub ip: Option<String>,
    /// TLS of the client listener.
    pub tls: TlsInfo,
    /// Fields that differ for WebSocket clients, if there is a WebSocket listener.
    pub websocket: Option<Box<ListenerInfo>>,
    /// Whether the name of the cluster was generated. Not sent to clients.
    pub cluster_is_generated: bool,
    /// Whether the server is in lame duck mode.
    pub lame_duck: bool,
    /// Start time since 1970 UTC. Not sent to clients.
    pub started_at: Duration,
}

/// Addresses of servers for clients, as `host:port`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientUrls {
    /// Addresses of the listeners for clients.
    pub plain: Vec<String>,
    /// Addresses of the listeners for WebSocket clients.
    pub websocket: Vec<String>,
}

impl ClientUrls {
    /// Adds the addresses that are not contained yet.
    pub fn join(&mut self, other: &ClientUrls) {
        let lists = [
            (&mut self.plain, &other.plain),
            (&mut self.websocket, &other.websocket),
        ];
        for (own, other) in lists {
            for url in other {
                if !own.contains(url) {
                    own.push(url.clone());
                }
            }
        }
    }

    /// Removes these addresses.
    pub(crate) fn remove(&mut self, other: &ClientUrls) {
        self.plain.retain(|url| !other.plain.contains(url));
        self.websocket.retain(|url| !other.websocket.contains(url));
    }
}

/// TLS requirements of a listener in INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsInfo {
    /// Whether clients must use TLS.
    pub required: bool,
    /// Whether clients need a certificate.
    pub verify: bool,
    /// Whether clients may use TLS.
    pub available: bool,
}

/// Host, port, and TLS of a listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerInfo {
    /// Host that the listener binds.
    pub host: String,
    /// Port that the listener binds.
    pub port: u16,
    /// TLS of the listener.
    pub tls: TlsInfo,
}

#[derive(Serialize)]
struct Wire<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'a str,
    proto: u8,
    // Clients expect this key, although the server is not written in Go.
    go: &'a str,
    fanline: &'a str,
    host: &'a str,
    port: u16,
    headers: bool,
    // Clients use this number to enable features, and test suites to select tests.
    api_lvl: u8,
    #[serde(skip_serializing_if = "is_false")]
    auth_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    tls_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    tls_verify: bool,
    #[serde(skip_serializing_if = "is_false")]
    tls_available: bool,
    max_payload: usize,
    #[serde(skip_serializing_if = "is_false")]
    jetstream: bool,
    client_id: u64,
    client_ip: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    nonce: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    connect_urls: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    ldm: bool,
    #[serde(skip_serializing_if = "is_false")]
    connect_info: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_account: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    acc_is_sys: bool,
}

/// The recipient of an INFO, with the fields that depend on it.
#[derive(Default)]
pub(crate) struct Audience<'a> {
    pub(crate) client_id: u64,
    /// Address of the client; empty for in-process connections and Unix sockets.
    pub(crate) client_ip: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) is_websocket: bool,
    /// Whether INFO announces that credentials are needed. If there is a `no_auth_user`, the first INFO does
    /// not announce that credentials are needed, although there are users.
    pub(crate) needs_auth: bool,
    /// Largest size in bytes of a message in the client's account, which may be smaller than that of the
    /// server.
    pub(crate) payload_bytes_max: Option<usize>,
    /// The client's account, in an INFO after CONNECT.
    pub(crate) account: Option<&'a str>,
    pub(crate) is_system: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl ServerInfo {
    /// Returns the cluster name for leaf nodes, which is the server's name if the server is in no cluster.
    pub(crate) fn cluster_name(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.server_name)
    }

    /// Returns the INFO line for one client.
    pub(crate) fn line(&self, audience: &Audience<'_>) -> Vec<u8> {
        let websocket = self.websocket.as_deref();
        let here = websocket.filter(|_| audience.is_websocket);
        // In-process connections and Unix sockets have no TLS.
        let is_local = audience.client_ip.is_empty();
        let tls = match is_local {
            true => TlsInfo::default(),
            false => here.map_or(self.tls, |here| here.tls),
        };
        let wire = Wire {
            server_id: &self.server_id,
            server_name: &self.server_name,
            version: &self.version,
            proto: 1,
            go: "none",
            fanline: &self.fanline,
            host: here.map_or(&self.host, |here| &here.host),
            port: here.map_or(self.port, |here| here.port),
            headers: self.headers,
            api_lvl: 5,
            auth_required: audience.needs_auth,
            tls_required: tls.required,
            tls_verify: tls.verify,
            tls_available: tls.available,
            max_payload: (audience.payload_bytes_max)
                .map_or(self.max_payload, |max| max.min(self.max_payload)),
            jetstream: self.jetstream,
            client_id: audience.client_id,
            client_ip: audience.client_ip,
            nonce: audience.nonce,
            ip: self.ip.as_deref(),
            cluster: self.cluster.as_deref(),
            connect_urls: match audience.is_websocket {
                true => &self.connect_urls.websocket,
                false => &self.connect_urls.plain,
            },
            domain: self.domain.as_deref(),
            ldm: self.lame_duck,
            connect_info: audience.account.is_some(),
            remote_account: audience.account,
            acc_is_sys: audience.is_system,
        };
        let mut line = b"INFO ".to_vec();
        serde_json::to_writer(&mut line, &wire).expect("strings and numbers are always JSON");
        line.extend_from_slice(b" \r\n");
        line
    }
}
