//! Addresses of hubs.

use crate::client::url::Url;
use crate::client::{ClientError, ServerAddress};
use crate::options::LEAFNODE_PORT;

/// One address of a remote.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct LeafAddress {
    pub(crate) server: ServerAddress,
    /// The path of the WebSocket request, for addresses over WebSocket.
    pub(crate) websocket_path: Option<String>,
}

impl LeafAddress {
    /// Parses `nats-leaf://user:password@host:7422` and its shorter forms, or `wss://host:443/path`. Any scheme
    /// is accepted, as in nats-server: `ws` and `wss` are WebSocket; `tls` and `wss` require TLS.
    ///
    /// # Errors
    ///
    /// Fails if the host or the port is invalid.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let url = Url::split(text.trim());
        let scheme = url.scheme.unwrap_or_default().to_ascii_lowercase();
        let is_tls = scheme == "tls" || scheme == "wss";
        let is_websocket = scheme == "ws" || scheme == "wss";
        let (location, path) = url.host_and_path();
        let url = Url { location, ..url };
        Ok(LeafAddress {
            server: ServerAddress::from_url(&url, is_tls, LEAFNODE_PORT)?,
            websocket_path: is_websocket.then(|| format!("{path}/leafnode")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_determines_transport_of_a_hub() {
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
