//! Groups of consumers with the same filters.
//!
//! A stream notifies its groups of each stored and removed record. A group only counts the record, so ten
//! thousand consumers with the same filter cost as much as one, and consumers whose filters do not match cost
//! nothing. A consumer reads the counts of its group when it has work.

use std::collections::VecDeque;

use hashbrown::HashMap;
use slab::Slab;

use super::ConsumerId;
use crate::subject::trie::{Trie, Vacant};

/// Number of latest removals that a group stores. A consumer that has missed more recounts its pending
/// records.
const REMOVALS_MAX: usize = 32;

/// Index of a group.
pub(super) type GroupId = usize;

/// State of a group.
#[derive(Debug, Default)]
pub(super) struct Group {
    filters: Vec<Box<[u8]>>,
    /// Number of matching records stored since the group was created.
    pub(super) appended: u64,
    /// Sequence of the newest matching record that was counted.
    appended_last: u64,
    /// Number of removals of matching records. `removals` contains the sequences of the last ones.
    removed: u64,
    removals: VecDeque<u64>,
    /// Consumers that the next matching record wakes.
    waiting: Vec<ConsumerId>,
    members: Vec<ConsumerId>,
    /// Index of the member that was last found to need a record. It is checked first, because the slowest
    /// member usually needs the next record, too.
    slowest_member: usize,
}

/// Removals since a consumer last read them.
pub(super) enum Missed<'a> {
    /// Sequences of all missed removals.
    All(&'a mut dyn Iterator<Item = u64>),
    /// More removals were missed than the group stores.
    Unknown,
}

impl Group {
    /// Returns the number of removals so far.
    pub(super) fn removed(&self) -> u64 {
        self.removed
    }

    /// Calls `each` with the removals that follow the first `seen` removals.
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
    /// The groups found for a subject, and that subject; empty if the groups have changed. Publishers often
    /// repeat a subject.
    found: Vec<GroupId>,
    found_for: Vec<u8>,
}

impl Groups {
    pub(super) fn get(&self, id: GroupId) -> &Group {
        &self.groups[id]
    }

    /// Adds a consumer to the group of its filters. Without filters, all subjects match.
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
        self.found_for.clear();
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

    /// Removes a consumer from its group, and the group if it has no other member.
    pub(super) fn leave(&mut self, id: GroupId, consumer: ConsumerId) {
        let group = &mut self.groups[id];
        group.members.retain(|member| *member != consumer);
        group.waiting.retain(|waiting| *waiting != consumer);
        if !group.members.is_empty() {
            return;
        }
        self.found_for.clear();
        let group = self.groups.remove(id);
        for filter in &group.filters {
            if let Some(node) = self.trie.find(filter) {
                self.trie.value_mut(node).0.retain(|other| *other != id);
                self.trie.release(node);
            }
        }
        self.by_filters.remove(&group.filters);
    }

    /// Registers a consumer that the next matching record wakes. It must not be registered already.
    pub(super) fn wait(&mut self, id: GroupId, consumer: ConsumerId) {
        self.groups[id].waiting.push(consumer);
    }

    /// Counts a stored record, and passes the consumers that it wakes to `wake`.
    pub(super) fn append(
        &mut self,
        sequence: u64,
        subject: &[u8],
        wake: &mut dyn FnMut(ConsumerId),
    ) {
        self.find(subject);
        for id in &self.found {
            let group = &mut self.groups[*id];
            // Several filters of a group may match the subject, but the record counts once.
            if group.appended_last != sequence {
                group.appended_last = sequence;
                group.appended += 1;
                group.waiting.drain(..).for_each(&mut *wake);
            }
        }
    }

    /// Counts a removed record.
    pub(super) fn remove(&mut self, sequence: u64, subject: &[u8]) {
        self.find(subject);
        self.found.sort_unstable();
        self.found.dedup();
        for id in &self.found {
            self.groups[*id].note_removed(sequence);
        }
    }

    /// Registers the removal of more records than a group can list. All consumers then recount their pending
    /// records.
    pub(super) fn remove_many(&mut self) {
        for (_, group) in &mut self.groups {
            group.removed += REMOVALS_MAX as u64 + 1;
        }
    }

    /// Returns whether some consumer's filter matches a subject.
    pub(super) fn wants_subject(&mut self, subject: &[u8]) -> bool {
        self.find(subject);
        !self.found.is_empty()
    }

    /// Returns whether `needs` returns `true` for some consumer whose filter matches a subject.
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
                let at = (group.slowest_member + step) % count;
                if needs(group.members[at]) {
                    group.slowest_member = at;
                    return true;
                }
            }
        }
        false
    }

    fn find(&mut self, subject: &[u8]) {
        let found = &mut self.found;
        if self.groups.is_empty() {
            return found.clear();
        }
        if self.found_for == subject && !subject.is_empty() {
            return;
        }
        self.found_for.clear();
        self.found_for.extend_from_slice(subject);
        found.clear();
        self.trie
            .filters_matching(subject, &mut |at| found.extend_from_slice(&at.0));
    }
}
