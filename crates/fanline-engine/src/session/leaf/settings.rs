//! Settings of leaf connections, and the values that both sides negotiate before a session begins.

use std::sync::Arc;
use std::time::Duration;

use super::super::Broker;
use super::{Compressed, LeafCredentials, LeafListener};
use crate::auth::{Access, Peer};
use crate::codec::leaf::{InfoRecipient, LeafInfo, info_line};

/// The part of a configured remote that the engine needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafRemote {
    /// Number of the remote, which is unique while the server runs.
    pub id: u64,
    /// The local account.
    pub account: String,
    /// Whether this side is the hub, although it dials.
    pub is_hub: bool,
    /// Filters of messages that are not accepted from the remote.
    pub deny_imports: Vec<String>,
    /// Filters of messages that are not sent to the remote.
    pub deny_exports: Vec<String>,
    /// Whether the interest of other leaf connections is hidden from the remote.
    pub isolates: bool,
    /// Whether the remote is requested to hide the interest of its other leaf connections.
    pub requests_isolation: bool,
}

/// The values that both sides negotiate before a session begins.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// Time at which INFO was sent, if that was before the session began. The authentication timeout starts
    /// then.
    pub greeted_at: Option<Duration>,
    /// Compression, if there is any.
    pub compressed: Option<Compressed>,
}

/// A dialed connection to a hub that has sent its INFO.
#[derive(Clone, Debug, Default)]
pub struct Dialled {
    /// The remote that was dialed.
    pub remote: Arc<LeafRemote>,
    /// The hub's INFO.
    pub info: LeafInfo,
    /// Credentials for the hub.
    pub credentials: LeafCredentials,
}

impl Broker {
    /// Returns the first INFO, for connections that receive it before TLS begins.
    pub(crate) fn leaf_greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        let listener = self.leaf_listener();
        let told = InfoRecipient {
            client_id: cid,
            nonce: &peer.nonce,
            needs_auth: self.leaf_access().is_required(),
            welcome: None,
        };
        info_line(&self.exchange.info, &listener.port(), &told)
    }

    /// Returns whether INFO contains a nonce to be signed.
    pub(crate) fn leafs_need_nonce(&self) -> bool {
        // Proxies sign the nonce too.
        self.leaf_access().needs_nonce() || !self.exchange.access.proxies().is_empty()
    }

    /// Returns the settings of the listener.
    pub(crate) fn leaf_listener(&self) -> Arc<LeafListener> {
        let listener = self.exchange.config.leafs.as_ref();
        listener.map_or_else(Arc::default, Arc::clone)
    }

    /// Returns the users and accounts that leaf nodes may connect with.
    pub(crate) fn leaf_access(&self) -> Arc<Access> {
        let listener = self.leaf_listener();
        Arc::clone(listener.access.as_ref().unwrap_or(&self.exchange.access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::leaf::{Subjects, Welcome};
    use crate::codec::nats::info::ServerInfo;

    #[test]
    fn spoke_parses_info_of_a_hub() {
        let server = ServerInfo {
            server_name: "hub".into(),
            jetstream: true,
            domain: Some("d".into()),
            ..ServerInfo::default()
        };
        let welcome = Welcome {
            account: "A",
            import: None,
            export: Some(Subjects {
                allow: vec!["a.>".into()],
                deny: Vec::new(),
            }),
        };
        let told = InfoRecipient {
            client_id: 7,
            nonce: "n",
            needs_auth: true,
            welcome: Some(welcome),
        };
        let line = info_line(&server, &LeafListener::default().port(), &told);
        let json = line.strip_prefix(b"INFO ").unwrap();
        let info = LeafInfo::parse(json.trim_ascii()).unwrap();
        assert!(info.is_of_leaf_port() && info.connect_info && info.jetstream);
        assert_eq!((&*info.server_name, &*info.domain), ("hub", "d"));
        assert_eq!(info.remote_account, "A");
        assert_eq!(info.export.unwrap().allow, ["a.>"]);
        assert_eq!(info.import, None);
        assert_eq!(info.compression, "");
    }

    #[test]
    fn compression_request_is_parsed() {
        let told = InfoRecipient {
            client_id: 7,
            nonce: "",
            needs_auth: false,
            welcome: None,
        };
        let line = info_line(
            &ServerInfo::default(),
            &LeafListener::default().port(),
            &told,
        );
        let hub = LeafInfo::parse(line.strip_prefix(b"INFO ").unwrap().trim_ascii()).unwrap();
        assert_eq!(hub.compression, "s2_auto");
        let wish = hub.wish("s2_fast");
        let wish = wish.strip_prefix("INFO ").unwrap().trim();
        let wish = LeafInfo::parse(wish.as_bytes()).unwrap();
        assert_eq!((wish.client_id, &*wish.compression), (7, "s2_fast"));
    }
}
