//! Interest: subscriptions in a trie, and a cache of matches that is invalidated precisely.
//!
//! A change of a filter takes away exactly the cached routes of subjects that it matches, so that
//! subscription churn costs nobody else. A subject is cached when it is seen for the second time:
//! the reply subjects of requests, each used once, never displace anything, and share one route as
//! long as no filter changes.

mod bridges;
mod cache;
mod interest;
mod matcher;
mod routers;
mod subscriptions;

pub(crate) use bridges::{
    Bridge, BridgeKind, Exit, Listening, REPLIES, Terms, bridges, has_services, listening,
    replies_of,
};
pub(crate) use cache::{Member, Reach, Route, RouteMemo};
pub use matcher::{MatchMemo, Matched, Matcher};
pub(crate) use routers::Routers;
pub(crate) use subscriptions::{SubId, Subscription, Subscriptions};

use std::sync::Arc;

use cache::Cache;
use interest::Interest;

use super::remote::{LinkSet, Remote};

use crate::auth::{Rights, RightsId};
use crate::subject::Filter;
use crate::subject::trie::{Trie, Vacant};

/// Filters with queues of which the interest has changed.
type Changed = Vec<(Vec<u8>, Vec<u8>)>;

/// All interest that a shard knows of in one account: its own subscriptions, and the filters of other
/// shards. The subscriptions of all accounts lie together, because sessions own them.
pub(crate) struct Router {
    filters: Trie<Interest>,
    cache: Cache,
    /// What leads out of the account.
    bridges: Vec<Bridge>,
    /// How many subscriptions are in it, and how many there ever were.
    len: usize,
    added: u64,
    /// How often the interest has changed.
    changes: u64,
    /// Room for the path of a filter that goes.
    path: Vec<u8>,
    /// What has changed since it was taken, filters with queues, for each set of links; not noted unless links of the
    /// set are to learn of it.
    news: [Option<Changed>; LinkSet::ALL.len()],
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

    /// Adds a subscription; returns it, and the weight that other shards have to know of, if any.
    /// Nothing happens when the session has one with this sid.
    pub(crate) fn subscribe(
        &mut self,
        subs: &mut Subscriptions,
        session: u32,
        sid: &[u8],
        filter: Filter<'_>,
        queue: &[u8],
    ) -> Option<(SubId, Option<u32>)> {
        if subs.find(session, sid).is_some() {
            return None;
        }
        let node = self.filters.insert(filter.as_bytes());
        let id = subs.add(session, sid, node, queue);
        let (slot, weight) = self.filters.value_mut(node).join(id, queue);
        subs.get_mut(id).set_slot(slot);
        self.len += 1;
        self.added += 1;
        self.changes += 1;
        self.cache.invalidate(filter);
        self.note_news(filter.as_bytes(), queue);
        Some((id, weight))
    }

    /// Takes a subscription away. When other shards have to know, `tell` gets the filter, the queue
    /// and the weight that is left there.
    pub(crate) fn unsubscribe(
        &mut self,
        subs: &mut Subscriptions,
        id: SubId,
        tell: impl FnOnce(&[u8], &[u8], u32),
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
        self.note_news(&path, queue);
        if let Some(weight) = weight {
            tell(&path, queue, weight);
        }
        self.path = path;
        self.filters.release(node);
    }

    /// Notes the interest of a remote.
    pub(crate) fn set_remote(&mut self, from: Remote, filter: &[u8], queue: &[u8], weight: u32) {
        let node = self.filters.insert(filter);
        self.filters.value_mut(node).set_remote(from, queue, weight);
        self.invalidate(filter);
        self.note_news(filter, queue);
        self.filters.release(node);
    }

    /// Says what leads out of the account from now on.
    pub(crate) fn set_bridges(&mut self, bridges: Vec<Bridge>) {
        for bridge in std::mem::take(&mut self.bridges) {
            if let Some(node) = self.filters.find(&bridge.filter) {
                self.filters.value_mut(node).clear_bridges();
                self.filters.release(node);
            }
            self.invalidate(&bridge.filter);
            self.note_news(&bridge.filter, b"");
        }
        for (at, bridge) in bridges.iter().enumerate() {
            let node = self.filters.insert(&bridge.filter);
            self.filters.value_mut(node).add_bridge(at);
            self.invalidate(&bridge.filter);
            self.note_news(&bridge.filter, b"");
        }
        self.bridges = bridges;
    }

    /// Takes the exits of the route of a memo, to be given back: they may lead to here again, and then
    /// nobody follows them.
    pub(crate) fn take_exits(&mut self, memo: RouteMemo) -> Vec<Exit> {
        std::mem::take(self.cache.exits_mut(memo))
    }

    /// Gives them back when nothing has happened since.
    pub(crate) fn restore_exits(&mut self, memo: RouteMemo, exits: Vec<Exit>) {
        *self.cache.exits_mut(memo) = exits;
    }

    /// Gives back what [`take_exits`](Self::take_exits) has taken, if the route is still there.
    pub(crate) fn put_exits(&mut self, memo: RouteMemo, subject: &[u8], exits: Vec<Exit>) {
        if self.cache.holds(memo, subject) {
            *self.cache.exits_mut(memo) = exits;
        }
    }

    /// Notes changes of interest for a set of links from now on, or does not any more.
    pub(crate) fn watch(&mut self, set: LinkSet, is_watched: bool) {
        let news = &mut self.news[set.index()];
        match is_watched {
            true => drop(news.get_or_insert_default()),
            false => *news = None,
        }
    }

    /// Whether something has changed that was not taken for a set of links yet.
    pub(crate) fn has_news(&self, set: LinkSet) -> bool {
        let news = self.news[set.index()].as_ref();
        news.is_some_and(|news| !news.is_empty())
    }

    /// The filters and queues that have changed since the last call, if that is noted for a set of links.
    pub(crate) fn take_news(&mut self, set: LinkSet) -> Changed {
        let news = self.news[set.index()].as_mut();
        news.map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn note_news(&mut self, filter: &[u8], queue: &[u8]) {
        for news in self.news.iter_mut().flatten() {
            news.push((filter.to_vec(), queue.to_vec()));
        }
    }

    /// The interest under a filter apart from a remote's: 1 or 0 without a queue, else how many members.
    pub(crate) fn weight_without(&self, remote: Remote, filter: &[u8], queue: &[u8]) -> u32 {
        let node = self.filters.find(filter);
        node.map_or(0, |node| {
            self.filters.value(node).weight_without(remote, queue)
        })
    }

    /// Whether others than this shard want just this filter, as members of a queue group or, without
    /// one, of none.
    pub(crate) fn is_wanted_elsewhere(&self, filter: &[u8], queue: &[u8]) -> bool {
        let node = self.filters.find(filter);
        node.is_some_and(|node| self.filters.value(node).is_wanted_elsewhere(queue))
    }

    /// The interest of a remote under a filter.
    pub(crate) fn weight_of(&self, remote: Remote, filter: &[u8], queue: &[u8]) -> u32 {
        let node = self.filters.find(filter);
        node.map_or(0, |node| self.filters.value(node).weight_of(remote, queue))
    }

    /// The subscriptions of this shard with just this filter, and a queue or none.
    pub(crate) fn members(&self, filter: &[u8], queue: &[u8]) -> &[SubId] {
        let node = self.filters.find(filter);
        node.map_or(&[], |node| self.filters.value(node).members(queue))
    }

    /// Calls `found` with each filter of which there is interest, and each queue under it, or none.
    pub(crate) fn each_wanted(&self, found: &mut impl FnMut(&[u8], &[u8])) {
        let mut path = Vec::new();
        self.filters
            .topics_matching(Filter::parsed(b">"), &mut |node, interest| {
                for (nth, queue) in interest.queues().enumerate() {
                    if nth == 0 {
                        self.filters.write_path(node, &mut path);
                    }
                    found(&path, queue);
                }
            });
    }

    /// Gives room back that a great many filters have needed.
    pub(crate) fn trim(&mut self) {
        self.filters.trim();
    }

    /// Whether anybody is subscribed to just this filter.
    pub(crate) fn has_filter(&self, filter: &[u8]) -> bool {
        let node = self.filters.find(filter);
        node.is_some_and(|node| !self.filters.value(node).is_vacant())
    }

    /// The route of a subject, and how to find it again at no cost while nothing changes.
    #[inline]
    pub(crate) fn route(&mut self, subject: &[u8], memo: &mut RouteMemo) -> &Route {
        if !self.cache.holds(*memo, subject) {
            *memo = self.route_slow(subject);
        }
        self.cache.get(*memo)
    }

    /// Whether a memo still stands for this subject.
    #[inline]
    pub(crate) fn holds(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        self.cache.holds(memo, subject)
    }

    /// Whether a subject is known to be permitted under these rights; then the memo stands for it. One that holds
    /// has to stand for a subject that is permitted.
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

    /// Takes note that a subject was permitted, if its route is kept and the memo stands for it.
    pub(crate) fn note_permitted(&mut self, subject: &[u8], memo: RouteMemo, rights: &Arc<Rights>) {
        self.cache.note_permitted(subject, memo, rights);
    }

    /// The route of a memo that holds.
    pub(crate) fn held_route(&self, memo: RouteMemo) -> &Route {
        self.cache.get(memo)
    }

    /// How many subscriptions there are in this account.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How often the interest here has changed; never 0.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many there ever were.
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
        // Only what was checked when it came in is stored or announced.
        if let Ok(filter) = Filter::parse(filter) {
            self.cache.invalidate(filter);
        }
    }

    /// How many filters, cached subjects, and what became of look-ups.
    pub(crate) fn cache_counts(&self) -> cache::Counts {
        self.cache.counts()
    }

    /// The filter of a subscription, built anew.
    pub(crate) fn filter_of(&self, sub: &Subscription) -> Vec<u8> {
        self.filters.path(sub.node())
    }
}

#[cfg(test)]
mod tests;
