//! The runtime's calls for leaf connections.

use super::{Kind, Session, SessionId, Shard};
use crate::auth::{AccountId, ConnectionKind, Peer};
use crate::codec::nats::error::CloseReason;
use crate::codec::s2::Level;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::Router;
use crate::session::leaf::{LeafEnded, LeafStatus, LinkCompression};

impl Shard {
    /// Returns the first INFO, for leaf connections that receive it before TLS begins.
    pub fn leaf_greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        self.broker.leaf_greeting(cid, peer)
    }

    /// Returns whether INFO to leaf nodes contains a nonce to be signed.
    pub fn leafs_need_nonce(&self) -> bool {
        self.broker.leafs_need_nonce()
    }

    /// Returns the compression of accepted leaf connections.
    pub fn leaf_compression(&self) -> LinkCompression {
        self.broker.leaf_listener().compression.clone()
    }

    /// Returns whether there are lines for [`take_leaf_lines`](Shard::take_leaf_lines).
    pub fn has_leaf_lines(&self) -> bool {
        !self.broker.exchange.shared.leafs.log_lines.is_empty()
    }

    /// Takes lines for the log, each about an established leaf connection.
    pub fn take_leaf_lines(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.broker.exchange.shared.leafs.log_lines)
    }

    /// Closes the leaf connection that was dialed to a remote, if there is one.
    pub fn end_leaf(&mut self, remote: u64) {
        let mut sessions = self.broker.exchange.sessions.iter();
        let found = sessions.find(|(_, session)| {
            let leaf = session.kind.leaf();
            leaf.is_some_and(|leaf| leaf.remote().is_some_and(|known| known.id == remote))
        });
        if let Some((index, _)) = found {
            self.end(SessionId::from_index(index), CloseReason::ServerShutdown);
        }
    }

    /// Returns all leaf connections, in any phase.
    pub fn leaf_ids(&self) -> Vec<SessionId> {
        let leafs = self.broker.exchange.sessions.iter();
        let leafs = leafs.filter(|(_, session)| session.kind.is_leaf());
        leafs
            .map(|(index, _)| SessionId::from_index(index))
            .collect()
    }

    /// Returns the status of all established leaf connections, with a list of their subscriptions if
    /// requested.
    pub fn leafs(&self, with_subscriptions: bool) -> Vec<LeafStatus> {
        let all = self.leaf_ids().into_iter();
        all.filter_map(|id| self.leaf_status(id, with_subscriptions))
            .collect()
    }

    fn leaf_status(&self, id: SessionId, with_subscriptions: bool) -> Option<LeafStatus> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        let leaf = session.kind.leaf()?;
        if !leaf.is_ready() || session.ending.is_some() {
            return None;
        }
        let router = self.broker.exchange.links[LinkSet::Leafs]
            .routers
            .get(session.account);
        let wanted = || self.broker.exchange.subs.of_session(id.0);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let filter =
            |router: &Router, sub| text(router.filter_of(self.broker.exchange.subs.get(sub)));
        let subscriptions_list = match router {
            Some(router) if with_subscriptions => wanted().map(|sub| filter(router, sub)).collect(),
            _ => Vec::new(),
        };
        Some(LeafStatus {
            id: session.cid,
            name: leaf.name.clone(),
            is_spoke: leaf.is_spoke(),
            is_isolated: leaf.isolates,
            account: self.broker.exchange.account_name(session.account),
            ip: session.peer.ip.clone(),
            port: session.peer.port,
            rtt: session.rtt,
            in_msgs: session.in_msgs,
            out_msgs: session.out_msgs,
            in_bytes: session.in_bytes,
            out_bytes: session.out_bytes,
            subscriptions: session.subscriptions,
            subscriptions_list,
            remote: leaf.remote().map(|remote| remote.id),
            compression: leaf.compression(session.rtt),
            reconnects: leaf.reconnects,
            websocket: session.peer.kind == ConnectionKind::LeafnodeWebSocket,
        })
    }

    /// Returns the compression level of the output to another server; `None` without compression.
    pub fn link_level(&self, id: SessionId) -> Option<Level> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        match &session.kind {
            Kind::Leaf(leaf) => leaf.level(session.rtt),
            Kind::Route(route) => route.level(session.rtt),
            Kind::Client(_) | Kind::Mqtt(_) | Kind::Gateway(_) => None,
        }
    }

    /// Returns whether a connection to another server, a leaf connection or a route, is established.
    pub fn is_linked(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| {
            session.ending.is_none()
                && match &session.kind {
                    Kind::Leaf(leaf) => leaf.is_ready(),
                    Kind::Route(route) => route.is_ready(),
                    Kind::Gateway(gateway) => gateway.is_ready(),
                    Kind::Client(_) | Kind::Mqtt(_) => false,
                }
        })
    }

    /// Returns the number of established leaf connections in an account.
    pub fn leafs_in(&self, account: AccountId) -> usize {
        let seat = self.broker.exchange.shared.leafs.accounts.get(&account);
        seat.map_or(0, |seat| seat.ready.len())
    }
}

/// Returns facts about an ended leaf connection that the dialer needs.
pub(super) fn ended(session: &Session) -> Option<LeafEnded> {
    let leaf = session.kind.leaf()?;
    Some(LeafEnded {
        remote: leaf.remote().map(|remote| remote.id),
        was_ready: leaf.is_ready(),
        retry_after: leaf.retry_after,
        complaint: leaf.complaint.clone(),
        urls: leaf.urls.clone(),
    })
}
