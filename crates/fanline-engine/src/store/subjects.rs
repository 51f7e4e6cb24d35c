//! The subjects of live records. A hash table finds them by name, and a sorted list finds those of a filter.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use super::snapshot::{Snapshot, SubjectTotals};
use crate::short_bytes::ShortBytes;
use crate::subject::Filter;

/// Id of a subject in memory. It may be reused when the subject has no live record.
pub(super) type SubjectId = u32;

/// The id in place of the subject of a damaged record.
pub(super) const UNKNOWN: SubjectId = SubjectId::MAX;

/// A subject of live records.
pub(super) struct Subject {
    name: ShortBytes,
    pub(super) messages: u64,
    /// Sequence of the newest live record.
    pub(super) last: u64,
    /// Lower bound of the sequence of the first live record.
    pub(super) first_at_least: u64,
}

impl Subject {
    pub(super) fn name(&self) -> &[u8] {
        self.name.as_slice()
    }

    pub(super) fn totals(&self) -> SubjectTotals {
        SubjectTotals {
            messages: self.messages,
            last: self.last,
            first_at_least: self.first_at_least,
        }
    }
}

/// When there are this many new subjects, they are merged into the sorted list.
const UNSORTED_MAX: usize = 4096;
/// Number of latest additions to store, so that cached matches can be updated.
const RECENT: usize = 1024;

/// All subjects. Each takes about 65 bytes, plus its name if that is longer than 22 bytes: a [`Subject`], an
/// entry of the table, and four bytes in the sorted list.
pub(super) struct Subjects {
    all: Slab<Subject>,
    by_name: HashTable<SubjectId>,
    hash_builder: DefaultHashBuilder,
    /// Ids in name order.
    sorted: Vec<SubjectId>,
    /// Ids that are not merged into `sorted` yet.
    unsorted: Vec<SubjectId>,
    /// Ids of removed subjects that are still in `sorted` or `unsorted`. Until they are removed there, their
    /// names stay, so that the list stays sorted, and the ids are not reused.
    stale: Vec<SubjectId>,
    /// The subject of the latest record, because publishers often repeat a subject. [`UNKNOWN`] if it has no
    /// live record.
    latest: SubjectId,
    added: u64,
    recent: Box<[SubjectId; RECENT]>,
    /// Snapshot for a checkpoint that is being written.
    pub(super) snapshot: Option<Box<Snapshot>>,
}

impl Default for Subjects {
    fn default() -> Self {
        Subjects {
            all: Slab::new(),
            by_name: HashTable::new(),
            hash_builder: DefaultHashBuilder::default(),
            sorted: Vec::new(),
            unsorted: Vec::new(),
            stale: Vec::new(),
            latest: UNKNOWN,
            added: 0,
            recent: Box::new([0; RECENT]),
            snapshot: None,
        }
    }
}

impl Subjects {
    /// Returns the number of subjects.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.stale.len()
    }

    /// Returns how many subjects were ever added. Cached matches of a filter are current if this number has
    /// not changed.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Returns the subjects that were added after the first `then` ones, or `None` if these are too many.
    pub(super) fn added_since(&self, then: u64) -> Option<impl Iterator<Item = SubjectId>> {
        let recent = RECENT as u64;
        (self.added - then <= recent).then(|| {
            (then..self.added).map(move |number| {
                let slot = usize::try_from(number % recent).unwrap_or_default();
                self.recent[slot]
            })
        })
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<SubjectId> {
        let latest = self.all.get(self.latest as usize);
        if latest.is_some_and(|latest| latest.name() == name) {
            return Some(self.latest);
        }
        let same = |id: &SubjectId| self.name(*id) == name;
        self.by_name.find(self.hash(name), same).copied()
    }

    /// Returns the id of a subject, adding the subject if necessary. The caller must then count a message for
    /// it.
    pub(super) fn find_or_add(&mut self, name: &[u8]) -> SubjectId {
        if let Some(id) = self.find(name) {
            self.latest = id;
            return id;
        }
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.note(name, None);
        }
        let id = self.add(name);
        self.recent[usize::try_from(self.added % RECENT as u64).unwrap_or_default()] = id;
        self.added += 1;
        self.unsorted.push(id);
        if self.unsorted.len() >= UNSORTED_MAX {
            self.sort();
        }
        id
    }

    /// Reserves room for `count` subjects.
    pub(super) fn reserve(&mut self, count: usize) {
        self.all.reserve(count);
        self.sorted.reserve_exact(count);
        let Subjects {
            all,
            by_name,
            hash_builder,
            ..
        } = self;
        by_name.reserve(count, |id| {
            hash_builder.hash_one(all[*id as usize].name.as_slice())
        });
    }

    /// Adds a subject whose name is above all others. Returns `None` if the name is not above all others.
    pub(super) fn add_in_order(&mut self, name: &[u8]) -> Option<SubjectId> {
        let is_in_order = self.sorted.last().is_none_or(|id| self.name(*id) < name);
        if !is_in_order || !self.unsorted.is_empty() {
            return None;
        }
        let id = self.add(name);
        self.sorted.push(id);
        Some(id)
    }

    fn add(&mut self, name: &[u8]) -> SubjectId {
        let subject = Subject {
            name: ShortBytes::from(name),
            messages: 0,
            last: 0,
            first_at_least: 0,
        };
        let id = u32::try_from(self.all.insert(subject)).expect("fewer than 2^32 subjects");
        let hash = self.hash(name);
        let Subjects {
            all,
            by_name,
            hash_builder,
            ..
        } = self;
        by_name.insert_unique(hash, id, |id| {
            hash_builder.hash_one(all[*id as usize].name.as_slice())
        });
        id
    }

    pub(super) fn get(&self, id: SubjectId) -> Option<&Subject> {
        self.all.get(id as usize).filter(|s| s.messages > 0)
    }

    pub(super) fn get_mut(&mut self, id: SubjectId) -> &mut Subject {
        let subject = &mut self.all[id as usize];
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.note(subject.name(), Some(subject.totals()));
        }
        subject
    }

    /// Returns the name of a subject; empty if the id is unknown.
    pub(super) fn name(&self, id: SubjectId) -> &[u8] {
        self.all.get(id as usize).map_or(b"", |s| s.name.as_slice())
    }

    /// Removes a subject without live records.
    pub(super) fn remove(&mut self, id: SubjectId) {
        if id == self.latest {
            self.latest = UNKNOWN;
        }
        let hash = self.hash(self.name(id));
        if let Ok(entry) = self.by_name.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.stale.push(id);
        if self.stale.len() > UNSORTED_MAX.max(self.sorted.len() / 2) {
            self.drop_stale();
        }
    }

    pub(super) fn clear(&mut self) {
        let added = self.added + RECENT as u64 + 1;
        *self = Subjects::default();
        self.added = added;
    }

    /// Iterates over all subjects, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SubjectId, &Subject)> {
        let live = self.all.iter().filter(|(_, s)| s.messages > 0);
        live.map(|(id, s)| (u32::try_from(id).unwrap_or(u32::MAX), s))
    }

    /// Iterates over all subjects in name order.
    #[cfg(test)]
    pub(super) fn iter_in_order(&mut self) -> impl Iterator<Item = &Subject> {
        self.sort();
        let all = self.sorted.iter().map(|id| &self.all[*id as usize]);
        all.filter(|subject| subject.messages > 0)
    }

    /// Calls `visit` for each subject that the filter matches, until it returns `false`. The cost is
    /// proportional to the number of subjects that begin with the filter's tokens before its first wildcard.
    pub(super) fn each_matching(
        &self,
        filter: Filter<'_>,
        visit: &mut dyn FnMut(SubjectId, &Subject) -> bool,
    ) {
        if filter.is_literal() {
            if let Some(id) = self.find(filter.as_bytes()) {
                visit(id, &self.all[id as usize]);
            }
            return;
        }
        let prefix = literal_prefix(filter.as_bytes());
        let from = self.sorted.partition_point(|id| self.name(*id) < prefix);
        let in_range = self.sorted[from..]
            .iter()
            .take_while(|id| self.name(**id).starts_with(prefix));
        for id in in_range.chain(&self.unsorted) {
            let subject = &self.all[*id as usize];
            let is_wanted = subject.messages > 0 && filter.matches(subject.name());
            if is_wanted && !visit(*id, subject) {
                return;
            }
        }
    }

    /// Returns the number of subjects that a filter is compared with.
    pub(super) fn cost(&self, filter: Filter<'_>) -> usize {
        if filter.is_literal() {
            return 1;
        }
        let prefix = literal_prefix(filter.as_bytes());
        let from = self.sorted.partition_point(|id| self.name(*id) < prefix);
        let in_range = self.sorted[from..].partition_point(|id| self.name(*id).starts_with(prefix));
        in_range + self.unsorted.len()
    }

    /// Returns the ids in name order. The list may contain removed subjects, and lacks those in `unsorted`.
    pub(super) fn sorted(&self) -> &[SubjectId] {
        &self.sorted
    }

    /// Merges the latest additions into the sorted list.
    pub(super) fn sort(&mut self) {
        let mut new = std::mem::take(&mut self.unsorted);
        new.sort_unstable_by(|a, b| self.name(*a).cmp(self.name(*b)));
        // Inserts from the end, so that every element moves at most once.
        let mut end = self.sorted.len();
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.resize(end + new.len(), 0);
        for (before, id) in new.iter().enumerate().rev() {
            let place = sorted[..end].partition_point(|other| self.name(*other) < self.name(*id));
            sorted.copy_within(place..end, place + before + 1);
            sorted[place + before] = *id;
            end = place;
        }
        self.sorted = sorted;
        new.clear();
        self.unsorted = new;
    }

    fn drop_stale(&mut self) {
        let all = &self.all;
        let is_live = |id: &SubjectId| all[*id as usize].messages > 0;
        self.sorted.retain(is_live);
        self.unsorted.retain(is_live);
        for id in self.stale.drain(..) {
            self.all.remove(id as usize);
        }
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hash_builder.hash_one(name)
    }
}

/// Returns the part of a filter before its first wildcard, including the dot.
fn literal_prefix(filter: &[u8]) -> &[u8] {
    let mut at = 0;
    for token in filter.split(|b| *b == b'.') {
        if token == b"*" || token == b">" {
            break;
        }
        at += token.len() + 1;
    }
    &filter[..at.min(filter.len())]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn lookups_agree_with_model_while_subjects_come_and_go() {
        let mut subjects = Subjects::default();
        let mut model = BTreeSet::new();
        for round in 0..40_000u32 {
            let name = format!(
                "a.{}.{}",
                round % 7,
                round.wrapping_mul(2_654_435_761) % 9000
            );
            let is_new = model.insert(name.clone());
            let id = subjects.find_or_add(name.as_bytes());
            subjects.get_mut(id).messages = 1;
            if !is_new && round % 3 != 0 {
                model.remove(&name);
                subjects.get_mut(id).messages = 0;
                subjects.remove(id);
            }
        }
        assert_eq!(subjects.len(), model.len());
        for filter in ["a.3.*", "a.*.17", ">", "a.0.5", "b.>", "a.>"] {
            let filter = Filter::parse(filter.as_bytes()).unwrap();
            let mut found = BTreeSet::new();
            subjects.each_matching(filter, &mut |id, subject| {
                assert_eq!(subjects.find(subject.name()), Some(id));
                assert!(found.insert(String::from_utf8(subject.name().to_vec()).unwrap()));
                true
            });
            let expected: BTreeSet<_> = model
                .iter()
                .filter(|name| filter.matches(name.as_bytes()))
                .cloned()
                .collect();
            assert_eq!(found, expected, "{filter:?}");
        }
        assert!(size_of::<Subject>() <= 48);
    }
}
