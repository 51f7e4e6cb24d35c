//! Removal of observers by their guards, on any thread and at any time.
#![expect(
    unsafe_code,
    reason = "the list is reached by the rules of the gate, references are left behind"
)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Core;
use super::control::Control;
use crate::guard::Registry;
use crate::subject::gate::Halted;
use crate::subject::list::{Entry, SlotState};
use crate::subject::policy::Rules;

impl<T, E, P, L> Registry for Core<T, E, P, L>
where
    T: Send + Sync,
    E: Send + Sync,
    P: Rules,
    L: Entry<T, E>,
{
    fn remove(&self, key: u64) {
        let mut removed = Removed::empty();
        self.take_out(key, &mut self.control.lock(), &mut removed);
    }

    fn remove_last(self: Arc<Self>, key: u64) {
        let mut removed = Removed::empty();
        let this = Arc::into_raw(self);
        // SAFETY: the reference behind `this` is still counted, so the core exists.
        let core = unsafe { &*this };
        let mut control = core.control.lock();
        core.take_out(key, &mut control, &mut removed);
        if control.abandoned {
            drop(control);
            // SAFETY: `this` comes from `Arc::into_raw`, and is taken back once.
            drop(unsafe { Arc::from_raw(this) });
        } else {
            control.spare += 1;
            // This is the last access to the core. Afterwards, another thread may release the reference.
            drop(control);
        }
    }

    fn remove_and_wait(&self, key: u64) {
        let mut removed = Removed::empty();
        let left_over = self.take_out(key, &mut self.control.lock(), &mut removed);
        drop(removed);
        if left_over {
            self.wait_until_removed(key);
        }
    }

    fn contains(&self, key: u64) -> bool {
        self.control.lock().registrations.contains(key)
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Core<T, E, P, L> {
    /// Removes an observer, if it is subscribed. Returns whether the removal is left to the emitter.
    fn take_out(&self, key: u64, control: &mut Control<E, L>, removed: &mut Removed<L>) -> bool {
        let Some((slot, state)) = control.registrations.find(key) else {
            return false;
        };
        let mut left_over = false;
        match state {
            SlotState::Free => return false,
            SlotState::Leaving(_) => return true,
            SlotState::Waiting(index) => {
                removed.observer = Some(control.registrations.remove_waiting(slot, index))
            }
            SlotState::Listed(index) => match self.gate.halt(&mut control.fenced) {
                Halted::Idle => {
                    // SAFETY: the emitter is idle and cannot begin.
                    let list = unsafe { &mut *self.gate.list() };
                    // This comes first, because compaction treats all entries of the list as subscribed.
                    control.remove_leaving(list, &mut removed.others);
                    // If the subject was disposed of, `remove_leaving` has removed this observer too.
                    let still = control.registrations.find(key).is_some();
                    removed.observer =
                        still.then(|| control.registrations.remove_listed(list, slot));
                    control.registrations.compact_if_many(list);
                }
                Halted::Calling => {
                    control.registrations.leave(slot, index);
                    left_over = true;
                }
            },
        }
        if control.end.is_none() {
            self.count(-1);
        }
        left_over
    }

    /// Waits until the leaving observer behind `key` is not called any more.
    fn wait_until_removed(&self, key: u64) {
        let mut removed = Vec::new();
        let mut control = self.control.lock();
        control.waiters += 1;
        while control.registrations.find(key).is_some() && !self.gate.is_calling_here() {
            if self.gate.halt(&mut control.fenced) == Halted::Idle {
                // The emission ended without another check of the signal; this thread removes the observer.
                // SAFETY: the emitter is idle and cannot begin.
                control.remove_leaving(unsafe { &mut *self.gate.list() }, &mut removed);
                break;
            }
            let so_far = self.removals.so_far();
            drop(control);
            self.removals.wait(so_far);
            control = self.control.lock();
        }
        control.waiters -= 1;
        drop(control);
        drop(removed);
    }
}

/// Removed observers, to be dropped without the lock.
struct Removed<L> {
    observer: Option<L>,
    others: Vec<L>,
}

impl<L> Removed<L> {
    const fn empty() -> Self {
        Self {
            observer: None,
            others: Vec::new(),
        }
    }
}
