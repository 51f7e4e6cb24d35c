//! The JSON of INFO on routes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec::json::{info_line, is_default, or_none, parse_object};
use crate::codec::leaf::Subjects;

/// The INFO of a peer. Absent fields have their default, and unknown ones are ignored.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct RouteInfo {
    pub server_id: String,
    pub server_name: String,
    pub version: String,
    pub proto: u64,
    pub go: String,
    pub host: String,
    pub port: u16,
    /// The address to dial, as `nats-route://host:port/`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    pub headers: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub auth_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub tls_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub tls_verify: bool,
    pub max_payload: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub jetstream: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_dynamic: bool,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub connect_urls: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub ws_connect_urls: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub import: Option<Subjects>,
    #[serde(skip_serializing_if = "is_default")]
    pub export: Option<Subjects>,
    #[serde(skip_serializing_if = "is_default")]
    pub lnoc: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub lnocu: bool,
    /// Whether the sender understands messages that were passed on. Only Fanline sends it.
    #[serde(skip_serializing_if = "is_default")]
    pub passed_on: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compression: String,
    /// Number of pooled connections; 0 means that the peer has no pool.
    #[serde(skip_serializing_if = "is_default")]
    pub route_pool_size: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub route_pool_idx: i64,
    /// The one account of a dedicated connection.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub route_account: String,
    /// Set while an account moves to a dedicated connection.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub route_acc_add_reqid: String,
    #[serde(skip_serializing_if = "is_default")]
    pub gossip_mode: GossipMode,
    #[serde(skip_serializing_if = "is_default")]
    pub ldm: bool,
    /// The address of the sender for other clusters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway_url: String,
    /// Name of another cluster, which the INFO is about.
    #[serde(skip_serializing)]
    pub gateway: String,
    /// The addresses of that cluster.
    #[serde(skip_serializing, deserialize_with = "or_none")]
    pub gateway_urls: Vec<String>,
}

/// What a route carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Carries {
    /// The accounts of one slot of the pool. The only route to a peer without a pool is that of slot 0, and
    /// carries all accounts.
    Slot(u32),
    /// The account of this name.
    Account(String),
}

impl Default for Carries {
    fn default() -> Self {
        Carries::Slot(0)
    }
}

/// Whether the receiver of a peer's INFO forwards it to its own peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GossipMode {
    /// The acceptor of the connection forwards the INFO.
    #[default]
    Default,
    /// Neither side forwards the INFO.
    Disabled,
    /// Both sides forward the INFO.
    Override,
}

impl Serialize for GossipMode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for GossipMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match u8::deserialize(from)? {
            1 => GossipMode::Disabled,
            2 => GossipMode::Override,
            _ => GossipMode::Default,
        })
    }
}

impl RouteInfo {
    /// Parses the JSON; `None` if it is not an object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        parse_object(json)
    }

    /// Returns what an accepted route with this INFO is to carry.
    pub fn carries(&self) -> Carries {
        match &*self.route_account {
            "" => Carries::Slot(u32::try_from(self.route_pool_idx).unwrap_or(0)),
            account => Carries::Account(account.into()),
        }
    }

    /// Returns the whole INFO line.
    pub fn line(&self) -> Vec<u8> {
        info_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_of_nats_server_is_parsed() {
        let json = br#"{"server_id":"NB","server_name":"b","version":"2.15.2","proto":3,"go":"go1.26.8",
            "host":"127.0.0.1","port":16222,"headers":true,"max_payload":1048576,"nonce":"bGExect4qlFUjYA",
            "cluster":"c","connect_urls":["127.0.0.1:14222"],"compression":"accept","lnoc":true,"lnocu":true,
            "ln":true,"route_pool_size":3,"gossip_mode":2}"#;
        let info = RouteInfo::parse(json).unwrap();
        assert_eq!((&*info.server_id, &*info.server_name), ("NB", "b"));
        assert_eq!((info.port, info.route_pool_size), (16222, 3));
        assert_eq!(info.gossip_mode, GossipMode::Override);
        assert_eq!(info.connect_urls, ["127.0.0.1:14222"]);
    }

    #[test]
    fn smallest_info_is_enough() {
        let info = RouteInfo::parse(br#"{"server_id":"X"}"#).unwrap();
        assert_eq!(info.server_id, "X");
        assert_eq!(info.gossip_mode, GossipMode::Default);
        for json in [&b"[]"[..], b"", b"{", br#"{"server_id":1}"#] {
            assert_eq!(RouteInfo::parse(json), None, "{json:?}");
        }
        let nulls = RouteInfo::parse(br#"{"connect_urls":null,"import":null}"#);
        assert_eq!(nulls, Some(RouteInfo::default()));
    }

    #[test]
    fn info_is_parsed_back() {
        let info = RouteInfo {
            server_id: "NA".into(),
            proto: u64::from(super::super::PROTOCOL),
            port: 6222,
            ip: "nats-route://10.0.0.1:6222/".into(),
            gossip_mode: GossipMode::Disabled,
            connect_urls: vec!["10.0.0.1:4222".into()],
            ..RouteInfo::default()
        };
        let line = info.line();
        let json = line.strip_prefix(b"INFO ").unwrap().trim_ascii();
        assert_eq!(RouteInfo::parse(json), Some(info));
        let text = String::from_utf8(line).unwrap();
        assert!(text.contains(r#""gossip_mode":1"#), "{text}");
        assert!(!text.contains("route_pool_size"), "{text}");
    }
}
