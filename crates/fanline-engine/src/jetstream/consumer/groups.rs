//! Consumers that want the same subjects, taken together.
//!
//! A stream tells its groups of each record that comes and goes; what a group notes is a number, so
//! that ten thousand consumers with one filter cost as much as one, and those with another filter
//! nothing. A consumer looks at its group when it has something to do.

use std::collections::VecDeque;

use hashbrown::HashMap;
use slab::Slab;

use super::ConsumerId;
use crate::subject::trie::{Trie, Vacant};

/// How many removals a group remembers. A consumer that has missed more counts anew.
const REMOVALS_MAX: usize = 32;

/// The place of a group.
pub(super) type GroupId = usize;

/// What a group knows.
#[derive(Debug, Default)]
pub(super) struct Group {
    filters: Vec<Box<[u8]>>,
    /// How many records have come since the group was made.
    pub(super) appended: u64,
    /// The last of them.
    appended_last: u64,
    /// How many have gone; the last of them are in `removals`.
    removed: u64,
    removals: VecDeque<u64>,
    /// Those who want to be told of the next record.
    waiting: Vec<ConsumerId>,
    members: Vec<ConsumerId>,
    /// The member that was last found to need a record. It is asked first next time: records are
    /// finished in order, so most of the time the slowest one is found at once.
    blocker: usize,
}

/// What has gone since a consumer looked last.
pub(super) enum Missed<'a> {
    /// These.
    All(&'a mut dyn Iterator<Item = u64>),
    /// More than is remembered.
    Unknown,
}

impl Group {
    /// How many have gone by now.
    pub(super) fn removed(&self) -> u64 {
        self.removed
    }

    /// Hands `each` what has gone since there were `seen`.
    pub(super) fn missed(&self, seen: u64, each: &mut dyn FnMut(Missed<'_>)) {
        let count = self.removed - seen;
        match usize::try_from(count) {
            Ok(0) => {}
            Ok(count) if count <= self.removals.len() => {
                let from = self.removals.len() - count;
                each(Missed::All(&mut self.removals.range(from..).copied()));
            }
            _ => each(Missed::Unknown),
        }
    }

    fn note_removed(&mut self, sequence: u64) {
        self.removed += 1;
        if self.removals.len() == REMOVALS_MAX {
            self.removals.pop_front();
        }
        self.removals.push_back(sequence);
    }
}

#[derive(Default)]
struct AtNode(Vec<GroupId>);

impl Vacant for AtNode {
    fn is_vacant(&self) -> bool {
        self.0.is_empty()
    }
}

/// All groups of a stream.
#[derive(Default)]
pub(super) struct Groups {
    groups: Slab<Group>,
    by_filters: HashMap<Vec<Box<[u8]>>, GroupId>,
    trie: Trie<AtNode>,
    /// Those found for a subject, kept for its memory.
    found: Vec<GroupId>,
}

impl Groups {
    pub(super) fn get(&self, id: GroupId) -> &Group {
        &self.groups[id]
    }

    /// Adds a consumer to the group of its filters; none are all subjects.
    pub(super) fn join<'a>(
        &mut self,
        filters: impl IntoIterator<Item = &'a [u8]>,
        consumer: ConsumerId,
    ) -> GroupId {
        let mut key: Vec<Box<[u8]>> = filters.into_iter().map(Into::into).collect();
        if key.is_empty() {
            key.push(b">"[..].into());
        }
        key.sort_unstable();
        key.dedup();
        let id = match self.by_filters.get(&key) {
            Some(id) => *id,
            None => self.add(key),
        };
        self.groups[id].members.push(consumer);
        id
    }

    fn add(&mut self, key: Vec<Box<[u8]>>) -> GroupId {
        let id = self.groups.insert(Group {
            filters: key.clone(),
            ..Group::default()
        });
        for filter in &key {
            let node = self.trie.insert(filter);
            self.trie.value_mut(node).0.push(id);
        }
        self.by_filters.insert(key, id);
        id
    }

    /// Takes a consumer out, and the group with it when it was the last.
    pub(super) fn leave(&mut self, id: GroupId, consumer: ConsumerId) {
        let group = &mut self.groups[id];
        group.members.retain(|member| *member != consumer);
        group.waiting.retain(|waiting| *waiting != consumer);
        if !group.members.is_empty() {
            return;
        }
        let group = self.groups.remove(id);
        for filter in &group.filters {
            if let Some(node) = self.trie.find(filter) {
                self.trie.value_mut(node).0.retain(|other| *other != id);
                self.trie.release(node);
            }
        }
        self.by_filters.remove(&group.filters);
    }

    /// Asks that a consumer be told of the next record. It is to ask once only.
    pub(super) fn wait(&mut self, id: GroupId, consumer: ConsumerId) {
        self.groups[id].waiting.push(consumer);
    }

    /// Takes note of a new record, and hands `wake` those who wait for it.
    pub(super) fn append(
        &mut self,
        sequence: u64,
        subject: &[u8],
        wake: &mut dyn FnMut(ConsumerId),
    ) {
        self.find(subject);
        for id in &self.found {
            let group = &mut self.groups[*id];
            // Two filters of one group may match the same subject.
            if group.appended_last != sequence {
                group.appended_last = sequence;
                group.appended += 1;
                group.waiting.drain(..).for_each(&mut *wake);
            }
        }
    }

    /// Takes note that a record has gone.
    pub(super) fn remove(&mut self, sequence: u64, subject: &[u8]) {
        self.find(subject);
        self.found.sort_unstable();
        self.found.dedup();
        for id in &self.found {
            self.groups[*id].note_removed(sequence);
        }
    }

    /// Takes note that many records have gone, so that all have to count anew.
    pub(super) fn remove_many(&mut self) {
        for (_, group) in &mut self.groups {
            group.removed += REMOVALS_MAX as u64 + 1;
        }
    }

    /// Whether any consumer wants records of a subject.
    pub(super) fn wants_subject(&mut self, subject: &[u8]) -> bool {
        self.find(subject);
        !self.found.is_empty()
    }

    /// Whether any consumer that wants a subject says that it needs something.
    pub(super) fn any(
        &mut self,
        subject: &[u8],
        needs: &mut dyn FnMut(ConsumerId) -> bool,
    ) -> bool {
        self.find(subject);
        for id in &self.found {
            let group = &mut self.groups[*id];
            let count = group.members.len();
            for step in 0..count {
                let at = (group.blocker + step) % count;
                if needs(group.members[at]) {
                    group.blocker = at;
                    return true;
                }
            }
        }
        false
    }

    fn find(&mut self, subject: &[u8]) {
        let found = &mut self.found;
        found.clear();
        self.trie
            .filters_matching(subject, &mut |at| found.extend_from_slice(&at.0));
    }
}
