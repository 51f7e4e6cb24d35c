//! Interest of other clusters, and interest of this one that is announced to them.
//!
//! Other clusters receive the interest of this whole cluster, so it includes that of routes. Any number of
//! members of a queue group is announced as one.

use super::super::Exchange;
use super::super::announced::Key;
use super::GatewaySession;
use super::state::GatewayMode;
use crate::auth::AccountId;
use crate::codec::gateway::{GatewayError, GatewayInfo};
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::RouteInterest;
use crate::codec::route::write_interest;
use crate::exchange::remote::{LinkSet, Remote};
use crate::exchange::route_settings::Lane;
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::session::route::imports::{Imports, Place};
use crate::session::route::{AnnouncedIn, sid_of};
use crate::subject::Filter;

const SET: LinkSet = LinkSet::Gateways;

/// Largest number of subscriptions of one peer. A peer with more is disconnected.
const SUBSCRIPTIONS_MAX: usize = 16 * 1024 * 1024;

/// Capacity in bytes that the buffer for lines retains.
const LINES_BYTES: usize = 256 * 1024;

/// The key of the subscription to everything that stands for an optimistic account. No filter has spaces.
const OPTIMISTIC: &[u8] = b" >";

impl GatewaySession<'_> {
    /// Returns the account of a line. Logs a line if there is no such account.
    fn account_of(&mut self, name: &[u8]) -> Option<AccountId> {
        let exchange = &mut self.broker.exchange;
        let account = std::str::from_utf8(name).ok();
        let account = account.and_then(|name| exchange.access.account_id(name));
        if account.is_none() {
            let line = || format!("Unknown account {:?} for remote interest", text(name));
            exchange.outputs.notice(self.id, line);
        }
        account
    }

    /// Handles that the other cluster is interested in a filter.
    pub(super) fn subscribe(&mut self, interest: &RouteInterest<'_>) {
        let RouteInterest { filter, queue, .. } = *interest;
        let Some(account) = self.account_of(interest.account) else {
            return;
        };
        let Ok(parsed) = Filter::parse(filter) else {
            return self.send_error(&GatewayError::InvalidSubscription);
        };
        let is_plain = queue.is_empty();
        if is_plain && self.state().mode_of(account) != GatewayMode::InterestOnly {
            let state = self.state_mut();
            state.admit_subjects(account, |subject| parsed.matches(subject));
            if self.state().mode_of(account) == GatewayMode::Optimistic {
                return;
            }
        }
        self.insert(account, parsed, &Key::new(filter, queue));
    }

    fn insert(&mut self, account: AccountId, filter: Filter<'_>, key: &Key) {
        if self.session().subscriptions >= SUBSCRIPTIONS_MAX {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let sid = sid_of(account, key);
        let queue = key.queue();
        let exchange = &mut self.broker.exchange;
        if exchange.subs.find(self.id.0, &sid).is_some() {
            return;
        }
        exchange.routers.ensure(account);
        let router = exchange.links[SET].routers.of(account);
        let (sub, count) = router.join(&mut exchange.subs, self.id.0, &sid, filter, queue);
        exchange.subs.get_mut(sub).set_weight(1);
        exchange.sessions[self.id.index()].count_subscription(queue);
        exchange.announce_links_interest(SET, account, filter.as_bytes(), queue, count);
    }

    /// Handles that the other cluster is not interested in a filter any more.
    pub(super) fn unsubscribe(&mut self, interest: &RouteInterest<'_>) {
        let RouteInterest { filter, queue, .. } = *interest;
        let Some(account) = self.account_of(interest.account) else {
            return;
        };
        let mode = self.state().mode_of(account);
        if queue.is_empty() && mode == GatewayMode::Optimistic {
            return self.state_mut().refuse_subject(account, filter);
        }
        self.remove(account, &Key::new(filter, queue));
    }

    fn remove(&mut self, account: AccountId, key: &Key) {
        let exchange = &mut self.broker.exchange;
        if let Some(sub) = exchange.subs.find(self.id.0, &sid_of(account, key)) {
            exchange.drop_link_subscription(SET, sub);
        }
    }

    /// Handles that the other cluster may be interested in an account, or not any more.
    pub(super) fn set_account(&mut self, name: &[u8], is_wanted: bool) {
        let Some(account) = self.account_of(name) else {
            return;
        };
        if self.state().mode_of(account) != GatewayMode::Optimistic {
            return;
        }
        match is_wanted {
            true => {
                self.state_mut().admit_subjects(account, |_| true);
                self.be_optimistic(account);
            }
            false => self.remove(account, &Key::new(OPTIMISTIC, b"")),
        }
    }

    /// Sends everything in an account to the other cluster.
    fn be_optimistic(&mut self, account: AccountId) {
        let all = Filter::parsed(b">");
        self.insert(account, all, &Key::new(OPTIMISTIC, b""));
    }

    /// Handles that the other cluster begins to announce all its interest in an account.
    pub(super) fn begin_interest(&mut self, name: &str) {
        let Some(account) = self.account_of(name.as_bytes()) else {
            return;
        };
        if self.state().mode_of(account) == GatewayMode::Optimistic {
            let mode = GatewayMode::Transitioning;
            self.state_mut().set_mode(account, mode);
        }
    }

    /// Handles that the other cluster has announced all its interest in an account.
    pub(super) fn end_interest(&mut self, name: &str) {
        let Some(account) = self.account_of(name.as_bytes()) else {
            return;
        };
        let mode = GatewayMode::InterestOnly;
        self.state_mut().set_mode(account, mode);
        self.remove(account, &Key::new(OPTIMISTIC, b""));
    }

    /// Sends everything in all accounts to a cluster that expects it, unless it has said otherwise.
    pub(crate) fn begin_optimistic(&mut self) {
        if self.state().info.gateway_iom || !self.state().is_dialed() {
            return;
        }
        for account in self.broker.exchange.known_accounts() {
            let is_new = !self.state().accounts.contains_key(&account);
            if is_new && self.state().mode_of(account) == GatewayMode::Optimistic {
                let mode = GatewayMode::Optimistic;
                self.state_mut().set_mode(account, mode);
                self.be_optimistic(account);
            }
        }
    }
}

impl Exchange {
    /// Returns all accounts that were not removed.
    fn known_accounts(&self) -> Vec<AccountId> {
        let count = u32::try_from(self.access.accounts().len()).unwrap_or(u32::MAX);
        let all = (0..count).map(AccountId);
        all.filter(|account| self.access.account(*account).is_some())
            .collect()
    }

    /// Begins to follow changes of interest, at the first gateway connection.
    pub(super) fn begin_gateways(&mut self) {
        self.own_mark();
        self.routers.watch_all(SET, true);
        self.shared.gateways.imports = Imports::of(&self.access);
        let mut places = Vec::new();
        self.follow_all_gateway_imports(&mut Vec::new());
        places.extend(self.shared.gateways.imports.places().cloned());
        for account in self.known_accounts() {
            self.record_gateway_account(account);
        }
        for account in self.routers.accounts() {
            places.extend(self.places_in(account));
        }
        self.record_places(places, false);
    }

    /// Ends following changes of interest, after the last gateway connection.
    pub(super) fn end_gateways(&mut self) {
        self.routers.watch_all(SET, false);
        let gateways = &mut self.shared.gateways;
        gateways.announced.clear();
        gateways.imports = Imports::default();
        gateways.recent = super::recent::Recent::default();
    }

    /// Adds an account to those whose interest is announced. Returns whether it is new.
    fn record_gateway_account(&mut self, account: AccountId) -> bool {
        let announced = &mut self.shared.gateways.announced;
        let is_new = !announced.contains_key(&account);
        if is_new {
            let name = self.access.name_of(account).into();
            announced.insert(account, AnnouncedIn::new(name));
        }
        is_new
    }

    /// Announces changes of interest to other clusters.
    #[inline]
    pub(crate) fn announce_to_gateways(&mut self) {
        if !self.shared.gateways.is_empty() {
            self.announce_changes_to_gateways();
        }
    }

    fn announce_changes_to_gateways(&mut self) {
        let mut changed = Vec::new();
        for account in self.routers.take_changed(SET) {
            let mut news = self.routers.of(account).take_news(SET);
            let keys = news.sorted().map(|(filter, queue)| Key::new(filter, queue));
            self.follow_gateway_imports(account, keys.collect(), &mut changed);
        }
        if !changed.is_empty() {
            self.announce_gateway_places(changed);
        }
    }

    /// Adds the places of these filters of an account to `changed`, and those in other accounts from which it
    /// imports the filters.
    fn follow_gateway_imports(
        &mut self,
        account: AccountId,
        keys: Vec<Key>,
        changed: &mut Vec<Place>,
    ) {
        let is_importer = self.shared.gateways.imports.has_importer(account);
        for key in keys {
            let place = (account, key);
            if is_importer {
                let weight = self.weight_with_leafs(account, &place.1);
                let imports = &mut self.shared.gateways.imports;
                imports.count(&place, weight, changed);
            }
            changed.push(place);
        }
    }

    fn follow_all_gateway_imports(&mut self, changed: &mut Vec<Place>) {
        for account in self.routers.accounts() {
            if self.shared.gateways.imports.has_importer(account) {
                let keys = self.places_in(account).into_iter().map(|(_, key)| key);
                self.follow_gateway_imports(account, keys.collect(), changed);
            }
        }
    }

    fn announce_gateway_places(&mut self, places: Vec<Place>) {
        let news = self.record_places(places, true);
        let mut lines = std::mem::take(&mut self.shared.gateways.lines);
        for news in news.chunk_by(|one, other| one.0.0 == other.0.0) {
            let account = news[0].0.0;
            let weights: Vec<(&Key, u32)> = news.iter().map(|(at, on)| (&at.1, *on)).collect();
            self.write_gateway_interest(account, &weights, &mut lines);
        }
        let to = self.shared.gateways.inbound.clone();
        self.send_gateway_lines(&to, lines);
    }

    /// Records the current interest in these places as announced. Returns the places whose interest has changed,
    /// by account.
    fn record_places(&mut self, mut places: Vec<Place>, is_recent: bool) -> Vec<(Place, u32)> {
        places.sort_by_key(|(account, _)| *account);
        let mut news = Vec::new();
        for place in places {
            let (account, key) = &place;
            let is_own = self.weight_with_leafs(*account, key) > 0
                || self.shared.gateways.imports.weight(&place) > 0;
            let weight = u32::from(is_own || self.is_routed(*account, key));
            let known = self.shared.gateways.announced.get(account);
            let is_named = known.map_or_else(
                || !self.access.name_of(*account).is_empty(),
                |known| !known.name.is_empty(),
            );
            if !is_named || (weight == 0 && known.is_none()) {
                continue;
            }
            if self.record_gateway_account(*account) {
                self.open_account(*account);
            }
            let now = self.outputs.now;
            let gateways = &mut self.shared.gateways;
            let Some(announced) = gateways.announced.get_mut(account) else {
                continue;
            };
            if !announced.weights.record(key, weight) {
                continue;
            }
            if is_recent && is_own && weight > 0 && key.queue().is_empty() {
                gateways.recent.record(*account, key.filter(), now);
            }
            news.push((place, weight));
        }
        news
    }

    /// Announces to the connected clusters that all interest in a new account follows.
    fn open_account(&mut self, account: AccountId) {
        let mut lines = Vec::new();
        self.write_command(account, GatewayInfo::interest_begins, &mut lines);
        self.write_command(account, GatewayInfo::interest_ends, &mut lines);
        let to = self.shared.gateways.inbound.clone();
        self.send_gateway_lines(&to, lines);
    }

    /// Returns whether other servers of this cluster have announced interest.
    fn is_routed(&self, account: AccountId, key: &Key) -> bool {
        let Some(router) = self.routers.get(account) else {
            return false;
        };
        Lane::ALL.into_iter().any(|lane| {
            let remote = Remote::Links(LinkSet::Routes(lane));
            router.weight_of(remote, key.filter(), key.queue()) > 0
        })
    }

    fn write_command(
        &self,
        account: AccountId,
        command: impl Fn(&str, &[u8]) -> GatewayInfo,
        lines: &mut Vec<u8>,
    ) {
        let settings = self.config.gateways.as_ref();
        let own = settings.map_or("", |settings| &settings.name);
        if let Some(known) = self.shared.gateways.announced.get(&account) {
            lines.extend_from_slice(&command(own, &known.name).line());
        }
    }

    fn write_gateway_interest(
        &self,
        account: AccountId,
        weights: &[(&Key, u32)],
        lines: &mut Vec<u8>,
    ) {
        if let Some(known) = self.shared.gateways.announced.get(&account) {
            for (key, weight) in weights {
                write_interest(
                    lines,
                    b"",
                    &known.name,
                    (key.filter(), key.queue()),
                    *weight,
                );
            }
        }
    }

    fn send_gateway_lines(&mut self, to: &[SessionId], mut lines: Vec<u8>) {
        for id in to {
            self.outputs.announced_bytes += lines.len();
            self.send(*id, &lines);
        }
        lines.clear();
        lines.shrink_to(LINES_BYTES);
        self.shared.gateways.lines = lines;
    }

    /// Announces all interest to an accepted connection that is about to be registered.
    pub(super) fn announce_all_to_gateway(&mut self, id: SessionId) {
        self.announce_to_gateways();
        let mut lines = std::mem::take(&mut self.shared.gateways.lines);
        let announced = &self.shared.gateways.announced;
        let mut accounts: Vec<AccountId> = announced.keys().copied().collect();
        accounts.sort_unstable();
        for account in accounts {
            let Some(known) = self.shared.gateways.announced.get(&account) else {
                continue;
            };
            if known.name.is_empty() {
                continue;
            }
            let weights: Vec<(&Key, u32)> = known.weights.iter().collect();
            self.write_command(account, GatewayInfo::interest_begins, &mut lines);
            self.write_gateway_interest(account, &weights, &mut lines);
            self.write_command(account, GatewayInfo::interest_ends, &mut lines);
        }
        self.send_gateway_lines(&[id], lines);
    }

    /// Returns the number of subscriptions that were announced to each accepted connection.
    pub(crate) fn announced_to_gateways(&self) -> usize {
        let accounts = self.shared.gateways.announced.values();
        let named = accounts.filter(|announced| !announced.name.is_empty());
        named.map(|announced| announced.weights.len()).sum()
    }

    /// Announces what has changed because there are other accounts, or accounts have other imports.
    pub(crate) fn renew_gateway_imports(&mut self) {
        if self.shared.gateways.is_empty() {
            return;
        }
        let imports = Imports::of(&self.access);
        let before = std::mem::replace(&mut self.shared.gateways.imports, imports);
        let mut changed: Vec<Place> = before.places().cloned().collect();
        self.follow_all_gateway_imports(&mut changed);
        for account in self.known_accounts() {
            if self.record_gateway_account(account) {
                self.open_account(account);
            }
        }
        self.announce_gateway_places(changed);
    }
}
