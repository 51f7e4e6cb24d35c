//! Interest of peers, and interest that is announced to them.
//!
//! All peers receive the same lines. The shard therefore stores once what it has announced, computes each
//! change once, and appends the same bytes to every route.

use super::super::Exchange;
use super::super::announced::{Announced, Key};
use super::RouteSession;
use super::connections::AnnouncedIn;
use crate::auth::AccountId;
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::RouteInterest;
use crate::codec::route::{RouteError, write_interest};
use crate::exchange::remote::LinkSet;
use crate::exchange::router::SubId;
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::subject::Filter;

/// Largest number of subscriptions of one peer. A peer with more is disconnected.
const SUBSCRIPTIONS_MAX: usize = 16 * 1024 * 1024;

/// Prefix of the reply subjects of services. They contain the number of a shard, which other servers have too,
/// so they are not announced.
const SERVICE_REPLIES: &[u8] = b"_R_.";

/// Capacity in bytes that the buffer for lines retains.
const LINES_BYTES: usize = 256 * 1024;

/// Length of the account in a subscription's sid.
const ACCOUNT_BYTES: usize = 4;

/// Returns the sid of a peer's subscription: its account, its filter, and its queue group.
fn sid_of(account: AccountId, key: &Key) -> Vec<u8> {
    [&account.0.to_le_bytes()[..], key.as_bytes()].concat()
}

/// Returns the account of a peer's subscription.
pub(crate) fn account_of(sid: &[u8]) -> Option<AccountId> {
    let account = sid.first_chunk::<ACCOUNT_BYTES>()?;
    Some(AccountId(u32::from_le_bytes(*account)))
}

impl RouteSession<'_> {
    /// Returns the account of this name. Logs a line if there is none.
    fn known_account(&mut self, interest: &RouteInterest<'_>) -> Option<AccountId> {
        let name = std::str::from_utf8(interest.account).ok();
        let account = name.and_then(|name| self.broker.exchange.access.account_id(name));
        if account.is_none() {
            self.broker.exchange.outputs.notice(self.id, || {
                let (name, filter) = (text(interest.account), text(interest.filter));
                format!("Unknown account {name:?} for remote subject {filter:?}")
            });
        }
        account
    }

    /// Subscribes the peer to a filter.
    pub(super) fn subscribe(&mut self, interest: &RouteInterest<'_>) {
        let RouteInterest {
            filter,
            queue,
            weight,
            ..
        } = *interest;
        let Some(account) = self.known_account(interest) else {
            return;
        };
        let Ok(parsed) = Filter::parse(filter) else {
            return self.send_error(&RouteError::InvalidSubscription);
        };
        let sid = sid_of(account, &Key::new(filter, queue));
        let exchange = &mut self.broker.exchange;
        if let Some(sub) = exchange.subs.find(self.id.0, &sid) {
            return self.set_weight(sub, account, interest);
        }
        if weight == 0 {
            return;
        }
        if self.session().subscriptions >= SUBSCRIPTIONS_MAX {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let exchange = &mut self.broker.exchange;
        exchange.routers.ensure(account);
        let router = exchange.links[LinkSet::Routes].routers.of(account);
        let joined = router.subscribe(&mut exchange.subs, self.id.0, &sid, parsed, queue);
        if let Some((sub, _)) = joined {
            exchange.subs.get_mut(sub).set_weight(weight);
            exchange.sessions[self.id.index()].subscriptions += 1;
            exchange.announce_links_interest(LinkSet::Routes, account, filter, queue);
        }
    }

    /// Changes the weight of a subscription. A weight of 0 removes it.
    fn set_weight(&mut self, id: SubId, account: AccountId, interest: &RouteInterest<'_>) {
        let exchange = &mut self.broker.exchange;
        if interest.weight == 0 {
            exchange.drop_link_subscription(LinkSet::Routes, id);
            return;
        }
        let sub = exchange.subs.get_mut(id);
        if sub.weight() != interest.weight {
            sub.set_weight(interest.weight);
            let (filter, queue) = (interest.filter, interest.queue);
            exchange.announce_links_interest(LinkSet::Routes, account, filter, queue);
        }
    }

    /// Unsubscribes the peer from a filter.
    pub(super) fn unsubscribe(&mut self, interest: &RouteInterest<'_>) {
        let name = std::str::from_utf8(interest.account).ok();
        let account = name.and_then(|name| self.broker.exchange.access.account_id(name));
        let Some(account) = account else { return };
        let sid = sid_of(account, &Key::new(interest.filter, interest.queue));
        let exchange = &mut self.broker.exchange;
        if let Some(sub) = exchange.subs.find(self.id.0, &sid) {
            exchange.drop_link_subscription(LinkSet::Routes, sub);
        }
    }
}

impl Exchange {
    /// Announces changes of interest to all peers.
    #[inline]
    pub(crate) fn announce_to_routes(&mut self) {
        if !self.shared.routes.ready.is_empty() {
            self.announce_changes_to_routes();
        }
    }

    fn announce_changes_to_routes(&mut self) {
        let mut lines = std::mem::take(&mut self.shared.routes.lines);
        for account in self.routers.take_changed(LinkSet::Routes) {
            self.record_route_news(account, &mut lines);
        }
        if !lines.is_empty() {
            for id in self.shared.routes.ready.clone() {
                self.outputs.announced_bytes += lines.len();
                self.send(id, &lines);
            }
        }
        lines.clear();
        lines.shrink_to(LINES_BYTES);
        self.shared.routes.lines = lines;
    }

    /// Records the changed interest in an account as announced, and writes lines for what has changed.
    fn record_route_news(&mut self, account: AccountId, lines: &mut Vec<u8>) {
        let mut news = self.routers.of(account).take_news(LinkSet::Routes);
        news.sort_unstable();
        news.dedup();
        let keys = news.iter().map(|(filter, queue)| Key::new(filter, queue));
        let Some(mut announced) = self.take_announced(account) else {
            return;
        };
        for key in keys {
            let weight = self.weight_for_routes(account, key.filter(), key.queue());
            if announced.weights.record(&key, weight) {
                write_interest(lines, &announced.name, key.filter(), key.queue(), weight);
            }
        }
        self.shared.routes.announced.insert(account, announced);
    }

    /// Takes the announced interest in an account out of its table. Returns `None` if the account was removed
    /// and nothing was announced in it.
    fn take_announced(&mut self, account: AccountId) -> Option<AnnouncedIn> {
        let known = self.shared.routes.announced.remove(&account);
        let name = self.access.name_of(account);
        known.or_else(|| {
            (!name.is_empty()).then(|| AnnouncedIn {
                name: name.into(),
                weights: Announced::default(),
            })
        })
    }

    /// Announces all interest to a new peer.
    pub(super) fn announce_all_to_route(&mut self, id: SessionId) {
        match self.shared.routes.ready.is_empty() {
            true => self.record_all_for_routes(),
            false => self.announce_changes_to_routes(),
        }
        let mut lines = std::mem::take(&mut self.shared.routes.lines);
        for announced in self.shared.routes.announced.values() {
            for (key, weight) in announced.weights.iter() {
                write_interest(
                    &mut lines,
                    &announced.name,
                    key.filter(),
                    key.queue(),
                    weight,
                );
            }
        }
        if !lines.is_empty() {
            self.outputs.announced_bytes += lines.len();
            self.send(id, &lines);
        }
        lines.clear();
        lines.shrink_to(LINES_BYTES);
        self.shared.routes.lines = lines;
    }

    /// Begins to record changes of interest, and records all present interest as announced.
    fn record_all_for_routes(&mut self) {
        self.routers.watch_all(LinkSet::Routes, true);
        for account in (0..self.routers.len()).filter_map(|at| u32::try_from(at).ok()) {
            let account = AccountId(account);
            let mut keys = Vec::new();
            let mut note = |filter: &[u8], queue: &[u8]| keys.push(Key::new(filter, queue));
            self.routers[account].each_interest(&mut note);
            let Some(mut announced) = self.take_announced(account) else {
                continue;
            };
            for key in &keys {
                let weight = self.weight_for_routes(account, key.filter(), key.queue());
                announced.weights.record(key, weight);
            }
            self.shared.routes.announced.insert(account, announced);
        }
    }

    /// Returns the weight of a filter to announce to peers: that of this server's clients, of its streams, and
    /// of the leaf nodes for which it is the hub.
    fn weight_for_routes(&self, account: AccountId, filter: &[u8], queue: &[u8]) -> u32 {
        if filter.starts_with(SERVICE_REPLIES) {
            return 0;
        }
        let own = self.routers[account].own_weight(filter, queue);
        if queue.is_empty() && own > 0 {
            return own;
        }
        let is_below = |sub: &&SubId| {
            let session = self.subs.get(**sub).session();
            let leaf = self.sessions[session as usize].kind.leaf();
            leaf.is_some_and(|leaf| !leaf.is_spoke())
        };
        let members = self.links[LinkSet::Leafs].routers.get(account);
        let members = members.map_or(&[][..], |router| router.members(filter, queue));
        let mut below = members.iter().filter(is_below);
        match queue {
            [] => u32::from(below.next().is_some()),
            _ => below.fold(own, |sum, sub| {
                sum.saturating_add(self.subs.get(*sub).weight())
            }),
        }
    }
}
