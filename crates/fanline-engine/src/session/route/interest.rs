//! Interest of peers, and interest that is announced to them.
//!
//! All routes that carry an account receive the same lines. A lane therefore stores once what it has announced
//! in each account, computes each change once, and appends the same bytes to every route.

use std::sync::Arc;

use hashbrown::HashMap;

use super::super::Exchange;
use super::super::announced::{Announced, Key};
use super::RouteSession;
use super::connections::{AnnouncedIn, LaneRoutes, Load};
use super::imports::{Imports, Place};
use crate::auth::{AccountId, Rights};
use crate::codec::leaf::LEAF_SHARD;
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::RouteInterest;
use crate::codec::route::{RouteError, write_interest};
use crate::exchange::deliver::Kind as _;
use crate::exchange::links::{ClusterWeights, WeightBelow};
use crate::exchange::remote::{LinkSet, Remote};
use crate::exchange::route_settings::Lane;
use crate::exchange::router::{REPLIES, SubId, halves_of, replies_of};
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::jetstream::{is_all_requests, is_for_delegates, is_of_service};
use crate::subject::Filter;

/// Largest number of subscriptions of one peer. A peer with more is disconnected.
const SUBSCRIPTIONS_MAX: usize = 16 * 1024 * 1024;

/// Capacity in bytes that the buffer for lines retains.
const LINES_BYTES: usize = 256 * 1024;

/// Length of the account in a subscription's sid.
const ACCOUNT_BYTES: usize = 4;

/// Requests in the system account that only the server of the requester answers.
const NOT_ANNOUNCED: [&[u8]; 2] = [b"$SYS.REQ.USER.*.INFO", b"$SYS.DEBUG.SUBSCRIBERS"];

/// Separates the cluster of leaf nodes from the other parts of a subscription's sid. No other part contains it.
const CLUSTER_MARK: u8 = b'\r';

/// Returns the sid of a subscription to the interest of another server: its account, its filter, and its queue group.
pub(in crate::session) fn sid_of(account: AccountId, key: &Key) -> Vec<u8> {
    [&account.0.to_le_bytes()[..], key.as_bytes()].concat()
}

/// Replaces the contents of `sid` with the sid of a peer's subscription: that of [`sid_of`], and the cluster of the leaf
/// nodes that have the interest, if the peer has named it.
fn write_sid_of_peer(account: AccountId, interest: &RouteInterest<'_>, sid: &mut Vec<u8>) {
    sid.clear();
    sid.extend_from_slice(&account.0.to_le_bytes());
    Key::write(interest.filter, interest.queue, sid);
    if !interest.origin.is_empty() {
        sid.push(CLUSTER_MARK);
        sid.extend_from_slice(interest.origin);
    }
}

/// Returns the cluster of leaf nodes in the sid of a peer's subscription; empty if the peer has named none.
pub(crate) fn cluster_of(sid: &[u8]) -> &[u8] {
    let rest = sid.get(ACCOUNT_BYTES..).unwrap_or_default();
    let mark = rest.iter().position(|byte| *byte == CLUSTER_MARK);
    mark.map_or(b"", |at| &rest[at + 1..])
}

/// Returns the account of a peer's subscription.
pub(crate) fn account_of(sid: &[u8]) -> Option<AccountId> {
    let account = sid.first_chunk::<ACCOUNT_BYTES>()?;
    Some(AccountId(u32::from_le_bytes(*account)))
}

/// The account that the last line of an input has named. Successive lines often name the same one.
#[derive(Default)]
pub(super) struct NamedAccount<'a> {
    name: &'a [u8],
    /// `None` if there is no such account.
    id: Option<AccountId>,
}

impl RouteSession<'_> {
    /// Returns the account of a line.
    fn account_in<'a>(
        &self,
        interest: &RouteInterest<'a>,
        named: &mut NamedAccount<'a>,
    ) -> Option<AccountId> {
        let dedicated = self.state().dedicated_to;
        if dedicated.is_some() {
            return dedicated;
        }
        if named.id.is_none() || named.name != interest.account {
            let name = std::str::from_utf8(interest.account).ok();
            named.name = interest.account;
            named.id = name.and_then(|name| self.broker.exchange.access.account_id(name));
        }
        named.id
    }

    /// Does the same, and logs a line if there is no such account.
    fn known_account<'a>(
        &mut self,
        interest: &RouteInterest<'a>,
        named: &mut NamedAccount<'a>,
    ) -> Option<AccountId> {
        let account = self.account_in(interest, named);
        if account.is_none() {
            self.broker.exchange.outputs.notice(self.id, || {
                let (name, filter) = (text(interest.account), text(interest.filter));
                format!("Unknown account {name:?} for remote subject {filter:?}")
            });
        }
        account
    }

    /// Subscribes the peer to a filter.
    pub(super) fn subscribe<'a>(
        &mut self,
        interest: &RouteInterest<'a>,
        named: &mut NamedAccount<'a>,
    ) {
        let RouteInterest { filter, queue, .. } = *interest;
        let Some(account) = self.known_account(interest, named) else {
            return;
        };
        let Ok(parsed) = Filter::parse(filter) else {
            return self.send_error(&RouteError::InvalidSubscription);
        };
        if !self.state().may_subscribe(filter, queue) {
            return;
        }
        // A server with JetStream delegates no requests.
        let settings = self.broker.exchange.config.routes.as_ref();
        if settings.is_some_and(|own| own.jetstream.is_some()) && is_for_delegates(filter, queue) {
            return;
        }
        let mut sid = std::mem::take(&mut self.broker.exchange.shared.routes.sid);
        write_sid_of_peer(account, interest, &mut sid);
        match self.broker.exchange.subs.find(self.id.0, &sid) {
            Some(sub) => self.set_weight(sub, account, interest),
            None => self.add(account, parsed, interest, &sid),
        }
        self.broker.exchange.shared.routes.sid = sid;
    }

    /// Adds a subscription, which the peer does not have yet.
    fn add(
        &mut self,
        account: AccountId,
        parsed: Filter<'_>,
        interest: &RouteInterest<'_>,
        sid: &[u8],
    ) {
        let RouteInterest {
            filter,
            queue,
            weight,
            ..
        } = *interest;
        if weight == 0 {
            return;
        }
        if self.session().subscriptions >= SUBSCRIPTIONS_MAX {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let links = self.links();
        let exchange = &mut self.broker.exchange;
        exchange.routers.ensure(account);
        let router = exchange.links[links].routers.of(account);
        let (sub, count) = router.join(&mut exchange.subs, self.id.0, sid, parsed, queue);
        exchange.subs.get_mut(sub).set_weight(weight);
        exchange.sessions[self.id.index()].count_subscription(queue);
        exchange.announce_links_interest(links, account, filter, queue, count);
    }

    /// Changes the weight of a subscription. A weight of 0 removes it.
    fn set_weight(&mut self, id: SubId, account: AccountId, interest: &RouteInterest<'_>) {
        let links = self.links();
        let exchange = &mut self.broker.exchange;
        if interest.weight == 0 {
            exchange.drop_link_subscription(links, id);
            return;
        }
        let sub = exchange.subs.get_mut(id);
        if sub.weight() != interest.weight {
            sub.set_weight(interest.weight);
            let (filter, queue) = (interest.filter, interest.queue);
            exchange.announce_links_interest(links, account, filter, queue, None);
        }
    }

    /// Announces all interest to the peer again. It ignores what it knows.
    pub(super) fn announce_again(&mut self) {
        let lane = self.state().carries.lane();
        let exchange = &mut self.broker.exchange;
        let mut ready = exchange.shared.routes.lane(lane).ready.iter();
        if let Some(load) = ready
            .find(|route| route.id == self.id)
            .map(|route| route.load)
        {
            exchange.announce_recorded_to_route(self.id, lane, load);
        }
    }

    /// Applies other permissions of the peer. Removes its interest that they do not allow, and tells it about
    /// them, so that it announces its interest again.
    pub(crate) fn renew_rights(&mut self, rights: Option<Arc<Rights>>) {
        self.state_mut().rights = rights;
        if !self.state().is_ready() {
            return;
        }
        let links = self.links();
        let all: Vec<SubId> = self.broker.exchange.subs.of_session(self.id.0).collect();
        for sub in all {
            let exchange = &mut self.broker.exchange;
            let subscription = exchange.subs.get(sub);
            let Some(account) = account_of(subscription.sid()) else {
                continue;
            };
            let filter = exchange.links[links]
                .routers
                .of(account)
                .filter_of(subscription);
            let queue = subscription.queue().to_vec();
            if !self.state().may_subscribe(&filter, &queue) {
                let exchange = &mut self.broker.exchange;
                exchange.drop_link_subscription(links, sub);
            }
        }
        let line = self.broker.route_info().line();
        self.broker.exchange.send(self.id, &line);
    }

    /// Unsubscribes the peer from a filter.
    pub(super) fn unsubscribe<'a>(
        &mut self,
        interest: &RouteInterest<'a>,
        named: &mut NamedAccount<'a>,
    ) {
        let Some(account) = self.account_in(interest, named) else {
            return;
        };
        let links = self.links();
        let exchange = &mut self.broker.exchange;
        let mut sid = std::mem::take(&mut exchange.shared.routes.sid);
        write_sid_of_peer(account, interest, &mut sid);
        if let Some(sub) = exchange.subs.find(self.id.0, &sid) {
            exchange.drop_link_subscription(links, sub);
        }
        exchange.shared.routes.sid = sid;
    }
}

impl Exchange {
    /// Announces changes of interest to all peers.
    #[inline]
    pub(crate) fn announce_to_routes(&mut self) {
        if self.shared.routes.count > 0 {
            for lane in self.shared.routes.used_lanes() {
                self.announce_changes_to_lane(lane);
            }
        }
    }

    /// Announces changes of interest to the routes of one lane.
    #[inline]
    pub(crate) fn announce_to_lane(&mut self, lane: Lane) {
        if !self.shared.routes.lane(lane).ready.is_empty() {
            self.announce_changes_to_lane(lane);
        }
    }

    fn announce_changes_to_lane(&mut self, lane: Lane) {
        let set = LinkSet::Routes(lane);
        let mut changed = Vec::new();
        for account in self.routers.take_changed(set) {
            let is_importer = self.shared.routes.lane(lane).imports.has_importer(account);
            if !is_importer && self.carriers_of(lane, account).is_empty() {
                self.routers.of(account).drop_news(set);
                continue;
            }
            let mut news = self.routers.of(account).take_news(set);
            let keys = news.sorted().map(|(filter, queue)| Key::new(filter, queue));
            self.follow_imports(lane, account, keys.collect(), &mut changed);
        }
        self.announce_places(lane, changed);
    }

    /// Announces the current interest in these places to the routes that carry them, where it has changed.
    fn announce_places(&mut self, lane: Lane, mut places: Vec<Place>) {
        places.sort_by_key(|(account, _)| *account);
        for places in places.chunk_by(|one, other| one.0 == other.0) {
            let account = places[0].0;
            let carriers = self.carriers_of(lane, account);
            if carriers.is_empty() {
                continue;
            }
            let mut news = Vec::new();
            for place in places {
                self.record_place(lane, place, &mut news);
            }
            if !news.is_empty() {
                self.send_interest(lane, account, &carriers, &news);
            }
        }
    }

    /// Sends interest in an account to routes.
    fn send_interest(
        &mut self,
        lane: Lane,
        account: AccountId,
        to: &[SessionId],
        lines: &[InterestLine<'_>],
    ) {
        let mut out = std::mem::take(&mut self.shared.routes.lines);
        for (is_named, takes_clusters) in
            [(true, true), (false, true), (true, false), (false, false)]
        {
            let has_form = |id: &&SessionId| {
                let kind = &self.sessions[id.index()].kind;
                kind.names_account() == is_named && kind.takes_clusters() == takes_clusters
            };
            let to: Vec<SessionId> = to.iter().filter(has_form).copied().collect();
            if to.is_empty() {
                continue;
            }
            let name = match self.shared.routes.lane(lane).announced.get(&account) {
                Some(announced) if is_named => &*announced.name,
                _ => b"",
            };
            out.clear();
            for line in lines {
                let place = (line.key.filter(), line.key.queue());
                match takes_clusters {
                    true => write_interest(&mut out, &line.cluster, name, place, line.weight),
                    // A peer that does not distinguish clusters may receive the same sum several times.
                    false => write_interest(&mut out, b"", name, place, line.sum),
                }
            }
            for id in to {
                self.outputs.announced_bytes += out.len();
                self.send(id, &out);
            }
        }
        out.clear();
        out.shrink_to(LINES_BYTES);
        self.shared.routes.lines = out;
    }

    /// Returns the slot of an account by its name; `None` if it has dedicated routes.
    pub(super) fn slot_of(&self, name: &[u8]) -> Option<u32> {
        let settings = self.config.routes.as_ref();
        settings.map_or(Some(0), |settings| settings.slot_of(name))
    }

    /// Returns the routes of a lane that carry an account.
    fn carriers_of(&self, lane: Lane, account: AccountId) -> Vec<SessionId> {
        let routes = self.shared.routes.lane(lane);
        let announced = routes.announced.get(&account);
        let name = announced.map_or_else(|| self.access.name_of(account), |own| &own.name);
        let slot = self.slot_of(name);
        let carriers = routes
            .ready
            .iter()
            .filter(|route| route.load.has(account, slot));
        carriers.map(|route| route.id).collect()
    }

    /// Records the current interest in a place as announced. Adds the lines for what has changed to `news`.
    fn record_place<'a>(&mut self, lane: Lane, place: &'a Place, news: &mut Vec<InterestLine<'a>>) {
        let (account, key) = place;
        let own = self.own_weight_for_routes(*account, key);
        let settings = self.config.routes.as_ref();
        let may_import = settings.is_none_or(|settings| settings.may_import(key.filter()));
        let below = match may_import {
            true => self.weights_below_for_routes(*account, key),
            false => Vec::new(),
        };
        let routes = self.shared.routes.lane_mut(lane);
        let imported = routes.imports.weight(place);
        let weight = match key.queue() {
            _ if !may_import => 0,
            [] => own.max(imported.min(1)),
            _ => own.saturating_add(imported),
        };
        let announced = routes.announced.entry(*account);
        let name = || self.access.name_of(*account).into();
        let announced = announced.or_insert_with(|| AnnouncedIn::new(name()));
        // An account that was removed before its first announcement has no name.
        if announced.name.is_empty() {
            return;
        }
        let first = news.len();
        let mut note = |cluster, weight| {
            news.push(InterestLine {
                cluster,
                key,
                weight,
                sum: 0,
            });
        };
        if announced.weights.record(key, weight) {
            note(Box::default(), weight);
        }
        record_below(&mut announced.below, key, below, note);
        for line in &mut news[first..] {
            line.sum = sum_of(key, weight, &announced.below);
        }
    }

    /// Adds the places of these filters of an account to `changed`, and those in other accounts from which it
    /// imports the filters.
    fn follow_imports(
        &mut self,
        lane: Lane,
        account: AccountId,
        keys: Vec<Key>,
        changed: &mut Vec<Place>,
    ) {
        let is_importer = self.shared.routes.lane(lane).imports.has_importer(account);
        for key in keys {
            let place = (account, key);
            if is_importer {
                let weight = self.weight_with_leafs(account, &place.1);
                let imports = &mut self.shared.routes.lane_mut(lane).imports;
                imports.count(&place, weight, changed);
            }
            changed.push(place);
        }
    }

    /// Announces what has changed because other messages may come from peers, and removes the interest of peers
    /// in messages that may not go to them any more.
    pub(crate) fn renew_route_rights(&mut self) {
        for lane in self.shared.routes.used_lanes() {
            let accounts = self.routers.accounts();
            let mut places: Vec<Place> = accounts.flat_map(|it| self.places_in(it)).collect();
            let routes = self.shared.routes.lane(lane);
            places.extend(routes.imports.places().cloned());
            for (account, announced) in &routes.announced {
                let keys = announced.weights.keys().chain(announced.below.keys());
                places.extend(keys.map(|key| (*account, key.clone())));
            }
            self.announce_places(lane, places);
        }
    }

    /// Announces what has changed because accounts have other imports.
    pub(crate) fn renew_imports(&mut self) {
        for lane in self.shared.routes.used_lanes() {
            let imports = Imports::of(&self.access);
            let routes = self.shared.routes.lane_mut(lane);
            let before = std::mem::replace(&mut routes.imports, imports);
            let mut changed = before.places().cloned().collect();
            self.follow_all_imports(lane, &mut changed);
            self.announce_places(lane, changed);
        }
    }

    /// Calls [`follow_imports`](Self::follow_imports) with all interest of accounts that import streams.
    fn follow_all_imports(&mut self, lane: Lane, changed: &mut Vec<Place>) {
        for account in self.routers.accounts() {
            if !self.shared.routes.lane(lane).imports.has_importer(account) {
                continue;
            }
            let keys = self.places_in(account).into_iter().map(|(_, key)| key);
            self.follow_imports(lane, account, keys.collect(), changed);
        }
    }

    /// Returns the places of all interest in an account.
    pub(in crate::session) fn places_in(&self, account: AccountId) -> Vec<Place> {
        let mut places = Vec::new();
        let mut note =
            |filter: &[u8], queue: &[u8]| places.push((account, Key::new(filter, queue)));
        self.routers[account].each_interest(&mut note);
        places
    }

    /// Announces all interest in the accounts of a route that is about to be registered.
    pub(super) fn announce_all_to_route(&mut self, id: SessionId, lane: Lane, load: Load) {
        if self.shared.routes.lane(lane).ready.is_empty() {
            self.routers.watch_all(LinkSet::Routes(lane), true);
            self.shared.routes.lane_mut(lane).imports = Imports::of(&self.access);
            self.follow_all_imports(lane, &mut Vec::new());
        } else {
            self.announce_changes_to_lane(lane);
        }
        self.record_accounts(lane, load);
        self.announce_recorded_to_route(id, lane, load);
    }

    /// Announces all recorded interest in the accounts of a route.
    fn announce_recorded_to_route(&mut self, id: SessionId, lane: Lane, load: Load) {
        let routes = self.shared.routes.lane(lane);
        let in_load = |(account, announced): (&AccountId, &AnnouncedIn)| {
            load.has(*account, self.slot_of(&announced.name))
                .then_some(*account)
        };
        let mut accounts: Vec<AccountId> = routes.announced.iter().filter_map(in_load).collect();
        accounts.sort_unstable();
        for account in accounts {
            let routes = self.shared.routes.lane_mut(lane);
            let Some(announced) = routes.announced.get_mut(&account) else {
                continue;
            };
            let weights = std::mem::take(&mut announced.weights);
            let below = std::mem::take(&mut announced.below);
            let lines = lines_of(&weights, &below);
            if !lines.is_empty() {
                self.send_interest(lane, account, &[id], &lines);
            }
            let routes = self.shared.routes.lane_mut(lane);
            if let Some(announced) = routes.announced.get_mut(&account) {
                (announced.weights, announced.below) = (weights, below);
            }
        }
    }

    /// Records the interest in the accounts of a route that no other route of the lane carries.
    fn record_accounts(&mut self, lane: Lane, load: Load) {
        let routes = self.shared.routes.lane(lane);
        let is_missing = |account: AccountId| {
            let slot = self.slot_of(self.access.name_of(account));
            load.has(account, slot) && !routes.announced.contains_key(&account)
        };
        let caused = routes.imports.places();
        let mut places: Vec<Place> = caused
            .filter(|place| is_missing(place.0))
            .cloned()
            .collect();
        let accounts = self.routers.accounts();
        for account in accounts.filter(|account| is_missing(*account)) {
            places.extend(self.places_in(account));
        }
        let mut news = Vec::new();
        for place in &places {
            self.record_place(lane, place, &mut news);
        }
    }

    /// Removes a route from its lane, and the announced interest that no other route of the lane carries.
    pub(super) fn leave_lane(&mut self, id: SessionId, lane: Lane) {
        let routes = self.shared.routes.lane_mut(lane);
        routes.ready.retain(|route| route.id != id);
        self.shared.routes.count -= 1;
        if self.shared.routes.lane(lane).ready.is_empty() {
            *self.shared.routes.lane_mut(lane) = LaneRoutes::default();
            return self.routers.watch_all(LinkSet::Routes(lane), false);
        }
        let accounts = self.shared.routes.lane(lane).announced.keys();
        let is_unused = |account: &AccountId| self.carriers_of(lane, *account).is_empty();
        let unused: Vec<AccountId> = accounts.copied().filter(is_unused).collect();
        for account in unused {
            self.shared.routes.lane_mut(lane).announced.remove(&account);
        }
    }

    /// Records the weights of a filter at leaf nodes that another shard serves.
    pub(crate) fn record_weight_below(&mut self, report: &WeightBelow) {
        let (account, filter, queue) = (report.account, &report.filter, &report.queue);
        let place = (account, Key::new(filter, queue));
        let below = &mut self.shared.routes.below;
        match report.weights.is_empty() {
            true => below.remove(&place),
            false => below.insert(place, report.weights.clone()),
        };
        self.routers.changing(account).record_change(filter, queue);
    }

    /// Returns the weight of a filter at this server and at the leaf nodes for which it is the hub, without that of
    /// imports.
    pub(in crate::session) fn weight_with_leafs(&self, account: AccountId, key: &Key) -> u32 {
        let below = self.weights_below_for_routes(account, key);
        let below = below.iter().map(|(_, weight)| *weight);
        below.fold(
            self.own_weight_for_routes(account, key),
            u32::saturating_add,
        )
    }

    /// Returns the weight of a filter to announce to peers, without that of imports and of leaf nodes: that of this
    /// server's clients, of its streams, and of its requests to other accounts.
    fn own_weight_for_routes(&self, account: AccountId, key: &Key) -> u32 {
        let (filter, queue) = (key.filter(), key.queue());
        // An account that only exports may have no router yet.
        let router = self.routers.get(account);
        let Some(router) = router.filter(|_| is_announced(account, filter)) else {
            return 0;
        };
        if self.is_of_replies(filter) {
            return u32::from(self.replies_in.contains(&account));
        }
        if account == AccountId::SYSTEM && filter == halves_of(self.reply_token(), self.index) {
            return u32::from(self.awaits_halves);
        }
        let service = self.config.routes.as_ref().and_then(|own| own.jetstream);
        match queue {
            _ if is_of_service(filter) || is_for_delegates(filter, queue) => {
                service.map_or(0, |at| router.weight_of(Remote::Shard(at), filter, queue))
            }
            [] if is_all_requests(filter, self.info.domain.as_deref()) && service.is_some() => {
                u32::from(service.is_some_and(|at| router.is_wanted_without(at, filter)))
            }
            _ => router.own_weight(filter, queue),
        }
    }

    /// Returns whether a filter consists of the subjects of responses to this shard.
    fn is_of_replies(&self, filter: &[u8]) -> bool {
        filter.starts_with(REPLIES.as_bytes())
            && filter == replies_of(self.reply_token(), self.index)
    }

    /// Returns the weights of a filter at leaf nodes for which this server is the hub, to announce to peers.
    fn weights_below_for_routes(&self, account: AccountId, key: &Key) -> ClusterWeights {
        let (filter, queue) = (key.filter(), key.queue());
        let is_of_server = is_of_service(filter) || is_for_delegates(filter, queue);
        if is_of_server || !is_announced(account, filter) || self.is_of_replies(filter) {
            return Vec::new();
        }
        match self.index {
            LEAF_SHARD => self.weights_below(account, filter, queue),
            _ if self.shared.routes.below.is_empty() => Vec::new(),
            _ => {
                let below = self.shared.routes.below.get(&(account, key.clone()));
                below.cloned().unwrap_or_default()
            }
        }
    }
}

/// Returns whether peers may need interest in a filter.
fn is_announced(account: AccountId, filter: &[u8]) -> bool {
    account != AccountId::SYSTEM || !NOT_ANNOUNCED.contains(&filter)
}

/// A line of interest: the weight of a filter at this server, or at its leaf nodes of one cluster.
pub(super) struct InterestLine<'a> {
    /// The cluster; empty for the interest of this server.
    cluster: Box<[u8]>,
    key: &'a Key,
    weight: u32,
    /// The weight at this server and all its leaf nodes.
    sum: u32,
}

/// Weights at leaf nodes for which this server is the hub.
type Below = HashMap<Key, ClusterWeights>;

/// Records the current weights of a key at leaf nodes. Calls `note` for each that has changed, with its cluster.
fn record_below(
    below: &mut Below,
    key: &Key,
    weights: ClusterWeights,
    mut note: impl FnMut(Box<[u8]>, u32),
) {
    if weights.is_empty() && below.is_empty() {
        return;
    }
    let before = match weights.is_empty() {
        true => below.remove(key),
        false => below.insert(key.clone(), weights.clone()),
    };
    let before = before.unwrap_or_default();
    let weight_in = |all: &ClusterWeights, cluster: &[u8]| {
        let of_cluster = all.iter().find(|(name, _)| **name == *cluster);
        of_cluster.map(|(_, weight)| *weight)
    };
    for (cluster, _) in &before {
        if weight_in(&weights, cluster).is_none() {
            note(cluster.clone(), 0);
        }
    }
    for (cluster, weight) in weights {
        if weight_in(&before, &cluster) != Some(weight) {
            note(cluster, weight);
        }
    }
}

/// Returns the weight of a key at this server, which is `own`, and at its leaf nodes.
fn sum_of(key: &Key, own: u32, below: &Below) -> u32 {
    let below = below.get(key).into_iter().flatten();
    let sum = below.fold(own, |sum, (_, weight)| sum.saturating_add(*weight));
    if key.queue().is_empty() {
        sum.min(1)
    } else {
        sum
    }
}

/// Returns the lines of all announced interest in an account.
fn lines_of<'a>(weights: &'a Announced, below: &'a Below) -> Vec<InterestLine<'a>> {
    let own = weights.iter().map(|(key, weight)| InterestLine {
        cluster: Box::default(),
        key,
        weight,
        sum: sum_of(key, weight, below),
    });
    let below = below.iter().flat_map(|(key, clusters)| {
        let sum = sum_of(key, weights.weight(key), below);
        clusters.iter().map(move |(cluster, weight)| InterestLine {
            cluster: cluster.clone(),
            key,
            weight: *weight,
            sum,
        })
    });
    let mut lines: Vec<InterestLine<'a>> = own.chain(below).collect();
    // The order has no meaning, but a simulation must repeat its bytes. Otherwise, sorting would only cost time.
    if cfg!(feature = "simulation") {
        lines.sort_by(|one, other| (&one.cluster, one.key).cmp(&(&other.cluster, other.key)));
    }
    lines
}
