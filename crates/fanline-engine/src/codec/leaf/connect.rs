//! The JSON of a leaf node's CONNECT.

use crate::codec::json::{connect_line, or_none, parse_object};
use serde::{Deserialize, Serialize};

/// The CONNECT of a spoke.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct LeafConnect {
    pub(crate) version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) pass: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) auth_token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) nkey: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) jwt: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) sig: String,
    /// Signature that a proxy adds.
    #[serde(skip_serializing)]
    pub(crate) proxy_sig: String,
    pub(crate) server_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) domain: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) is_hub: bool,
    pub(crate) cluster: String,
    pub(crate) headers: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) jetstream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub(crate) deny_pub: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) isolate: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) compress_mode: String,
    pub(crate) remote_account: String,
    pub(crate) protocol: u8,
    /// Set by clients only, so it identifies a client that connects to the wrong port.
    #[serde(skip_serializing)]
    pub(crate) lang: String,
    #[serde(skip_serializing)]
    pub(crate) gateway: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl LeafConnect {
    /// Parses the JSON; `None` if it is not an object.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        parse_object(json)
    }

    /// Returns the whole CONNECT line.
    pub(crate) fn line(&self) -> Vec<u8> {
        connect_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_is_parsed_back() {
        let connect = LeafConnect {
            name: "spoke".into(),
            user: "ada".into(),
            pass: "secret".into(),
            deny_pub: vec!["a.>".into()],
            protocol: super::super::PROTOCOL,
            ..LeafConnect::default()
        };
        let line = connect.line();
        let json = line.strip_prefix(b"CONNECT ").unwrap();
        assert_eq!(LeafConnect::parse(json), Some(connect));
        assert_eq!(LeafConnect::parse(b"{"), None);
        let client = LeafConnect::parse(br#"{"lang":"go","verbose":true,"deny_pub":null}"#);
        assert_eq!(client.unwrap().lang, "go");
    }
}
