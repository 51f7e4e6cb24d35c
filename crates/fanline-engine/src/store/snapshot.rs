//! A snapshot of the subjects, which is read part by part while the subjects change.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::index::IndexedSubject;
use super::subjects::Subjects;

/// The saved states of subjects that have changed since the snapshot.
#[derive(Default)]
pub(super) struct Snapshot {
    /// Last name that was read.
    read_to: Option<Box<[u8]>>,
    /// State that each changed subject had at the time of the snapshot, unless that state was already read.
    /// `None` if the subject did not exist.
    before: BTreeMap<Box<[u8]>, Option<SubjectTotals>>,
}

/// Totals of a subject.
#[derive(Clone, Copy)]
pub(super) struct SubjectTotals {
    pub(super) messages: u64,
    pub(super) last: u64,
    pub(super) first_at_least: u64,
}

impl Snapshot {
    /// Saves the state of a subject, which is about to change.
    pub(super) fn note(&mut self, name: &[u8], totals: Option<SubjectTotals>) {
        let is_done = self.read_to.as_deref().is_some_and(|done| name <= done);
        if !is_done && !self.before.contains_key(name) {
            self.before.insert(name.into(), totals);
        }
    }

    /// Calls `each` with the saved states of all subjects up to the name `to`.
    fn pass_saved(&mut self, to: Bound<&[u8]>, each: &mut dyn FnMut(&IndexedSubject<'_>)) {
        while let Some(entry) = self.before.first_entry() {
            let is_in = match to {
                Bound::Included(name) => &**entry.key() <= name,
                Bound::Excluded(name) => &**entry.key() < name,
                Bound::Unbounded => true,
            };
            if !is_in {
                return;
            }
            if let Some(totals) = entry.get() {
                each(&totals.of(entry.key()));
            }
            entry.remove();
        }
    }
}

impl SubjectTotals {
    fn of(self, name: &[u8]) -> IndexedSubject<'_> {
        IndexedSubject {
            name,
            messages: self.messages,
            last: self.last,
            first_at_least: self.first_at_least,
        }
    }
}

impl Subjects {
    /// Takes a snapshot, which [`read_snapshot`](Self::read_snapshot) reads.
    pub(super) fn take_snapshot(&mut self) {
        self.sort();
        self.snapshot = Some(Box::default());
    }

    /// Drops the snapshot.
    pub(super) fn drop_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// Calls `each` with about `most` subjects of the snapshot, in name order. Returns whether the snapshot
    /// has no more subjects.
    pub(super) fn read_snapshot(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(&IndexedSubject<'_>),
    ) -> bool {
        let Some(mut snapshot) = self.snapshot.take() else {
            return true;
        };
        let sorted = self.sorted();
        let from = match &snapshot.read_to {
            Some(done) => sorted.partition_point(|id| self.name(*id) <= &**done),
            None => 0,
        };
        let mut to = from.saturating_add(most).min(sorted.len());
        // A removed subject may still be listed next to a newer one of the same name.
        while to > from && to < sorted.len() && self.name(sorted[to]) == self.name(sorted[to - 1]) {
            to += 1;
        }
        for id in &sorted[from..to] {
            let name = self.name(*id);
            snapshot.pass_saved(Bound::Excluded(name), each);
            // Subjects that were added, removed, or changed are read from their saved states.
            if let Some(subject) = self.get(*id)
                && !snapshot.before.contains_key(name)
            {
                each(&subject.totals().of(name));
            }
        }
        if to == sorted.len() {
            snapshot.pass_saved(Bound::Unbounded, each);
            return true;
        }
        if let Some(last) = sorted[..to].last() {
            let name = self.name(*last);
            snapshot.pass_saved(Bound::Included(name), each);
            snapshot.read_to = Some(name.into());
        }
        self.snapshot = Some(snapshot);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_disk::Dice;
    use super::*;

    fn change(subjects: &mut Subjects, dice: &mut Dice) {
        let name = format!("a.{}", dice.below(12_000));
        let id = subjects.find_or_add(name.as_bytes());
        let known = subjects.get_mut(id);
        if known.messages > 0 && dice.one_in(2) {
            known.messages = 0;
            subjects.remove(id);
        } else {
            known.messages += 1;
            known.last += 1;
        }
    }

    #[test]
    fn snapshot_ignores_later_changes() {
        for seed in 0..20 {
            let mut dice = Dice::new(seed);
            let mut subjects = Subjects::default();
            for _ in 0..10_000 {
                change(&mut subjects, &mut dice);
            }
            let mut expected = Vec::new();
            for subject in subjects.iter_in_order() {
                expected.push((subject.name().to_vec(), subject.messages, subject.last));
            }
            subjects.take_snapshot();
            let mut found = Vec::new();
            loop {
                let is_all = subjects.read_snapshot(1 + dice.below(700), &mut |subject| {
                    found.push((subject.name.to_vec(), subject.messages, subject.last));
                });
                if is_all {
                    break;
                }
                for _ in 0..dice.below(1500) {
                    change(&mut subjects, &mut dice);
                }
            }
            assert!(found == expected, "seed {seed}");
        }
    }
}
