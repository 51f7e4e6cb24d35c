//! The order in which a worker runs its tasks.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::task::{Task, TaskKey};
use crate::Time;

/// A key that sorts by due time, and then by the order of scheduling.
pub(super) type Key = (Time, u64);

/// Tasks in the order in which they will run. The lock of the worker's queue protects them.
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

    /// Adds a task, unless it was cancelled in the meantime. Returns whether the task is now the first.
    pub(super) fn insert(
        &mut self,
        due: Time,
        task: Arc<dyn Task<W>>,
    ) -> Result<bool, Cancelled<W>> {
        // A thread that cancels a task first empties the task, and then removes its entry under the queue's
        // lock. So either the check here sees that the task is empty, or that thread finds the entry.
        if task.is_cancelled() {
            return Err(task);
        }
        let key = (due, self.scheduled);
        self.scheduled += 1;
        task.key().set(key);
        let first = self.next_due().is_none_or(|next| due < next);
        self.entries.insert(key, task);
        Ok(first)
    }

    /// Returns the due time of the first task.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.entries.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes the first task if it is due at `now`, and returns it with its due time.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Arc<dyn Task<W>>)> {
        let entry = self.entries.first_entry()?;
        let due = entry.key().0;
        (due <= now).then(|| (due, entry.remove()))
    }

    /// Removes a cancelled task. The caller drops it after releasing the lock.
    #[must_use]
    pub(super) fn remove(&mut self, key: &TaskKey) -> Option<Arc<dyn Task<W>>> {
        self.entries.remove(&key.get())
    }

    /// Removes all tasks. The caller drops them after releasing the lock.
    #[must_use]
    pub(super) fn take_all(&mut self) -> BTreeMap<Key, Arc<dyn Task<W>>> {
        core::mem::take(&mut self.entries)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// A cancelled task. The caller drops it after releasing the lock.
pub(super) type Cancelled<W> = Arc<dyn Task<W>>;
