//! Interest: subscriptions in a trie, and a cache of routes with precise invalidation.
//!
//! A change of a filter invalidates only the cached routes of subjects that it matches, so subscription churn
//! does not slow down other subjects. A subject is cached when it is seen for the second time. Therefore
//! reply subjects, each of which is used once, evict no routes. They share one route as long as no filter
//! changes.

mod bridges;
mod cache;
mod changes;
mod interest;
mod matcher;
mod routers;
mod subscriptions;

pub(crate) use bridges::{
    Bridge, BridgeKind, BridgeTarget, HALVES, Listening, MEASURED, REPLIES, Terms, bridges,
    halves_of, has_measured_services, has_services, is_measured, listening, replies_of,
};
pub(crate) use cache::{Member, Reach, Route, RouteMemo};
pub(crate) use changes::Changes;
pub use matcher::{MatchMemo, Matched, Matcher};
pub(crate) use routers::Routers;
pub(crate) use subscriptions::{SubId, Subscription, Subscriptions};

use std::sync::Arc;

use cache::Cache;
use interest::Interest;

use super::remote::{LinkSet, Remote, RemoteSet};

use crate::auth::{Rights, RightsId};
use crate::subject::Filter;
use crate::subject::trie::{Trie, Vacant};

/// All interest in one account that a shard knows: its own subscriptions, and the filters of remotes. The
/// subscriptions themselves are stored by session, in [`Subscriptions`].
pub(crate) struct Router {
    filters: Trie<Interest>,
    cache: Cache,
    /// Bridges to other accounts.
    bridges: Vec<Bridge>,
    /// Number of current subscriptions, and number of subscriptions ever added.
    len: usize,
    added: u64,
    /// Number of changes of interest.
    changes: u64,
    /// Buffer for the filter of a removed subscription.
    path: Vec<u8>,
    /// For each link set, the interest changes that were not taken yet; `None` while no link of the set needs them.
    /// Boxed, because a server may have many accounts.
    news: [Option<Box<Changes>>; LinkSet::ALL.len()],
}

impl Router {
    pub(crate) fn new() -> Self {
        Router {
            filters: Trie::default(),
            cache: Cache::new(),
            bridges: Vec::new(),
            len: 0,
            added: 0,
            changes: 1,
            path: Vec::new(),
            news: [const { None }; LinkSet::ALL.len()],
        }
    }

    /// Adds a subscription. Returns its id, and the new weight if other shards must be notified. If the
    /// session has a subscription with this sid, returns `None` without an effect.
    pub(crate) fn subscribe(
        &mut self,
        subs: &mut Subscriptions,
        session: u32,
        sid: &[u8],
        filter: Filter<'_>,
        queue: &[u8],
    ) -> Option<(SubId, Option<u32>)> {
        match subs.find(session, sid) {
            Some(_) => None,
            None => Some(self.join(subs, session, sid, filter, queue)),
        }
    }

    /// Does the same for a session that has no subscription with this sid.
    pub(crate) fn join(
        &mut self,
        subs: &mut Subscriptions,
        session: u32,
        sid: &[u8],
        filter: Filter<'_>,
        queue: &[u8],
    ) -> (SubId, Option<u32>) {
        let node = self.filters.insert(filter.as_bytes());
        let id = subs.add(session, sid, node, queue);
        let (slot, weight) = self.filters.value_mut(node).join(id, queue);
        subs.get_mut(id).set_slot(slot);
        self.len += 1;
        self.added += 1;
        self.changes += 1;
        self.cache.invalidate(filter);
        self.record_change(filter.as_bytes(), queue);
        (id, weight)
    }

    /// Removes a subscription. If other shards must be notified, calls `announce` with the filter, the queue
    /// group, and the remaining weight.
    pub(crate) fn unsubscribe(
        &mut self,
        subs: &mut Subscriptions,
        id: SubId,
        announce: impl FnOnce(&[u8], &[u8], u32),
    ) {
        let sub = subs.remove(id);
        self.len -= 1;
        let node = sub.node();
        let queue = sub.queue();
        let (moved, weight) = self.filters.value_mut(node).leave(sub.slot(), queue);
        if let Some(moved) = moved {
            subs.get_mut(moved).set_slot(sub.slot());
        }
        let mut path = std::mem::take(&mut self.path);
        self.filters.write_path(node, &mut path);
        self.invalidate(&path);
        self.record_change(&path, queue);
        if let Some(weight) = weight {
            announce(&path, queue, weight);
        }
        self.path = path;
        self.filters.release(node);
    }

    /// Sets the interest of a remote. Returns whether it has changed.
    pub(crate) fn set_remote(
        &mut self,
        from: Remote,
        filter: &[u8],
        queue: &[u8],
        weight: u32,
    ) -> bool {
        let node = match weight {
            0 => match self.filters.find(filter) {
                Some(node) => node,
                None => return false,
            },
            _ => self.filters.insert(filter),
        };
        let interest = self.filters.value_mut(node);
        if interest.weight_of(from, queue) == weight {
            return false;
        }
        interest.set_remote(from, queue, weight);
        self.invalidate(filter);
        self.record_remote_change(from, filter, queue);
        if weight == 0 {
            self.filters.release(node);
        }
        true
    }

    /// Replaces the bridges to other accounts.
    pub(crate) fn set_bridges(&mut self, bridges: Vec<Bridge>) {
        for bridge in std::mem::take(&mut self.bridges) {
            if let Some(node) = self.filters.find(&bridge.filter) {
                self.filters.value_mut(node).clear_bridges();
                self.filters.release(node);
            }
            self.invalidate(&bridge.filter);
            self.record_change(&bridge.filter, b"");
        }
        for (at, bridge) in bridges.iter().enumerate() {
            let node = self.filters.insert(&bridge.filter);
            self.filters.value_mut(node).add_bridge(at);
            self.invalidate(&bridge.filter);
            self.record_change(&bridge.filter, b"");
        }
        self.bridges = bridges;
    }

    /// Takes the destinations in other accounts out of a route. A destination may lead back to this account.
    /// A message that returns finds a route without destinations, so it cannot loop. The caller returns the
    /// destinations to the route later.
    pub(crate) fn take_bridge_targets(&mut self, memo: RouteMemo) -> Vec<BridgeTarget> {
        std::mem::take(self.cache.bridge_targets_mut(memo))
    }

    /// Returns the destinations to their route, which must be unchanged.
    pub(crate) fn restore_bridge_targets(&mut self, memo: RouteMemo, targets: Vec<BridgeTarget>) {
        *self.cache.bridge_targets_mut(memo) = targets;
    }

    /// Returns the destinations from [`take_bridge_targets`](Self::take_bridge_targets) to their route, if
    /// the route still exists.
    pub(crate) fn put_bridge_targets(
        &mut self,
        memo: RouteMemo,
        subject: &[u8],
        targets: Vec<BridgeTarget>,
    ) {
        if self.cache.holds(memo, subject) {
            *self.cache.bridge_targets_mut(memo) = targets;
        }
    }

    /// Starts or stops recording changes of interest for a link set.
    pub(crate) fn watch(&mut self, set: LinkSet, is_watched: bool) {
        let news = &mut self.news[set.index()];
        match is_watched {
            true => drop(news.get_or_insert_default()),
            false => *news = None,
        }
    }

    /// Returns whether there are interest changes that were not taken for a link set.
    #[inline]
    pub(crate) fn has_news(&self, set: LinkSet) -> bool {
        let news = self.news[set.index()].as_ref();
        news.is_some_and(|news| !news.is_empty())
    }

    /// Takes the changes of interest since the last call, if they are recorded for the link set.
    pub(crate) fn take_news(&mut self, set: LinkSet) -> Changes {
        let news = self.news[set.index()].as_mut();
        news.map(|news| std::mem::take(&mut **news))
            .unwrap_or_default()
    }

    /// Forgets the changes of interest that were not taken for the link set.
    pub(crate) fn drop_news(&mut self, set: LinkSet) {
        if let Some(news) = &mut self.news[set.index()] {
            news.clear();
        }
    }

    /// Records that the interest in a filter has changed.
    pub(crate) fn record_change(&mut self, filter: &[u8], queue: &[u8]) {
        for news in self.news.iter_mut().flatten() {
            news.push(filter, queue);
        }
    }

    /// Records that the interest of a remote in a filter has changed. Link sets whose peers do not learn of that
    /// interest skip the change.
    pub(crate) fn record_remote_change(&mut self, from: Remote, filter: &[u8], queue: &[u8]) {
        for (set, news) in LinkSet::ALL.iter().zip(&mut self.news) {
            if let Some(news) = news
                && set.announces(from)
            {
                news.push(filter, queue);
            }
        }
    }

    /// Returns the interest of all remotes but these in a filter: 1 or 0 without a queue group, otherwise the
    /// number of members.
    pub(crate) fn weight_without(&self, remotes: RemoteSet, filter: &[u8], queue: &[u8]) -> u32 {
        let node = self.filters.find(filter);
        node.map_or(0, |node| {
            self.filters.value(node).weight_without(remotes, queue)
        })
    }

    /// Returns the interest of this server's own shards in a filter, without links and bridges: 1 or 0 without
    /// a queue group, otherwise the number of members.
    pub(crate) fn own_weight(&self, filter: &[u8], queue: &[u8]) -> u32 {
        let node = self.filters.find(filter);
        node.map_or(0, |node| self.filters.value(node).own_weight(queue))
    }

    /// Returns whether this server's own shards have plain interest in a filter, apart from one of them.
    pub(crate) fn is_wanted_without(&self, shard: u16, filter: &[u8]) -> bool {
        let node = self.filters.find(filter);
        node.is_some_and(|node| self.filters.value(node).is_wanted_without(shard))
    }

    /// Returns whether remotes have interest in exactly this filter, with this queue group, or without one if
    /// `queue` is empty.
    pub(crate) fn has_remote_interest(&self, filter: &[u8], queue: &[u8]) -> bool {
        let node = self.filters.find(filter);
        node.is_some_and(|node| self.filters.value(node).has_remote_interest(queue))
    }

    /// Returns the weight of a remote's interest in a filter.
    pub(crate) fn weight_of(&self, remote: Remote, filter: &[u8], queue: &[u8]) -> u32 {
        let node = self.filters.find(filter);
        node.map_or(0, |node| self.filters.value(node).weight_of(remote, queue))
    }

    /// Returns this shard's subscriptions with exactly this filter and queue group, or without a group if
    /// `queue` is empty.
    pub(crate) fn members(&self, filter: &[u8], queue: &[u8]) -> &[SubId] {
        let node = self.filters.find(filter);
        node.map_or(&[], |node| self.filters.value(node).members(queue))
    }

    /// Calls `found` with each filter that has interest and each of its queue groups. An empty group stands
    /// for plain interest.
    pub(crate) fn each_interest(&self, found: &mut impl FnMut(&[u8], &[u8])) {
        let mut path = Vec::new();
        self.filters
            .subjects_matching(Filter::parsed(b">"), &mut |node, interest| {
                for (nth, queue) in interest.queues().enumerate() {
                    if nth == 0 {
                        self.filters.write_path(node, &mut path);
                    }
                    found(&path, queue);
                }
            });
    }

    /// Releases capacity that is no longer needed after many filters were removed.
    pub(crate) fn trim(&mut self) {
        self.filters.trim();
    }

    /// Returns whether exactly this filter has interest.
    pub(crate) fn has_filter(&self, filter: &[u8]) -> bool {
        let node = self.filters.find(filter);
        node.is_some_and(|node| !self.filters.value(node).is_vacant())
    }

    /// Returns the route of a subject. With the same memo, the next call needs no lookup while nothing
    /// changes.
    #[inline]
    pub(crate) fn route(&mut self, subject: &[u8], memo: &mut RouteMemo) -> &Route {
        if !self.cache.holds(*memo, subject) {
            *memo = self.route_slow(subject);
        }
        self.cache.get(*memo)
    }

    /// Does the same as [`route`](Self::route). Fast for subjects that are used once and share the part that
    /// filters decide on, such as reply subjects and subjects of acknowledgements.
    #[inline]
    pub(crate) fn route_once(&mut self, subject: &[u8], memo: &mut RouteMemo) -> &Route {
        if !self.cache.holds(*memo, subject) {
            let Router {
                filters,
                cache,
                bridges,
                ..
            } = self;
            *memo = cache.find_or_build_shared(subject, filters, bridges);
        }
        self.cache.get(*memo)
    }

    /// Returns whether a memo refers to the cached route of this subject.
    #[inline]
    pub(crate) fn holds(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        self.cache.holds(memo, subject)
    }

    /// Returns whether an earlier check permitted a subject under these rights, and sets the memo to its
    /// route. A memo that already refers to the subject's route proves such a check.
    #[inline]
    pub(crate) fn knows_permitted(
        &mut self,
        subject: &[u8],
        rights: Option<RightsId>,
        memo: &mut RouteMemo,
    ) -> bool {
        self.cache.holds(*memo, subject)
            || rights.is_some_and(|rights| self.cache.find_permitted(subject, rights, memo))
    }

    /// Records in the cached route that a subject is permitted. Does nothing if the memo refers to another
    /// route.
    pub(crate) fn record_permitted(
        &mut self,
        subject: &[u8],
        memo: RouteMemo,
        rights: &Arc<Rights>,
    ) {
        self.cache.record_permitted(subject, memo, rights);
    }

    /// Returns whether a memo refers to the current route of this subject, whether it is the subject's own or that
    /// of the last subject looked up.
    pub(crate) fn still_holds(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        self.cache.still_holds(memo, subject)
    }

    /// Returns the route that a memo refers to, if it is the current route of several siblings.
    pub(crate) fn route_of_siblings(&self, memo: RouteMemo) -> Option<&Route> {
        self.cache.route_of_siblings(memo)
    }

    /// Returns whether a subject has the route of a memo, because the route is that of its siblings.
    #[inline]
    pub(crate) fn is_sibling(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        self.cache.is_sibling(memo, subject)
    }

    /// Returns the route of a memo for which [`holds`](Self::holds) or [`still_holds`](Self::still_holds) is true.
    pub(crate) fn route_of(&self, memo: RouteMemo) -> &Route {
        self.cache.get(memo)
    }

    /// Returns the number of subscriptions in this account.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of interest changes, which is never 0.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the number of subscriptions ever added.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    fn route_slow(&mut self, subject: &[u8]) -> RouteMemo {
        let Router {
            filters,
            cache,
            bridges,
            ..
        } = self;
        cache.find_or_build(subject, filters, bridges)
    }

    fn invalidate(&mut self, filter: &[u8]) {
        self.changes += 1;
        // Filters were validated when they arrived.
        self.cache.invalidate(Filter::parsed(filter));
    }

    /// Returns the counters of the cache.
    pub(crate) fn cache_counts(&self) -> cache::Counts {
        self.cache.counts()
    }

    /// Returns the filter of a subscription in a new vector.
    pub(crate) fn filter_of(&self, sub: &Subscription) -> Vec<u8> {
        self.filters.path(sub.node())
    }
}

#[cfg(test)]
mod tests;
