//! Cycles of leaf connections. In a cycle, a message that leaves over one connection returns over another.
//!
//! Every server has a loop subject, and all servers forward the interest in loop subjects. A server detects a
//! cycle if interest in its own loop subject arrives, or if interest in another server's loop subject arrives
//! over two connections. It then holds the connection of that interest: no message crosses it. Other servers
//! in the cycle detect the cycle at the same moment, but one cut is enough. Therefore each server waits for a
//! random time. The server whose time ends first closes its connection, and the others resume when the
//! interest in the loop subject is withdrawn.

use std::time::Duration;

use super::super::{Broker, Exchange};
use super::LeafSession;
use crate::auth::AccountId;
use crate::codec::leaf::{LeafError, RETRY_AFTER_CLASH};
use crate::codec::nats::error::CloseReason;
use crate::exchange::remote::LinkSet;
use crate::exchange::session::SessionId;

/// Time until a detected cycle is cut. A random time up to `RANDOM_MILLIS_MAX` is added.
const CUT_AFTER_MIN: Duration = Duration::from_millis(50);
const RANDOM_MILLIS_MAX: u32 = 1_000;

/// Returns whether a leaf connection other than `id` has interest in a filter.
fn has_interest_of_another(
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
    /// Returns whether a loop subject belongs to this server, or to a server with a second connection to this
    /// server.
    fn closes_cycle(&self, account: AccountId, filter: &[u8]) -> bool {
        let exchange = &self.broker.exchange;
        let in_account = exchange.shared.leafs.accounts.get(&account);
        in_account.is_some_and(|in_account| in_account.own_loop == filter)
            || has_interest_of_another(exchange, account, filter, self.id)
    }

    /// Handles interest in a loop subject. Returns true if the caller must handle it like any other interest.
    pub(crate) fn handle_loop_interest(&mut self, filter: &[u8]) -> bool {
        let account = self.session().account;
        if !self.state().is_paused() && !self.closes_cycle(account, filter) {
            return true;
        }
        let more =
            Duration::from_millis(self.broker.exchange.random.below(RANDOM_MILLIS_MAX).into());
        let at = self.broker.exchange.outputs.now + CUT_AFTER_MIN + more;
        let leaf = self.state_mut();
        if leaf.loops.iter().all(|known| &**known != filter) {
            leaf.loops.push(filter.into());
        }
        if leaf.paused_until.is_none() {
            leaf.paused_until = Some(at);
            self.broker.exchange.arm_before(self.id, at);
        }
        false
    }

    /// Handles the withdrawal of interest in a loop subject. Returns whether the connection was paused because
    /// of it.
    pub(crate) fn withdraw_loop_interest(&mut self, filter: &[u8]) -> bool {
        let leaf = self.state_mut();
        let before = leaf.loops.len();
        leaf.loops.retain(|known| &**known != filter);
        let was_paused = leaf.loops.len() < before;
        if was_paused {
            self.check_paused();
        }
        was_paused
    }

    fn check_paused(&mut self) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        let leaf = session.kind.expect_leaf_mut();
        let all = std::mem::take(&mut leaf.loops);
        let (loops, free): (Vec<Box<[u8]>>, Vec<_>) = all
            .into_iter()
            .partition(|filter| self.closes_cycle(account, filter));
        let leaf = self.state_mut();
        leaf.paused_until = leaf.paused_until.filter(|_| !loops.is_empty());
        leaf.loops = loops;
        for filter in free {
            self.subscribe(&filter, b"", 1);
        }
    }

    /// Closes a connection that is still part of a cycle when its waiting time is over.
    pub(crate) fn handle_cycle(&mut self, now: Duration) -> Cycle {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        let leaf = session.kind.expect_leaf_mut();
        match leaf.paused_until {
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
    /// Checks paused connections again after another connection was closed, which may have ended their cycle.
    pub(crate) fn check_paused_connections(&mut self, account: AccountId) {
        let in_account = self.exchange.shared.leafs.accounts.get(&account);
        let links = in_account.map_or_else(Vec::new, |in_account| in_account.ready.clone());
        for id in links {
            let session = &self.exchange.sessions[id.index()];
            let is_paused = session.kind.leaf().is_some_and(|leaf| leaf.is_paused());
            if is_paused && session.ending.is_none() {
                self.leaf(id).check_paused();
            }
        }
    }
}

/// The result of checking a connection for a cycle.
pub(crate) enum Cycle {
    /// The connection is in no cycle.
    Open,
    /// The connection may be in a cycle; the check is repeated at this time.
    Suspected(Duration),
    /// The connection is closed.
    Cut,
}
