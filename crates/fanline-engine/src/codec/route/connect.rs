//! The JSON of CONNECT on routes.

use crate::codec::json::{connect_line, is_default, parse_object};
use serde::{Deserialize, Serialize};

/// The CONNECT of a dialer.
#[derive(Clone, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct RouteConnect {
    /// Whether the dialer may receive messages that it sent, if a queue group has lost its members.
    pub echo: bool,
    pub verbose: bool,
    pub pedantic: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pass: String,
    pub tls_required: bool,
    pub headers: bool,
    /// The dialer's id.
    pub name: String,
    pub cluster: String,
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_dynamic: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub lnoc: bool,
    /// Set by clients only, so it identifies a client that connects to the wrong port.
    #[serde(skip_serializing)]
    pub lang: String,
    #[serde(skip_serializing)]
    pub gateway: String,
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for RouteConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteConnect")
            .field("name", &self.name)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

impl RouteConnect {
    /// Parses the JSON; `None` if it is not an object.
    pub fn parse(json: &[u8]) -> Option<Self> {
        parse_object(json)
    }

    /// Returns the whole CONNECT line.
    pub fn line(&self) -> Vec<u8> {
        connect_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_is_parsed_back() {
        let connect = RouteConnect {
            name: "NA".into(),
            user: "ada".into(),
            pass: "secret".into(),
            cluster: "c".into(),
            headers: true,
            ..RouteConnect::default()
        };
        let line = connect.line();
        let json = line.strip_prefix(b"CONNECT ").unwrap();
        assert_eq!(RouteConnect::parse(json), Some(connect.clone()));
        assert!(!format!("{connect:?}").contains("secret"));
        assert_eq!(RouteConnect::parse(b"[]"), None);
    }

    #[test]
    fn connect_of_nats_server_is_parsed() {
        let json = br#"{"echo":true,"verbose":false,"pedantic":false,"user":"u","pass":"p","tls_required":false,
            "headers":true,"name":"NC","cluster":"c","lnoc":true,"ln":true}"#;
        let connect = RouteConnect::parse(json).unwrap();
        assert_eq!((&*connect.user, &*connect.pass), ("u", "p"));
        assert!(connect.echo && connect.headers && connect.lnoc && !connect.cluster_dynamic);
        assert_eq!((&*connect.name, &*connect.cluster), ("NC", "c"));
    }
}
