//! The JSON of CONNECT on gateways.

use crate::codec::json::{connect_line, parse_object};
use serde::{Deserialize, Serialize};

/// The CONNECT of a dialer.
#[derive(Clone, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs, reason = "named as on the wire")]
pub struct GatewayConnect {
    pub echo: bool,
    pub verbose: bool,
    pub pedantic: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pass: String,
    pub tls_required: bool,
    /// Not the dialer's support of headers, which its INFO shows. nats-server always sends false.
    pub headers: bool,
    /// The dialer's id.
    pub name: String,
    /// Always empty.
    pub cluster: String,
    /// Name of the dialer's cluster. Only gateways send it.
    pub gateway: String,
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for GatewayConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayConnect")
            .field("name", &self.name)
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}

impl GatewayConnect {
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
    fn connect_of_nats_server_is_parsed_back() {
        let json = br#"{"echo":false,"verbose":false,"pedantic":false,"user":"u","pass":"secret",
            "tls_required":false,"headers":false,"name":"NA","cluster":"","gateway":"A"}"#;
        let connect = GatewayConnect::parse(json).unwrap();
        assert_eq!((&*connect.user, &*connect.pass), ("u", "secret"));
        assert_eq!((&*connect.name, &*connect.gateway), ("NA", "A"));
        assert!(!format!("{connect:?}").contains("secret"));
        let line = connect.line();
        let json = line.strip_prefix(b"CONNECT ").unwrap();
        assert_eq!(GatewayConnect::parse(json), Some(connect));
        assert_eq!(GatewayConnect::parse(b"[]"), None);
    }
}
