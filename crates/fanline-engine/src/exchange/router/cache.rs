//! Cache of routes.

mod siblings;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use slab::Slab;

use super::bridges::{Bridge, BridgeTarget};
use super::interest::Interest;
use super::subscriptions::SubId;
use crate::auth::{Permitted, Rights, RightsId};
use crate::exchange::remote::{LinkSet, MemberRank, Remote, RemoteSet};
use crate::short_bytes::ShortBytes;
use crate::subject::Filter;
use crate::subject::trie::{NodeId, Trie, Vacant};
use siblings::Siblings;

/// Largest number of cached routes. The oldest one is evicted first.
const ROUTES_MAX: usize = 32 * 1024;
/// Largest number of targets in all cached routes together. It bounds the memory of wide routes.
const TARGETS_MAX: usize = 2 * 1024 * 1024;
/// Number of rights cached per subject. Up to that many users with different rights can publish to the
/// subject in turn without further permission checks.
const PERMITTED_MAX: usize = 4;
/// Number of slots for subjects that were seen once.
const SEEN_SLOTS: usize = 8 * 1024;

const HEAD: &[u8] = b"HMSG ";

/// All destinations of messages to one subject.
#[derive(Default)]
pub(crate) struct Route {
    /// `HMSG <subject> `. The start of a `MSG` line is the same without the first letter.
    head: Vec<u8>,
    /// Subscriptions that receive each message.
    pub(crate) plain: Vec<SubId>,
    /// Remotes with subscribers that receive each message.
    pub(crate) plain_remote: RemoteSet,
    /// Groups of which one member receives each message. Each group has a range of `members`.
    groups: Vec<RouteGroup>,
    members: Vec<Member>,
    /// Destinations in other accounts, which receive each message.
    bridge_targets: Vec<BridgeTarget>,
    /// Number that distinguishes a route from later routes in the same slot.
    generation: u64,
    node: Option<NodeId>,
    /// Rights that permit publishing to the subject, the newest first. They are stored in the route, so they
    /// need no lookup and are dropped together with the route.
    permitted: [Option<Permitted>; PERMITTED_MAX],
}

/// A queue group in a route, with its members under all matching filters.
#[derive(Clone)]
pub(crate) struct RouteGroup {
    pub(crate) name: ShortBytes,
    first: usize,
    len: usize,
    /// Number of local members plus the weights of the remote members.
    pub(crate) weight: u32,
}

/// A subscription or remote that may be selected for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    Local(SubId),
    Remote { remote: Remote, weight: u32 },
}

impl Member {
    /// Returns whether the member is in another cluster. Then all members of the group are.
    #[inline]
    pub(crate) fn is_beyond(self) -> bool {
        self.rank() == MemberRank::Beyond
    }

    /// Returns the weight of the members that are neither on another server of the cluster nor in another cluster.
    pub(crate) fn weight_near(members: &[Member]) -> u32 {
        let near = members.iter();
        let near = near
            .filter(|member| !matches!(member.rank(), MemberRank::Cluster | MemberRank::Beyond));
        near.fold(0, |sum: u32, member| sum.saturating_add(member.weight()))
    }

    /// Returns where the member is.
    pub(in crate::exchange) fn rank(self) -> MemberRank {
        match self {
            Member::Local(_) => MemberRank::Shard,
            Member::Remote { remote, .. } => remote.rank(),
        }
    }

    pub(crate) fn weight(self) -> u32 {
        match self {
            Member::Local(_) => 1,
            Member::Remote { weight, .. } => weight,
        }
    }
}

impl Route {
    pub(crate) fn subject(&self) -> &[u8] {
        &self.head[HEAD.len()..self.head.len() - 1]
    }

    #[inline]
    pub(crate) fn msg_head(&self) -> &[u8] {
        &self.head[1..]
    }

    #[inline]
    pub(crate) fn hmsg_head(&self) -> &[u8] {
        &self.head
    }

    #[inline]
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&RouteGroup, &[Member])> {
        self.groups
            .iter()
            .map(|g| (g, &self.members[g.first..g.first + g.len]))
    }

    /// Returns whether there are targets other than local plain subscriptions.
    #[inline]
    pub(crate) fn has_other_targets(&self) -> bool {
        !(self.groups.is_empty() && self.plain_remote.is_empty() && self.bridge_targets.is_empty())
    }

    /// Returns the remote if the only targets other than local plain subscriptions are the plain
    /// subscriptions of one remote.
    #[inline]
    pub(crate) fn only_remote(&self) -> Option<Remote> {
        match self.groups.is_empty() && self.bridge_targets.is_empty() {
            true => self.plain_remote.only(),
            false => None,
        }
    }

    pub(crate) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    #[inline]
    pub(crate) fn has_bridge_targets(&self) -> bool {
        !self.bridge_targets.is_empty()
    }

    /// Returns the destinations in other accounts.
    pub(crate) fn bridge_targets(&self) -> &[BridgeTarget] {
        &self.bridge_targets
    }

    /// Returns whether the subject has no subscriber.
    pub(crate) fn is_empty(&self) -> bool {
        self.plain.is_empty() && !self.has_other_targets()
    }

    fn target_count(&self) -> usize {
        self.plain.len() + self.members.len()
    }

    /// Copies the targets of `other` into this route, reusing its capacity.
    fn clone_targets(&mut self, other: &Route) {
        self.head.clone_from(&other.head);
        self.plain.clone_from(&other.plain);
        self.plain_remote = other.plain_remote;
        self.groups.clone_from(&other.groups);
        self.members.clone_from(&other.members);
    }
}

/// Builds a route from the matching filters. The next route reuses its capacity.
#[derive(Default)]
pub(super) struct RouteBuilder {
    route: Route,
    /// Index of each group. Groups with the same name under two filters are one group.
    groups: HashMap<ShortBytes, u32>,
    /// Members in the order in which they were found, each with the index of its group.
    found: Vec<(u32, Member)>,
}

/// Number of targets for which the builder retains capacity. A very wide subject then does not occupy memory
/// forever.
const BUILDER_TARGETS_KEPT: usize = 16 * 1024;

impl RouteBuilder {
    pub(super) fn add_plain(&mut self, subs: &[SubId], remote: RemoteSet) {
        self.route.plain.extend_from_slice(subs);
        self.route.plain_remote.add(remote);
    }

    pub(super) fn add_group(&mut self, name: &ShortBytes, members: impl Iterator<Item = Member>) {
        let next = u32::try_from(self.groups.len()).expect("fewer groups than members");
        let group = *self.groups.entry_ref(name).or_insert(next);
        self.found.extend(members.map(|m| (group, m)));
    }

    pub(super) fn add_bridge_targets(&mut self, targets: impl Iterator<Item = BridgeTarget>) {
        self.route.bridge_targets.extend(targets);
    }

    fn start(&mut self, subject: &[u8]) {
        if self.found.capacity() + self.route.plain.capacity() > BUILDER_TARGETS_KEPT {
            *self = RouteBuilder::default();
        }
        let Route {
            head,
            plain,
            plain_remote,
            groups,
            members,
            bridge_targets,
            ..
        } = &mut self.route;
        head.clear();
        head.extend_from_slice(HEAD);
        head.extend_from_slice(subject);
        head.push(b' ');
        plain.clear();
        *plain_remote = RemoteSet::default();
        groups.clear();
        members.clear();
        bridge_targets.clear();
        self.groups.clear();
        self.found.clear();
    }

    /// Sorts members by group.
    fn finish(&mut self) {
        if self.found.is_empty() {
            return;
        }
        // Local members come first, because a message from another shard can go only to them. Leaf nodes and
        // other clusters come last.
        self.found
            .sort_unstable_by_key(|(group, member)| (*group, member.rank()));
        let Route {
            groups, members, ..
        } = &mut self.route;
        let none = RouteGroup {
            name: ShortBytes::from(&b""[..]),
            first: 0,
            len: 0,
            weight: 0,
        };
        groups.resize(self.groups.len(), none);
        for (name, group) in &self.groups {
            groups[*group as usize].name = name.clone();
        }
        let (mut group_on_server, mut group_in_cluster) = (None, None);
        let mut group_with_leaf = None;
        for (at, member) in &self.found {
            let group = &mut groups[*at as usize];
            match member.rank() {
                MemberRank::Shard | MemberRank::Server => group_on_server = Some(*at),
                MemberRank::Cluster => group_in_cluster = Some(*at),
                // A leaf node receives no messages of a group that has members on this server.
                MemberRank::Leaf if group_on_server == Some(*at) => continue,
                MemberRank::Leaf => group_with_leaf = Some(*at),
                // Another cluster receives messages of a group only if this one has no member.
                MemberRank::Beyond
                    if [group_on_server, group_in_cluster, group_with_leaf]
                        .contains(&Some(*at)) =>
                {
                    continue;
                }
                MemberRank::Beyond => {}
            }
            if group.len == 0 {
                group.first = members.len();
            }
            group.len += 1;
            // If the group has members in the cluster, a leaf node is used only for messages that came from
            // the cluster.
            if member.rank() != MemberRank::Leaf || group_in_cluster != Some(*at) {
                group.weight = group.weight.saturating_add(member.weight());
            }
            members.push(*member);
        }
    }
}

/// Reference to a route, valid while [`Cache::holds`] returns true. The default is never valid.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteMemo {
    /// Index of a cached route. For an uncached route, 0 stands for the builder's route, and n > 0 stands for
    /// the sibling route at index n - 1.
    at: u32,
    reach: Reach,
    generation: u64,
}

impl RouteMemo {
    #[inline]
    pub(crate) fn reach(self) -> Reach {
        self.reach
    }
}

/// The kinds of targets of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No target.
    Nowhere,
    /// Plain subscriptions on this shard only, at least one. There are no groups, and no targets on other
    /// shards.
    Plain,
    /// Plain subscriptions on this shard, if there are any, and the plain subscriptions of one link set.
    WithLinks(LinkSet),
    /// Plain subscriptions of one other shard only.
    Shard(u16),
    /// Unknown: the caller must examine the route.
    #[default]
    Unknown,
}

/// Generation of uncached routes.
const UNCACHED: u64 = 0;

/// Counters for monitoring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cached: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Number of targets in all cached routes together, and in the widest one.
    pub(crate) targets: usize,
    pub(crate) targets_max: usize,
}

/// Cache of routes for subjects that were seen more than once.
pub(super) struct Cache {
    routes: Slab<Route>,
    /// Builder of new routes. It also stores the latest uncached route.
    builder: RouteBuilder,
    siblings: Siblings,
    by_subject: HashTable<u32>,
    subjects: Trie<CachedAt>,
    hash_builder: DefaultHashBuilder,
    /// Bits of the hash of the last uncached subject in each slot.
    seen_once: Box<[u32]>,
    targets: usize,
    generation: u64,
    eviction_cursor: usize,
    hits: u64,
    misses: u64,
    invalidated: Vec<u32>,
}

#[derive(Default)]
struct CachedAt(Option<u32>);

impl Vacant for CachedAt {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

impl Cache {
    pub(super) fn new() -> Self {
        Cache {
            routes: Slab::new(),
            builder: RouteBuilder::default(),
            siblings: Siblings::new(),
            by_subject: HashTable::new(),
            subjects: Trie::default(),
            hash_builder: DefaultHashBuilder::default(),
            seen_once: Box::default(),
            targets: 0,
            generation: 0,
            eviction_cursor: 0,
            hits: 0,
            misses: 0,
            invalidated: Vec::new(),
        }
    }

    /// Returns whether a memo refers to the cached route of this subject.
    #[inline]
    pub(super) fn holds(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        let route = self.routes.get(memo.at as usize);
        route.is_some_and(|r| r.generation == memo.generation && r.subject() == subject)
    }

    /// See [`Router::still_holds`](super::Router::still_holds).
    pub(super) fn still_holds(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        match (memo.generation, memo.at.checked_sub(1)) {
            (UNCACHED, None) => false,
            (UNCACHED, Some(at)) => self.siblings.holds(at, subject),
            _ => self.holds(memo, subject),
        }
    }

    /// See [`Router::route_of_siblings`](super::Router::route_of_siblings).
    pub(super) fn route_of_siblings(&self, memo: RouteMemo) -> Option<&Route> {
        let at = memo
            .at
            .checked_sub(1)
            .filter(|_| memo.generation == UNCACHED)?;
        self.siblings.current_route(at)
    }

    /// See [`Router::is_sibling`](super::Router::is_sibling).
    #[inline]
    pub(super) fn is_sibling(&self, memo: RouteMemo, subject: &[u8]) -> bool {
        let at = memo
            .at
            .checked_sub(1)
            .filter(|_| memo.generation == UNCACHED);
        at.is_some_and(|at| self.siblings.takes(at, subject))
    }

    #[inline]
    pub(super) fn get(&self, memo: RouteMemo) -> &Route {
        if memo.generation == UNCACHED {
            self.uncached(memo)
        } else {
            &self.routes[memo.at as usize]
        }
    }

    fn uncached(&self, memo: RouteMemo) -> &Route {
        match memo.at.checked_sub(1) {
            None => &self.builder.route,
            Some(at) => self.siblings.route(at),
        }
    }

    pub(super) fn bridge_targets_mut(&mut self, memo: RouteMemo) -> &mut Vec<BridgeTarget> {
        if memo.generation != UNCACHED {
            return &mut self.routes[memo.at as usize].bridge_targets;
        }
        match memo.at.checked_sub(1) {
            None => &mut self.builder.route.bridge_targets,
            Some(at) => self.siblings.bridge_targets_mut(at),
        }
    }

    /// Returns the route of a subject: its cached route, the route of its siblings, or a new route from the
    /// filters.
    pub(super) fn find_or_build(
        &mut self,
        subject: &[u8],
        filters: &Trie<Interest>,
        bridges: &[Bridge],
    ) -> RouteMemo {
        let hash = self.hash(subject);
        if let Some(at) = self.find(hash, subject) {
            self.hits += 1;
            return self.memo(at);
        }
        let was_seen = self.was_seen(hash);
        if !was_seen && let Some(at) = self.siblings.find(subject) {
            self.hits += 1;
            return RouteMemo {
                at: at + 1,
                ..RouteMemo::default()
            };
        }
        self.misses += 1;
        let builder = &mut self.builder;
        builder.start(subject);
        filters.filters_matching(subject, &mut |interest: &Interest| {
            interest.add_to(builder);
            let indexes = interest.bridges().iter();
            builder.add_bridge_targets(indexes.map(|at| bridges[*at].target(subject)));
        });
        builder.finish();
        if was_seen {
            return self.insert(hash, subject);
        }
        let is_separate = || filters.decides_on_last_token(subject);
        self.siblings
            .record(subject, &self.builder.route, is_separate);
        RouteMemo::default()
    }

    /// Returns the same as [`find_or_build`](Self::find_or_build). Subjects that differ in a part that no
    /// filter decides on need no hash.
    pub(super) fn find_or_build_shared(
        &mut self,
        subject: &[u8],
        filters: &Trie<Interest>,
        bridges: &[Bridge],
    ) -> RouteMemo {
        if let Some(at) = self.siblings.find_next(subject) {
            self.hits += 1;
            return RouteMemo {
                at: at + 1,
                ..RouteMemo::default()
            };
        }
        let memo = self.find_or_build(subject, filters, bridges);
        let is_new = memo.generation == UNCACHED && memo.at == 0;
        if is_new && let Some(prefix) = filters.deciding_prefix(subject) {
            (self.siblings).record_prefix(subject, prefix, &self.builder.route);
        }
        memo
    }

    /// Finds the cached route of a subject that these rights permit. Builds no route, so denied subjects
    /// evict no routes.
    #[inline]
    pub(super) fn find_permitted(
        &mut self,
        subject: &[u8],
        rights: RightsId,
        memo: &mut RouteMemo,
    ) -> bool {
        let Some(at) = self.find(self.hash(subject), subject) else {
            return false;
        };
        let mut permitted = self.routes[at as usize].permitted.iter().flatten();
        if !permitted.any(|permitted| permitted.is_under(rights)) {
            return false;
        }
        self.hits += 1;
        *memo = self.memo(at);
        true
    }

    /// See [`Router::record_permitted`](super::Router::record_permitted).
    pub(super) fn record_permitted(
        &mut self,
        subject: &[u8],
        memo: RouteMemo,
        rights: &Arc<Rights>,
    ) {
        if self.holds(memo, subject) {
            let all = &mut self.routes[memo.at as usize].permitted;
            all.rotate_right(1);
            all[0] = Some(Permitted::under(rights));
        }
    }

    /// Removes the routes of all subjects that a filter matches.
    pub(super) fn invalidate(&mut self, filter: Filter<'_>) {
        self.siblings.invalidate();
        if self.by_subject.is_empty() {
            return;
        }
        let mut invalidated = std::mem::take(&mut self.invalidated);
        self.subjects
            .subjects_matching(filter, &mut |_, cached| invalidated.extend(cached.0));
        for at in invalidated.drain(..) {
            self.remove(at);
        }
        self.invalidated = invalidated;
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            cached: self.by_subject.len(),
            hits: self.hits,
            misses: self.misses,
            targets: self.targets,
            targets_max: (self.routes.iter())
                .map(|(_, route)| route.target_count())
                .max()
                .unwrap_or(0),
        }
    }

    /// Returns whether the subject was seen before, and records it.
    fn was_seen(&mut self, hash: u64) -> bool {
        // Different bits of the hash select the slot and identify the subject in the slot. 0 marks an empty
        // slot.
        let [.., a, b, c, d] = hash.to_be_bytes();
        let trace = u32::from_be_bytes([a, b, c, d]) | 1;
        if self.seen_once.is_empty() {
            // Allocated on first use, because most accounts of a large server are idle.
            self.seen_once = vec![0; SEEN_SLOTS].into();
        }
        let slot = &mut self.seen_once[(hash >> 32) as usize & (SEEN_SLOTS - 1)];
        std::mem::replace(slot, trace) == trace
    }

    /// Moves the new route from the builder into the cache. A subject with an empty token is not cached: it
    /// matches no filter, and that check is cheap.
    fn insert(&mut self, hash: u64, subject: &[u8]) -> RouteMemo {
        if Filter::parse(subject).is_err() {
            return RouteMemo::default();
        }
        self.generation += 1;
        let node = self.subjects.insert(subject);
        // A clone has no spare capacity. The builder retains its capacity.
        let built = &self.builder.route;
        let route = Route {
            head: built.head.clone(),
            plain: built.plain.clone(),
            plain_remote: built.plain_remote,
            groups: built.groups.clone(),
            members: built.members.clone(),
            bridge_targets: built.bridge_targets.clone(),
            generation: self.generation,
            node: Some(node),
            permitted: Default::default(),
        };
        self.targets += route.target_count();
        let at = u32::try_from(self.routes.insert(route)).expect("bounded by ROUTES_MAX");
        self.subjects.value_mut(node).0 = Some(at);
        let Cache {
            routes,
            by_subject,
            hash_builder,
            ..
        } = self;
        by_subject.insert_unique(hash, at, |at| {
            hash_subject(hash_builder, routes[*at as usize].subject())
        });
        while self.by_subject.len() > ROUTES_MAX
            || (self.targets > TARGETS_MAX && self.by_subject.len() > 1)
        {
            self.evict_other_than(at);
        }
        self.memo(at)
    }

    fn memo(&self, at: u32) -> RouteMemo {
        let route = &self.routes[at as usize];
        let reach = match route.has_other_targets() {
            true => match route.only_remote() {
                // A response has another subject there.
                Some(Remote::Links(LinkSet::Replies)) => Reach::Unknown,
                Some(Remote::Links(set)) => Reach::WithLinks(set),
                Some(Remote::Shard(shard)) if route.plain.is_empty() => Reach::Shard(shard),
                Some(Remote::Shard(_)) | None => Reach::Unknown,
            },
            false if route.plain.is_empty() => Reach::Nowhere,
            false => Reach::Plain,
        };
        RouteMemo {
            at,
            reach,
            generation: route.generation,
        }
    }

    /// Evicts routes in the order of their slots, so that each route stays cached for about the same time.
    fn evict_other_than(&mut self, except: u32) {
        loop {
            self.eviction_cursor = (self.eviction_cursor + 1) % self.routes.capacity();
            let at = u32::try_from(self.eviction_cursor).expect("bounded by ROUTES_MAX");
            if at != except && self.routes.contains(self.eviction_cursor) {
                self.remove(at);
                return;
            }
        }
    }

    fn remove(&mut self, at: u32) {
        let route = self.routes.remove(at as usize);
        self.targets -= route.target_count();
        let hash = self.hash(route.subject());
        if let Ok(entry) = self.by_subject.find_entry(hash, |other| *other == at) {
            entry.remove();
        }
        if let Some(node) = route.node {
            self.subjects.value_mut(node).0 = None;
            self.subjects.release(node);
        }
    }

    #[inline]
    fn find(&self, hash: u64, subject: &[u8]) -> Option<u32> {
        let same = |at: &u32| self.routes[*at as usize].subject() == subject;
        self.by_subject.find(hash, same).copied()
    }

    fn hash(&self, subject: &[u8]) -> u64 {
        hash_subject(&self.hash_builder, subject)
    }
}

fn hash_subject(builder: &DefaultHashBuilder, subject: &[u8]) -> u64 {
    let mut hasher = builder.build_hasher();
    hasher.write(subject);
    hasher.finish()
}
