//! The order in which a lane runs its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::task::{Place, Task};
use crate::Time;

/// By due time, then in the order of scheduling.
pub(super) type Key = (Time, u64);

/// Tasks in the order in which they will run. A lane keeps it under its lock.
pub(super) struct Tasks<W> {
    entries: BTreeMap<Key, Arc<dyn Task<W>>>,
    scheduled: u64,
}

impl<W> Tasks<W> {
    pub(super) const fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            scheduled: 0,
        }
    }

    /// Adds a task, unless it was cancelled in the meantime; whether it is now the first.
    pub(super) fn insert(
        &mut self,
        due: Time,
        task: Arc<dyn Task<W>>,
    ) -> Result<bool, Cancelled<W>> {
        // Whoever cancels empties the task first and comes for its entry after, under the lane's
        // lock: the entry is either never made, or found.
        if task.is_cancelled() {
            return Err(task);
        }
        let key = (due, self.scheduled);
        self.scheduled += 1;
        task.place().set(key);
        let first = self.next_due().is_none_or(|next| due < next);
        self.entries.insert(key, task);
        Ok(first)
    }

    /// When the first task is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.entries.first_key_value().map(|(key, _)| key.0)
    }

    /// The first task, when it is due at `now`, and the moment for which it was due.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Arc<dyn Task<W>>)> {
        let entry = self.entries.first_entry()?;
        let due = entry.key().0;
        (due <= now).then(|| (due, entry.remove()))
    }

    /// Takes a cancelled task out; the caller drops it after its lock.
    #[must_use]
    pub(super) fn remove(&mut self, place: &Place) -> Option<Arc<dyn Task<W>>> {
        self.entries.remove(&place.get())
    }

    /// Takes everything out; the caller drops it after its lock.
    #[must_use]
    pub(super) fn take_all(&mut self) -> BTreeMap<Key, Arc<dyn Task<W>>> {
        std::mem::take(&mut self.entries)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// A task that has nothing left to run, to be dropped after the lane's lock.
pub(super) type Cancelled<W> = Arc<dyn Task<W>>;
