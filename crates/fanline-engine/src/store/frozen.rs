//! A snapshot of the subjects, returned part by part while they change.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::index::IndexedSubject;
use super::subjects::Subjects;

/// Changes since the snapshot.
#[derive(Default)]
pub(super) struct Frozen {
    /// The last name that was returned.
    done: Option<Box<[u8]>>,
    /// Earlier state of each changed subject that was not returned yet; `None` when it did not exist.
    before: BTreeMap<Box<[u8]>, Option<Numbers>>,
}

/// Totals of a subject.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) messages: u64,
    pub(super) last: u64,
    pub(super) first_at_least: u64,
}

impl Frozen {
    /// Saves the state of a subject before it changes.
    pub(super) fn note(&mut self, name: &[u8], numbers: Option<Numbers>) {
        let is_done = self.done.as_deref().is_some_and(|done| name <= done);
        if !is_done && !self.before.contains_key(name) {
            self.before.insert(name.into(), numbers);
        }
    }

    /// Returns the changed subjects up to a name.
    fn hand_out(&mut self, to: Bound<&[u8]>, each: &mut dyn FnMut(&IndexedSubject<'_>)) {
        while let Some(entry) = self.before.first_entry() {
            let is_in = match to {
                Bound::Included(name) => &**entry.key() <= name,
                Bound::Excluded(name) => &**entry.key() < name,
                Bound::Unbounded => true,
            };
            if !is_in {
                return;
            }
            if let Some(numbers) = entry.get() {
                each(&numbers.of(entry.key()));
            }
            entry.remove();
        }
    }
}

impl Numbers {
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
    /// Takes a snapshot, which [`hand_out`](Self::hand_out) returns.
    pub(super) fn freeze(&mut self) {
        self.sort();
        self.frozen = Some(Box::default());
    }

    /// Drops the snapshot.
    pub(super) fn thaw(&mut self) {
        self.frozen = None;
    }

    /// Passes about `most` subjects of the snapshot to `each`, in name order. Returns whether these were the
    /// last.
    pub(super) fn hand_out(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(&IndexedSubject<'_>),
    ) -> bool {
        let Some(mut frozen) = self.frozen.take() else {
            return true;
        };
        let sorted = self.sorted();
        let from = match &frozen.done {
            Some(done) => sorted.partition_point(|id| self.name(*id) <= &**done),
            None => 0,
        };
        let mut to = from.saturating_add(most).min(sorted.len());
        // A removed subject may still be listed, beside a newer one of the same name.
        while to > from && to < sorted.len() && self.name(sorted[to]) == self.name(sorted[to - 1]) {
            to += 1;
        }
        for id in &sorted[from..to] {
            let name = self.name(*id);
            frozen.hand_out(Bound::Excluded(name), each);
            // Added, removed, and changed subjects come from their saved state.
            if let Some(subject) = self.get(*id)
                && !frozen.before.contains_key(name)
            {
                each(&subject.numbers().of(name));
            }
        }
        if to == sorted.len() {
            frozen.hand_out(Bound::Unbounded, each);
            return true;
        }
        if let Some(last) = sorted[..to].last() {
            let name = self.name(*last);
            frozen.hand_out(Bound::Included(name), each);
            frozen.done = Some(name.into());
        }
        self.frozen = Some(frozen);
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
            subjects.freeze();
            let mut found = Vec::new();
            loop {
                let is_all = subjects.hand_out(1 + dice.below(700), &mut |subject| {
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
