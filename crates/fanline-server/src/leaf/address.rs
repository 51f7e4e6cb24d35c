//! Where a hub is.

use crate::client::{ClientError, ServerAddress, parse_leaf_address};

/// One address of a remote.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct LeafAddress {
    pub(crate) server: ServerAddress,
    /// What is asked for when it is reached over WebSocket.
    pub(crate) websocket_path: Option<String>,
}

impl LeafAddress {
    /// Reads `nats-leaf://user:password@host:7422` and its shorter forms, or `wss://host:443/path`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "ws" => "nats",
            "wss" => "tls",
            _ => {
                return Ok(LeafAddress {
                    server: parse_leaf_address(text)?,
                    websocket_path: None,
                });
            }
        };
        // Credentials may have slashes.
        let place = rest.rfind('@').map_or(0, |at| at + 1);
        let path_at = rest[place..].find('/').map_or(rest.len(), |at| place + at);
        let (server, path) = rest.split_at(path_at);
        Ok(LeafAddress {
            server: parse_leaf_address(&format!("{scheme}://{server}"))?,
            websocket_path: Some(format!("{path}/leafnode")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_how_a_hub_is_reached() {
        for (text, place, is_tls, path) in [
            ("nats-leaf://hub:1", "hub:1", false, None),
            ("hub", "hub:7422", false, None),
            ("tls://hub:1", "hub:1", true, None),
            ("ws://hub:1", "hub:1", false, Some("/leafnode")),
            ("WSS://a/b:c@hub", "hub:7422", true, Some("/leafnode")),
            ("ws://[::1]:1/a/b", "[::1]:1", false, Some("/a/b/leafnode")),
        ] {
            let address = LeafAddress::parse(text).unwrap();
            assert_eq!(address.server.host_and_port(), place, "{text}");
            assert_eq!(address.server.is_tls, is_tls, "{text}");
            assert_eq!(address.websocket_path.as_deref(), path, "{text}");
        }
        assert!(LeafAddress::parse("http://hub:1").is_err());
    }
}
