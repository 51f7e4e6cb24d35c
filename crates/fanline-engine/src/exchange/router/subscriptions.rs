//! The subscriptions of all sessions of a shard, with lookup by session and sid.

use std::hash::{BuildHasher as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use crate::short_bytes::ShortBytes;
use crate::short_hash::{Hashed, ShortHash};
use crate::slack::Slack;
use crate::subject::trie::NodeId;

/// Index of a subscription in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubId(u32);

const NONE: SubId = SubId(u32::MAX);

/// A subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    sid: ShortBytes,
    session: u32,
    /// Position among the subscriptions with the same filter and queue group.
    slot: u32,
    delivered: u64,
    /// Number of deliveries after which the subscription ends; `u64::MAX` means no limit.
    max: u64,
    node: NodeId,
    /// Neighbors in the list of the session's subscriptions.
    next: SubId,
    previous: SubId,
    queue: Option<Box<[u8]>>,
    /// Number of group members that the subscription represents: 1, except for links to other servers.
    weight: u32,
    /// Whether each message must be checked or encoded before it is delivered.
    is_filtered: bool,
}

impl Subscription {
    /// Returns the sid with the space that follows it in a `MSG` line.
    #[inline]
    pub(crate) fn sid_and_space(&self) -> &[u8] {
        self.sid.as_slice()
    }

    pub(crate) fn sid(&self) -> &[u8] {
        let all = self.sid.as_slice();
        &all[..all.len() - 1]
    }

    #[inline]
    pub(crate) fn session(&self) -> u32 {
        self.session
    }

    pub(crate) fn queue(&self) -> &[u8] {
        self.queue.as_deref().unwrap_or_default()
    }

    /// Returns whether permissions must be checked for each message.
    #[inline]
    pub(crate) fn is_filtered(&self) -> bool {
        self.is_filtered
    }

    /// Returns the number of group members that the subscription represents.
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }

    pub(crate) fn set_weight(&mut self, weight: u32) {
        self.weight = weight;
    }

    pub(crate) fn set_filtered(&mut self, is_filtered: bool) {
        self.is_filtered = is_filtered;
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the maximum number of deliveries, if there is one.
    pub(crate) fn max(&self) -> Option<u64> {
        (self.max != u64::MAX).then_some(self.max)
    }

    /// Counts a delivery. Returns true if it was the last one.
    #[inline]
    pub(crate) fn count(&mut self) -> bool {
        self.delivered += 1;
        self.delivered >= self.max
    }

    /// Returns whether the maximum number of deliveries is reached.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.delivered >= self.max
    }

    /// Ends the subscription after `max` deliveries in total. Returns true if it has already had that many.
    pub(crate) fn limit(&mut self, max: u64) -> bool {
        self.max = max;
        self.is_spent()
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    pub(super) fn set_slot(&mut self, slot: u32) {
        self.slot = slot;
    }
}

/// All subscriptions of a shard.
#[derive(Default)]
pub(crate) struct Subscriptions {
    all: Slab<Subscription>,
    by_sid: HashTable<Hashed<SubId>>,
    hash_builder: DefaultHashBuilder,
    /// First subscription of each session.
    heads: Vec<SubId>,
    slack: Slack,
}

impl Subscriptions {
    #[inline]
    pub(crate) fn get(&self, id: SubId) -> &Subscription {
        &self.all[id.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SubId) -> &mut Subscription {
        &mut self.all[id.0 as usize]
    }

    pub(crate) fn find(&self, session: u32, sid: &[u8]) -> Option<SubId> {
        let hash = self.hash(session, sid);
        let same = |known: &Hashed<SubId>| {
            let is_sub = |sub: &Subscription| sub.session == session && sub.sid() == sid;
            known.hash == hash && is_sub(self.get(known.index))
        };
        (self.by_sid.find(hash.spread(), same)).map(|known| known.index)
    }

    /// Returns the subscriptions of a session.
    pub(crate) fn of_session(&self, session: u32) -> impl Iterator<Item = SubId> {
        std::iter::successors(self.first_of_session(session), |id| {
            some(self.get(*id).next)
        })
    }

    /// Returns the first subscription of a session.
    pub(crate) fn first_of_session(&self, session: u32) -> Option<SubId> {
        self.heads.get(session as usize).copied().and_then(some)
    }

    pub(super) fn add(&mut self, session: u32, sid: &[u8], node: NodeId, queue: &[u8]) -> SubId {
        let at = session as usize;
        if self.heads.len() <= at {
            self.heads.resize(at + 1, NONE);
        }
        let next = self.heads[at];
        let id = self.all.insert(Subscription {
            sid: ShortBytes::joined(sid, b" "),
            session,
            slot: 0,
            delivered: 0,
            max: u64::MAX,
            node,
            next,
            previous: NONE,
            queue: (!queue.is_empty()).then(|| queue.into()),
            weight: 1,
            is_filtered: false,
        });
        let id = SubId(u32::try_from(id).expect("fewer than 2^32 subscriptions"));
        self.heads[at] = id;
        if next != NONE {
            self.get_mut(next).previous = id;
        }
        let hash = self.hash(session, sid);
        let known = Hashed { index: id, hash };
        self.by_sid
            .insert_unique(hash.spread(), known, Hashed::spread);
        id
    }

    pub(super) fn remove(&mut self, id: SubId) -> Subscription {
        let sub = self.all.remove(id.0 as usize);
        if sub.next != NONE {
            self.get_mut(sub.next).previous = sub.previous;
        }
        if sub.previous != NONE {
            self.get_mut(sub.previous).next = sub.next;
        } else {
            self.heads[sub.session as usize] = sub.next;
        }
        let hash = self.hash(sub.session, sub.sid());
        if let Ok(entry) = (self.by_sid).find_entry(hash.spread(), |known| known.index == id) {
            entry.remove();
        }
        if self.slack.is_due(self.all.len(), self.all.capacity()) {
            self.shrink();
        }
        sub
    }

    /// Releases capacity that is no longer needed, if an earlier removal postponed it.
    pub(crate) fn trim(&mut self) {
        if (self.slack).is_due_now(self.all.len(), self.all.capacity()) {
            self.shrink();
        }
    }

    fn hash(&self, session: u32, sid: &[u8]) -> ShortHash {
        let mut hasher = self.hash_builder.build_hasher();
        hasher.write_u32(session);
        hasher.write(sid);
        ShortHash::of(&hasher)
    }

    #[cold]
    fn shrink(&mut self) {
        self.all.shrink_to_fit();
        self.by_sid.shrink_to(self.all.len(), Hashed::spread);
    }
}

fn some(id: SubId) -> Option<SubId> {
    (id != NONE).then_some(id)
}
