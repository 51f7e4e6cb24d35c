//! The JSON of INFO on leaf connections.

use serde::{Deserialize, Serialize};

use super::PROTOCOL;
use crate::codec::json::{info_line, or_none, parse_object};
use crate::codec::nats::info::{ServerInfo, TlsInfo};

/// The INFO of a hub.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct LeafInfo {
    pub server_id: String,
    pub server_name: String,
    pub version: String,
    pub proto: u64,
    pub headers: bool,
    pub max_payload: i64,
    pub tls_required: bool,
    pub jetstream: bool,
    pub domain: String,
    pub nonce: String,
    pub client_id: u64,
    pub cluster: String,
    pub leafnode_urls: Vec<String>,
    pub info_on_connect: bool,
    pub connect_info: bool,
    pub compression: String,
    pub remote_account: String,
    pub import: Option<Subjects>,
    pub export: Option<Subjects>,
}

/// Allowed and denied subjects. An empty `allow` allows all; `deny` overrides `allow`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct Subjects {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub deny: Vec<String>,
}

impl LeafInfo {
    /// Parses the JSON; `None` if it is not an object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        parse_object(json)
    }

    /// Returns the line by which a spoke requests compression from a hub. It contains the client id that the
    /// hub assigned.
    pub fn compression_request(&self, compression: &str) -> String {
        let request = CompressionRequest {
            client_id: self.client_id,
            compression,
        };
        // Strings and numbers always serialize.
        let json = serde_json::to_string(&request).unwrap_or_default();
        format!("INFO {json} \r\n")
    }

    /// Returns whether the INFO was sent by a port for leaf nodes.
    pub fn is_of_leaf_port(&self) -> bool {
        self.client_id != 0 && (self.info_on_connect || !self.leafnode_urls.is_empty())
    }
}

/// The INFO by which a spoke requests compression before CONNECT. Other servers send more fields, which have
/// no effect.
#[derive(Serialize)]
struct CompressionRequest<'a> {
    client_id: u64,
    compression: &'a str,
}

/// The listener that a hub's INFO describes.
#[derive(Default)]
pub(crate) struct Port<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) urls: &'a [String],
    pub(crate) tls: TlsInfo,
    /// Name of the listener's compression mode.
    pub(crate) compression: &'static str,
}

/// The recipient of INFO.
pub(crate) struct InfoRecipient<'a> {
    pub(crate) client_id: u64,
    pub(crate) nonce: &'a str,
    pub(crate) needs_auth: bool,
    /// Present only in the INFO that responds to CONNECT.
    pub(crate) welcome: Option<Welcome<'a>>,
}

/// Fields of INFO for a spoke that was admitted.
#[derive(Clone, Default)]
pub(crate) struct Welcome<'a> {
    pub(crate) account: &'a str,
    /// Subjects that the spoke may receive (`import`), and subjects that it may send (`export`).
    pub(crate) import: Option<Subjects>,
    pub(crate) export: Option<Subjects>,
}

#[derive(Serialize)]
struct Wire<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'a str,
    proto: u8,
    go: &'a str,
    fanline: &'a str,
    host: &'a str,
    port: u16,
    headers: bool,
    #[serde(skip_serializing_if = "is_false")]
    auth_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    tls_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    tls_verify: bool,
    max_payload: usize,
    #[serde(skip_serializing_if = "is_false")]
    jetstream: bool,
    client_id: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    nonce: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    api_lvl: u8,
    info_on_connect: bool,
    #[serde(skip_serializing_if = "is_false")]
    connect_info: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_account: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<&'a Subjects>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export: Option<&'a Subjects>,
    leafnode_urls: &'a [String],
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Returns the whole INFO line of a hub.
pub(crate) fn line(
    server: &ServerInfo,
    listener: &Port<'_>,
    recipient: &InfoRecipient<'_>,
) -> Vec<u8> {
    let welcome = recipient.welcome.as_ref();
    let wire = Wire {
        server_id: &server.server_id,
        server_name: &server.server_name,
        version: &server.version,
        proto: PROTOCOL,
        go: "none",
        fanline: &server.fanline,
        host: listener.host,
        port: listener.port,
        headers: server.headers,
        auth_required: recipient.needs_auth,
        tls_required: listener.tls.required,
        tls_verify: listener.tls.verify,
        max_payload: server.max_payload,
        jetstream: server.jetstream,
        client_id: recipient.client_id,
        nonce: recipient.nonce,
        cluster: server.cluster.as_deref(),
        // The INFO after CONNECT does not repeat the compression.
        compression: welcome.is_none().then_some(listener.compression),
        domain: server.domain.as_deref(),
        api_lvl: 5,
        info_on_connect: true,
        connect_info: welcome.is_some(),
        remote_account: welcome.map(|welcome| welcome.account),
        import: welcome.and_then(|welcome| welcome.import.as_ref()),
        export: welcome.and_then(|welcome| welcome.export.as_ref()),
        leafnode_urls: listener.urls,
    };
    info_line(&wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_another_kind_are_recognized() {
        for (json, expected) in [
            (r#"{"client_id":1,"leafnode_urls":["a:1"]}"#, true),
            (r#"{"client_id":1,"info_on_connect":true}"#, true),
            (r#"{"client_id":1}"#, false),
            (r#"{"leafnode_urls":["a:1"]}"#, false),
        ] {
            let info = LeafInfo::parse(json.as_bytes()).unwrap();
            assert_eq!(info.is_of_leaf_port(), expected, "{json}");
        }
        assert_eq!(LeafInfo::parse(b"[]"), None);
    }
}
