//! Where a hub is.

use crate::client::{ClientError, ServerAddress, parse_with_port};

/// The port of a proxy when nobody says.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// One address of a remote.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct LeafAddress {
    pub(crate) server: ServerAddress,
    /// What is asked for when it is reached over WebSocket.
    pub(crate) websocket_path: Option<String>,
}

impl LeafAddress {
    /// Reads `nats-leaf://user:password@host:7422` and its shorter forms, or `wss://host:443/path`. Any scheme
    /// will do, as with nats-server: `ws` and `wss` are WebSocket, `tls` and `wss` insist on TLS.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let scheme = scheme.to_ascii_lowercase();
        let is_tls = scheme == "tls" || scheme == "wss";
        // Credentials may have slashes.
        let place = rest.rfind('@').map_or(0, |at| at + 1);
        let path_at = rest[place..].find('/').map_or(rest.len(), |at| place + at);
        let (server, path) = rest.split_at(path_at);
        let is_websocket = scheme == "ws" || scheme == "wss";
        Ok(LeafAddress {
            server: parse_leaf_address(server, is_tls)?,
            websocket_path: is_websocket.then(|| format!("{path}/leafnode")),
        })
    }
}

/// Reads the address of a leaf node's hub, without its scheme.
pub(crate) fn parse_leaf_address(place: &str, is_tls: bool) -> Result<ServerAddress, ClientError> {
    let address = parse_with_port(&format!("nats://{place}"), crate::LEAFNODE_PORT)?;
    Ok(ServerAddress { is_tls, ..address })
}

/// The address of an HTTP proxy, without its scheme.
pub(super) fn parse_proxy_address(place: &str, is_tls: bool) -> Result<ServerAddress, ClientError> {
    parse_with_port(place, if is_tls { HTTPS_PORT } else { HTTP_PORT })
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
            ("TLS://hub:1", "hub:1", true, None),
            ("leaf://hub", "hub:7422", false, None),
            ("nats://a:b://c@hub:1/", "hub:1", false, None),
            ("tcp://hub:1", "hub:1", false, None),
            ("http://hub:1/path", "hub:1", false, None),
            ("ws://hub:1", "hub:1", false, Some("/leafnode")),
            ("WSS://a/b:c@hub", "hub:7422", true, Some("/leafnode")),
            ("ws://[::1]:1/a/b", "[::1]:1", false, Some("/a/b/leafnode")),
        ] {
            let address = LeafAddress::parse(text).unwrap();
            assert_eq!(address.server.host_and_port(), place, "{text}");
            assert_eq!(address.server.is_tls, is_tls, "{text}");
            assert_eq!(address.websocket_path.as_deref(), path, "{text}");
        }
        assert!(LeafAddress::parse("leaf://").is_err());
    }
}
