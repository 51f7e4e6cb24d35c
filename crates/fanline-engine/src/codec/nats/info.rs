//! The JSON of INFO.

use std::time::Duration;

use serde::Serialize;

/// What a server says of itself to everybody.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// `N` and 55 more characters.
    pub server_id: String,
    /// As configured, or the id.
    pub server_name: String,
    /// The nats-server version that this one is compatible with: clients branch on it.
    pub version: String,
    /// Fanline's own version, in a field of its own.
    pub fanline: String,
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// Whether credentials are needed.
    pub auth_required: bool,
    /// Whether headers are offered.
    pub headers: bool,
    /// Largest message.
    pub max_payload: usize,
    /// Whether there are streams.
    pub jetstream: bool,
    /// The domain of its streams.
    pub domain: Option<String>,
    /// The name of its cluster. Without one, a server that attaches to others is a cluster by itself.
    pub cluster: Option<String>,
    /// The address to use instead of the one listened on, when it differs.
    pub ip: Option<String>,
    /// What clients have to know of TLS.
    pub tls: TlsTold,
    /// What differs for WebSocket clients, when there is a listener for them.
    pub websocket: Option<Box<ListenerInfo>>,
    /// Set once the server goes into lame duck mode.
    pub lame_duck: bool,
    /// When it started, since 1970 UTC. It is not told to clients.
    pub started_at: Duration,
}

/// What clients are told about TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsTold {
    /// They have to begin with it.
    pub required: bool,
    /// They need a certificate.
    pub verify: bool,
    /// They may begin with it.
    pub available: bool,
}

/// What is told of a listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerInfo {
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// What its clients have to know of TLS.
    pub tls: TlsTold,
}

#[derive(Serialize)]
struct Wire<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'a str,
    proto: u8,
    // Readers of INFO expect the key; there is no Go here.
    go: &'a str,
    fanline: &'a str,
    host: &'a str,
    port: u16,
    headers: bool,
    // Features are used, and tests are run, by this number.
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

/// Whom INFO is for.
#[derive(Default)]
pub(crate) struct Audience<'a> {
    pub(crate) client_id: u64,
    /// The address of the client; empty within a process and through a Unix socket.
    pub(crate) client_ip: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) is_websocket: bool,
    /// It is told that credentials are needed. Who may come without is not told so at first.
    pub(crate) needs_auth: bool,
    /// The largest message of its account, where that may be less.
    pub(crate) payload_bytes_max: Option<usize>,
    /// In the form after CONNECT: where it is.
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
    /// The name of its cluster, towards leaf nodes: a server without cluster is one by itself.
    pub(crate) fn cluster_name(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.server_name)
    }

    /// The whole INFO line for one client.
    pub(crate) fn line(&self, audience: &Audience<'_>) -> Vec<u8> {
        let websocket = self.websocket.as_deref();
        let here = websocket.filter(|_| audience.is_websocket);
        // Within a process, or through a socket of the machine's own, nothing is encrypted.
        let is_local = audience.client_ip.is_empty();
        let tls = match is_local {
            true => TlsTold::default(),
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
