//! Interest of peers, and interest that is announced to them.
//!
//! All peers receive the same lines. The shard therefore stores once what it has announced, computes each
//! change once, and appends the same bytes to every route.

use super::super::Exchange;
use super::super::announced::{Announced, Key};
use super::RouteSession;
use super::connections::AnnouncedIn;
use super::imports::{Imports, Place};
use crate::auth::AccountId;
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::RouteInterest;
use crate::codec::route::{RouteError, write_interest};
use crate::exchange::remote::LinkSet;
use crate::exchange::router::{REPLIES, SubId, replies_of};
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::subject::Filter;

/// Largest number of subscriptions of one peer. A peer with more is disconnected.
const SUBSCRIPTIONS_MAX: usize = 16 * 1024 * 1024;

/// Capacity in bytes that the buffer for lines retains.
const LINES_BYTES: usize = 256 * 1024;

/// Length of the account in a subscription's sid.
const ACCOUNT_BYTES: usize = 4;

/// Requests in the system account that only the server of the requester answers.
const NOT_ANNOUNCED: [&[u8]; 2] = [b"$SYS.REQ.USER.*.INFO", b"$SYS.DEBUG.SUBSCRIBERS"];

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
        let mut changed = Vec::new();
        for account in self.routers.take_changed(LinkSet::Routes) {
            let mut news = self.routers.of(account).take_news(LinkSet::Routes);
            news.sort_unstable();
            news.dedup();
            let keys = news.iter().map(|(filter, queue)| Key::new(filter, queue));
            self.follow_imports(account, keys.collect(), &mut changed);
        }
        self.announce_places(changed);
    }

    /// Announces the current interest in these places to all peers, where it has changed.
    fn announce_places(&mut self, places: Vec<Place>) {
        let mut lines = std::mem::take(&mut self.shared.routes.lines);
        for (account, key) in places {
            self.record_place(account, key, &mut lines);
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

    /// Records the current interest in a place as announced, and writes a line if it has changed.
    fn record_place(&mut self, account: AccountId, key: Key, lines: &mut Vec<u8>) {
        let own = self.own_weight_for_routes(account, &key);
        let place = (account, key);
        let imported = self.shared.routes.imports.weight(&place);
        let key = place.1;
        let weight = match key.queue() {
            [] => own.max(imported.min(1)),
            _ => own.saturating_add(imported),
        };
        let announced = self.shared.routes.announced.entry(account);
        let announced = announced.or_insert_with(|| AnnouncedIn {
            name: self.access.name_of(account).into(),
            weights: Announced::default(),
        });
        // An account that was removed before its first announcement has no name.
        if !announced.name.is_empty() && announced.weights.record(&key, weight) {
            write_interest(lines, &announced.name, key.filter(), key.queue(), weight);
        }
    }

    /// Adds the places of these filters of an account to `changed`, and those in other accounts from which it
    /// imports the filters.
    fn follow_imports(&mut self, account: AccountId, keys: Vec<Key>, changed: &mut Vec<Place>) {
        let is_importer = self.shared.routes.imports.has_importer(account);
        for key in keys {
            let place = (account, key);
            if is_importer {
                let weight = self.own_weight_for_routes(account, &place.1);
                self.shared.routes.imports.count(&place, weight, changed);
            }
            changed.push(place);
        }
    }

    /// Announces what has changed because accounts have other imports.
    pub(crate) fn renew_imports(&mut self) {
        if self.shared.routes.ready.is_empty() {
            return;
        }
        let imports = Imports::of(&self.access);
        let before = std::mem::replace(&mut self.shared.routes.imports, imports);
        let mut changed = before.places().cloned().collect();
        self.follow_all_imports(&mut changed);
        self.announce_places(changed);
    }

    /// Calls [`follow_imports`](Self::follow_imports) with all interest.
    fn follow_all_imports(&mut self, changed: &mut Vec<Place>) {
        for account in (0..self.routers.len()).filter_map(|at| u32::try_from(at).ok()) {
            let account = AccountId(account);
            let mut keys = Vec::new();
            let mut note = |filter: &[u8], queue: &[u8]| keys.push(Key::new(filter, queue));
            self.routers[account].each_interest(&mut note);
            self.follow_imports(account, keys, changed);
        }
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
        self.shared.routes.imports = Imports::of(&self.access);
        let mut places = Vec::new();
        self.follow_all_imports(&mut places);
        self.announce_places(places);
    }

    /// Returns the weight of a filter to announce to peers, without that of imports: that of this server's
    /// clients, of its streams, of the leaf nodes for which it is the hub, and of its requests to other
    /// accounts.
    fn own_weight_for_routes(&self, account: AccountId, key: &Key) -> u32 {
        let (filter, queue) = (key.filter(), key.queue());
        if account == AccountId::SYSTEM && NOT_ANNOUNCED.contains(&filter) {
            return 0;
        }
        // An account that only exports may have no router yet.
        let Some(router) = self.routers.get(account) else {
            return 0;
        };
        if filter.starts_with(REPLIES.as_bytes())
            && filter == replies_of(self.reply_token(), self.index)
        {
            return u32::from(self.replies_in.contains(&account));
        }
        let own = router.own_weight(filter, queue);
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
