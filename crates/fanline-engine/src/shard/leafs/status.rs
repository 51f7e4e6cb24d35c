//! What is told of links.

use super::super::Shard;
use super::super::{Session, SessionId};
use crate::auth::ConnectionKind;
use crate::codec::leaf::{LeafEnded, LeafStatus};
use crate::codec::s2::Level;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::Router;

impl Shard {
    /// The links over which messages cross. The list of what they want is there only if asked for.
    pub fn leafs(&self, with_subscriptions: bool) -> Vec<LeafStatus> {
        let all = self.leaf_ids().into_iter();
        all.filter_map(|id| self.leaf_status(id, with_subscriptions))
            .collect()
    }

    fn leaf_status(&self, id: SessionId, with_subscriptions: bool) -> Option<LeafStatus> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        let leaf = session.kind.leaf.as_ref()?;
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

    /// How what is written over a link is compressed now; `None` when it is not.
    pub fn leaf_level(&self, id: SessionId) -> Option<Level> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        session.kind.leaf.as_ref()?.level(session.rtt)
    }

    /// Whether messages cross a link.
    pub fn is_linked(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| {
            session.ending.is_none()
                && session
                    .kind
                    .leaf
                    .as_ref()
                    .is_some_and(|leaf| leaf.is_ready())
        })
    }

    /// How many links there are in an account.
    pub fn leafs_in(&self, account: crate::AccountId) -> usize {
        let seat = self.broker.exchange.shared.leafs.seats.get(&account);
        seat.map_or(0, |seat| seat.ready.len())
    }
}

/// What is told of a link that has ended.
pub(in crate::shard) fn ended(session: &Session) -> Option<LeafEnded> {
    let leaf = session.kind.leaf.as_ref()?;
    Some(LeafEnded {
        remote: leaf.remote().map(|remote| remote.id),
        was_ready: leaf.is_ready(),
        retry_after: leaf.retry_after,
        complaint: leaf.complaint.clone(),
        urls: leaf.urls.clone(),
    })
}
