//! Links that close a circle: what leaves by one of them comes back by another.
//!
//! It is seen by the subjects that every server has and passes on: one's own comes back, or that of another
//! server comes by two links. From then on nothing crosses the link by which it came. Mostly it is not cut at
//! once: others in the circle see it at the same moment, and one cut is enough. Who has waited the shortest,
//! by chance, cuts; the others then hear that the circle is open, and go on.

use std::time::Duration;

use super::super::{Exchange, SessionId, Shard};
use crate::auth::AccountId;
use crate::codec::leaf::{LeafError, RETRY_AFTER_CLASH};
use crate::codec::nats::error::CloseReason;
use crate::exchange::remote::LinkSet;

/// A circle that is still closed after this, and up to so much more, is cut.
const PATIENCE_MIN: Duration = Duration::from_millis(50);
const PATIENCE_MORE_MILLIS: u32 = 1_000;

/// Whether another link than this one has interest in a filter.
fn is_wanted_by_another(
    exchange: &Exchange,
    account: AccountId,
    filter: &[u8],
    id: SessionId,
) -> bool {
    let members = exchange.links[LinkSet::Leafs].routers.get(account);
    let members = members.map_or(&[][..], |router| router.members(filter, b""));
    (members.iter()).any(|sub| exchange.subs.get(*sub).session() != id.0)
}

impl Shard {
    /// Whether a server is reached by this link that is reached otherwise as well, or is this one.
    fn closes_circle(&self, id: SessionId, account: AccountId, filter: &[u8]) -> bool {
        let own = self
            .broker
            .exchange
            .shared
            .leafs
            .seats
            .get(&account)
            .map(|seat| &*seat.own_loop);
        own == Some(filter) || is_wanted_by_another(&self.broker.exchange, account, filter, id)
    }

    /// A link says that it leads to a server. Whether that is taken as any interest is.
    pub(super) fn leads_on(&mut self, id: SessionId, filter: &[u8]) -> bool {
        let account = self.broker.exchange.sessions[id.index()].account;
        let is_held = self.broker.exchange.sessions[id.index()]
            .kind
            .leaf
            .as_ref()
            .is_some_and(|leaf| leaf.is_held());
        if !is_held && !self.closes_circle(id, account, filter) {
            return true;
        }
        let more = Duration::from_millis(
            self.broker
                .exchange
                .random
                .below(PATIENCE_MORE_MILLIS)
                .into(),
        );
        let at = self.broker.exchange.outputs.now + PATIENCE_MIN + more;
        let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf else {
            return false;
        };
        if leaf.circling.iter().all(|known| &**known != filter) {
            leaf.circling.push(filter.into());
        }
        if leaf.held_until.is_none() {
            leaf.held_until = Some(at);
            self.broker.exchange.arm_before(id, at);
        }
        false
    }

    /// A link does not lead to a server any more. Whether it was held for that.
    pub(super) fn leads_no_more(&mut self, id: SessionId, filter: &[u8]) -> bool {
        let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf else {
            return false;
        };
        let before = leaf.circling.len();
        leaf.circling.retain(|known| &**known != filter);
        let was_held = leaf.circling.len() < before;
        if was_held {
            self.look_again(id);
        }
        was_held
    }

    /// Some way to a server is gone: links that were held because of it need not be any more.
    pub(super) fn look_again_at_circles(&mut self, account: AccountId) {
        let links = self
            .broker
            .exchange
            .shared
            .leafs
            .seats
            .get(&account)
            .map_or_else(Vec::new, |seat| seat.ready.clone());
        for id in links {
            let session = &self.broker.exchange.sessions[id.index()];
            let is_held = session
                .kind
                .leaf
                .as_ref()
                .is_some_and(|leaf| leaf.is_held());
            if is_held && session.ending.is_none() {
                self.look_again(id);
            }
        }
    }

    fn look_again(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(leaf) = &mut session.kind.leaf else {
            return;
        };
        let all = std::mem::take(&mut leaf.circling);
        let (circling, free): (Vec<Box<[u8]>>, Vec<_>) = all
            .into_iter()
            .partition(|filter| self.closes_circle(id, account, filter));
        if let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf {
            leaf.held_until = leaf.held_until.filter(|_| !circling.is_empty());
            leaf.circling = circling;
        }
        for filter in free {
            self.leaf_wants(id, &filter, b"", 1);
        }
    }

    /// Cuts a link that closes a circle still; tells when to look otherwise.
    pub(in crate::shard) fn handle_circle(&mut self, id: SessionId, now: Duration) -> Circle {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(leaf) = &mut session.kind.leaf else {
            return Circle::Open;
        };
        match leaf.held_until {
            None => Circle::Open,
            Some(at) if now < at => Circle::Suspected(at),
            Some(_) => {
                leaf.retry_after = Some(RETRY_AFTER_CLASH);
                let error = LeafError::Loop(self.broker.exchange.account_name(account));
                self.refuse_leaf(id, &error, CloseReason::ProtocolViolation);
                Circle::Cut
            }
        }
    }
}

/// What has become of a circle.
pub(in crate::shard) enum Circle {
    /// There is none.
    Open,
    /// It is looked at again then.
    Suspected(Duration),
    /// The link is closed.
    Cut,
}
