//! The JSON of INFO on gateways.

use crate::codec::json::{info_line, is_default, or_none, parse_object};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// The INFO of a gateway. Absent fields have their default, and unknown ones are ignored.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct GatewayInfo {
    pub server_id: String,
    pub server_name: String,
    pub version: String,
    pub proto: u64,
    pub go: String,
    pub host: String,
    pub port: u16,
    pub headers: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub auth_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub tls_required: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub tls_verify: bool,
    pub max_payload: i64,
    /// Name of the sender's cluster; in gossip, of the cluster that it announces.
    pub gateway: String,
    /// All known addresses of that cluster, as `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub gateway_urls: Vec<String>,
    /// The sender's own address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway_url: String,
    #[serde(skip_serializing_if = "is_default")]
    pub gateway_cmd: u8,
    /// Name of an account, in base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway_cmd_payload: String,
    /// Whether the sender understands [marked replies](super::ReplyMark).
    #[serde(skip_serializing_if = "is_default")]
    pub gateway_nrp: bool,
    /// Whether the sender announces all interest in every account, so that no message is sent without.
    #[serde(skip_serializing_if = "is_default")]
    pub gateway_iom: bool,
}

/// What an INFO after the first one is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayCommand {
    /// The sender's own addresses.
    Update,
    /// Another cluster.
    Gossip,
    /// All plain interest in the account of this name follows.
    InterestBegins(String),
    /// All plain interest in the account of this name was sent.
    InterestEnds(String),
    /// A command of a later version, without effect.
    Unknown,
}

const GOSSIP: u8 = 1;
const INTEREST_BEGINS: u8 = 2;
const INTEREST_ENDS: u8 = 3;

impl GatewayInfo {
    /// Parses the JSON; `None` if it is not an object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        parse_object(json)
    }

    /// Returns what the INFO is about.
    pub fn command(&self) -> GatewayCommand {
        let account = || {
            let name = BASE64.decode(&self.gateway_cmd_payload).ok();
            name.and_then(|name| String::from_utf8(name).ok())
        };
        match self.gateway_cmd {
            0 => GatewayCommand::Update,
            GOSSIP => GatewayCommand::Gossip,
            INTEREST_BEGINS => {
                account().map_or(GatewayCommand::Unknown, GatewayCommand::InterestBegins)
            }
            INTEREST_ENDS => {
                account().map_or(GatewayCommand::Unknown, GatewayCommand::InterestEnds)
            }
            _ => GatewayCommand::Unknown,
        }
    }

    /// Returns the INFO that announces another cluster.
    pub fn gossip(server_id: &str, gateway: &str, urls: &[String]) -> Self {
        GatewayInfo {
            server_id: server_id.into(),
            gateway: gateway.into(),
            gateway_urls: urls.to_vec(),
            gateway_cmd: GOSSIP,
            ..GatewayInfo::default()
        }
    }

    /// Returns the INFO before all plain interest in an account.
    pub fn interest_begins(gateway: &str, account: &[u8]) -> Self {
        Self::about_account(gateway, account, INTEREST_BEGINS)
    }

    /// Returns the INFO after all plain interest in an account.
    pub fn interest_ends(gateway: &str, account: &[u8]) -> Self {
        Self::about_account(gateway, account, INTEREST_ENDS)
    }

    fn about_account(gateway: &str, account: &[u8], gateway_cmd: u8) -> Self {
        GatewayInfo {
            gateway: gateway.into(),
            gateway_cmd,
            gateway_cmd_payload: BASE64.encode(account),
            ..GatewayInfo::default()
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
    fn info_of_nats_server_is_parsed_back() {
        let json = br#"{"server_id":"NB","server_name":"b1","version":"2.15.2","proto":3,"go":"",
            "host":"127.0.0.1","port":7222,"headers":true,"max_payload":1048576,"gateway":"B",
            "gateway_urls":["127.0.0.1:7222"],"gateway_url":"127.0.0.1:7222","gateway_nrp":true,
            "gateway_iom":true}"#;
        let info = GatewayInfo::parse(json).unwrap();
        assert_eq!((&*info.gateway, &*info.server_name), ("B", "b1"));
        assert_eq!(info.gateway_urls, ["127.0.0.1:7222"]);
        assert!(info.gateway_iom && info.gateway_nrp && info.headers);
        assert_eq!(info.command(), GatewayCommand::Update);
        let line = info.line();
        let json = line.strip_prefix(b"INFO ").unwrap().trim_ascii();
        assert_eq!(GatewayInfo::parse(json), Some(info));
    }

    #[test]
    fn commands_name_their_account() {
        let json =
            br#"{"server_id":"","gateway":"A","gateway_cmd":2,"gateway_cmd_payload":"U1lT"}"#;
        let begins = GatewayInfo::parse(json).unwrap();
        assert_eq!(
            begins.command(),
            GatewayCommand::InterestBegins("SYS".into())
        );
        assert_eq!(
            GatewayInfo::interest_begins("A", b"SYS").gateway_cmd_payload,
            "U1lT"
        );
        let ends = GatewayInfo::interest_ends("A", b"SYS");
        assert_eq!(ends.command(), GatewayCommand::InterestEnds("SYS".into()));
        let gossip = GatewayInfo::gossip("GWN", "B", &["h:1".into()]);
        assert_eq!(gossip.command(), GatewayCommand::Gossip);
        for json in [
            &br#"{"gateway_cmd":2,"gateway_cmd_payload":"%"}"#[..],
            br#"{"gateway_cmd":9}"#,
        ] {
            let info = GatewayInfo::parse(json).unwrap();
            assert_eq!(info.command(), GatewayCommand::Unknown);
        }
        for json in [&b"[]"[..], b"", b"{", br#"{"server_id":1}"#] {
            assert_eq!(GatewayInfo::parse(json), None);
        }
    }
}
