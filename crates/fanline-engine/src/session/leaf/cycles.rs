//! Links that close a cycle: what leaves by one of them comes back by another.
//!
//! It is seen by the subjects that every server has and passes on: one's own comes back, or that of another
//! server comes by two links. From then on nothing crosses the link by which it came. Mostly it is not cut at
//! once: others in the cycle see it at the same moment, and one cut is enough. Who has waited the shortest,
//! by chance, cuts; the others then hear that the cycle is open, and go on.

use std::time::Duration;

use super::super::{Broker, Exchange};
use super::LeafSession;
use crate::auth::AccountId;
use crate::codec::leaf::{LeafError, RETRY_AFTER_CLASH};
use crate::codec::nats::error::CloseReason;
use crate::exchange::remote::LinkSet;
use crate::exchange::session::SessionId;

/// A cycle that is still closed after this, and up to so much more, is cut.
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

impl LeafSession<'_> {
    /// Whether a server is reached by this link that is reached otherwise as well, or is this one.
    fn closes_cycle(&self, account: AccountId, filter: &[u8]) -> bool {
        let exchange = &self.broker.exchange;
        let seat = exchange.shared.leafs.seats.get(&account);
        seat.is_some_and(|seat| seat.own_loop == filter)
            || is_wanted_by_another(exchange, account, filter, self.id)
    }

    /// A link says that it leads to a server. Whether that is taken as any interest is.
    pub(crate) fn leads_on(&mut self, filter: &[u8]) -> bool {
        let account = self.broker.exchange.sessions[self.id.index()].account;
        if !self.link().is_held() && !self.closes_cycle(account, filter) {
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
        let leaf = self.link_mut();
        if leaf.circling.iter().all(|known| &**known != filter) {
            leaf.circling.push(filter.into());
        }
        if leaf.held_until.is_none() {
            leaf.held_until = Some(at);
            self.broker.exchange.arm_before(self.id, at);
        }
        false
    }

    /// A link does not lead to a server any more. Whether it was held for that.
    pub(crate) fn leads_no_more(&mut self, filter: &[u8]) -> bool {
        let leaf = self.link_mut();
        let before = leaf.circling.len();
        leaf.circling.retain(|known| &**known != filter);
        let was_held = leaf.circling.len() < before;
        if was_held {
            self.look_again();
        }
        was_held
    }

    fn look_again(&mut self) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        let leaf = session.kind.expect_leaf_mut();
        let all = std::mem::take(&mut leaf.circling);
        let (circling, free): (Vec<Box<[u8]>>, Vec<_>) = all
            .into_iter()
            .partition(|filter| self.closes_cycle(account, filter));
        let leaf = self.link_mut();
        leaf.held_until = leaf.held_until.filter(|_| !circling.is_empty());
        leaf.circling = circling;
        for filter in free {
            self.subscribe(&filter, b"", 1);
        }
    }

    /// Cuts a link that closes a cycle still; tells when to look otherwise.
    pub(crate) fn handle_cycle(&mut self, now: Duration) -> Cycle {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        let leaf = session.kind.expect_leaf_mut();
        match leaf.held_until {
            None => Cycle::Open,
            Some(at) if now < at => Cycle::Suspected(at),
            Some(_) => {
                leaf.retry_after = Some(RETRY_AFTER_CLASH);
                let error = LeafError::Loop(self.broker.exchange.account_name(account));
                self.refuse(&error, CloseReason::ProtocolViolation);
                Cycle::Cut
            }
        }
    }
}

impl Broker {
    /// Some way to a server is gone: links that were held because of it need not be any more.
    pub(crate) fn look_again_at_cycles(&mut self, account: AccountId) {
        let seat = self.exchange.shared.leafs.seats.get(&account);
        let links = seat.map_or_else(Vec::new, |seat| seat.ready.clone());
        for id in links {
            let session = &self.exchange.sessions[id.index()];
            let is_held = session.kind.leaf().is_some_and(|leaf| leaf.is_held());
            if is_held && session.ending.is_none() {
                self.leaf(id).look_again();
            }
        }
    }
}

/// What has become of a cycle.
pub(crate) enum Cycle {
    /// There is none.
    Open,
    /// It is looked at again then.
    Suspected(Duration),
    /// The link is closed.
    Cut,
}
