//! What leaf connections are configured with, and what is agreed on before a session begins.

use std::sync::Arc;
use std::time::Duration;

use super::super::Broker;
use super::{Compressed, LeafCredentials, LeafListener};
use crate::auth::{Access, Peer};
use crate::codec::leaf::{InfoTold, LeafInfo, info_line};

/// A server to be attached to, as far as the engine cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafRemote {
    /// A number that no other has as long as the server runs.
    pub id: u64,
    /// The account here.
    pub account: String,
    /// This side is the hub, though it dials.
    pub is_hub: bool,
    /// Subjects that are not taken from there.
    pub deny_imports: Vec<String>,
    /// Subjects that do not go there.
    pub deny_exports: Vec<String>,
    /// What other leafs want is not told to it.
    pub isolates: bool,
    /// It is asked to keep what its other leafs want to itself.
    pub requests_isolation: bool,
}

/// What is agreed on before the session of a link begins.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// When it was greeted, if that was before: the time to answer counts from then.
    pub greeted_at: Option<Duration>,
    /// Nothing is compressed when `None`.
    pub compressed: Option<Compressed>,
}

/// A connection to a hub, whose INFO has come.
#[derive(Clone, Debug, Default)]
pub struct Dialled {
    /// What for.
    pub remote: Arc<LeafRemote>,
    /// What the hub has said.
    pub info: LeafInfo,
    /// What it is shown.
    pub credentials: LeafCredentials,
}

impl Broker {
    /// The INFO that a link begins with at this side, for those who get it before their TLS begins.
    pub(crate) fn leaf_greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        let listener = self.leaf_listener();
        let told = InfoTold {
            client_id: cid,
            nonce: &peer.nonce,
            needs_auth: self.leaf_access().is_required(),
            welcome: None,
        };
        info_line(&self.exchange.info, &listener.port(), &told)
    }

    /// Whether leafs are told a nonce to be signed.
    pub(crate) fn leafs_need_nonce(&self) -> bool {
        // A proxy signs it, too.
        self.leaf_access().needs_nonce() || !self.exchange.access.proxies().is_empty()
    }

    /// What leaf connections that are accepted are configured with.
    pub(crate) fn leaf_listener(&self) -> Arc<LeafListener> {
        let listener = self.exchange.config.leafs.as_ref();
        listener.map_or_else(Arc::default, Arc::clone)
    }

    /// Who may come as a leaf.
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
    fn a_hub_is_understood_by_a_spoke() {
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
        let told = InfoTold {
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
    fn what_a_side_wants_is_understood_by_the_other() {
        let told = InfoTold {
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
