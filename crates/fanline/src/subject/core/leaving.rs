//! Observers that leave: by their guards, on any thread, at any time.
#![expect(
    unsafe_code,
    reason = "the list is reached by the rules of the gate, references are left behind"
)]

use std::sync::Arc;

use super::Core;
use super::control::Control;
use crate::guard::Registry;
use crate::subject::gate::Halted;
use crate::subject::list::{Entry, Place};
use crate::subject::policy::Rules;

impl<T, E, P, L> Registry for Core<T, E, P, L>
where
    T: Send + Sync,
    E: Send + Sync,
    P: Rules,
    L: Entry<T, E>,
{
    fn remove(&self, key: u64) {
        let mut gone = Gone::nobody();
        self.take_out(key, &mut self.control.hold(), &mut gone);
    }

    fn remove_last(self: Arc<Self>, key: u64) {
        let mut gone = Gone::nobody();
        let this = Arc::into_raw(self);
        // SAFETY: a reference that is still counted.
        let core = unsafe { &*this };
        let mut control = core.control.hold();
        core.take_out(key, &mut control, &mut gone);
        if control.abandoned {
            drop(control);
            // SAFETY: as above, and it is taken back once.
            drop(unsafe { Arc::from_raw(this) });
        } else {
            control.spare += 1;
            // The last that is done with the core: somebody may already drop the reference.
            drop(control);
        }
    }

    fn remove_and_wait(&self, key: u64) {
        let mut gone = Gone::nobody();
        let left_over = self.take_out(key, &mut self.control.hold(), &mut gone);
        drop(gone);
        if left_over {
            self.wait_until_gone(key);
        }
    }

    fn contains(&self, key: u64) -> bool {
        matches!(
            self.control.hold().places.find(key),
            Some((_, Place::Waiting(_) | Place::Listed(_)))
        )
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Core<T, E, P, L> {
    /// Takes an observer out, if it is still in; whether that is left to the emitter.
    fn take_out(&self, key: u64, control: &mut Control<E, L>, gone: &mut Gone<L>) -> bool {
        let Some((place, at)) = control.places.find(key) else {
            return false;
        };
        let mut left_over = false;
        match at {
            Place::Free => return false,
            Place::Leaving(_) => return true,
            Place::Waiting(index) => gone.who = Some(control.turn_away(place, index)),
            Place::Listed(index) => match self.gate.halt(&mut control.fenced) {
                Halted::Idle => {
                    // SAFETY: the emitter is idle and cannot begin.
                    let list = unsafe { &mut *self.gate.list() };
                    // First, because closing up takes everybody in the list for subscribed.
                    control.let_go(list, &mut gone.others);
                    // Unless it went with everybody: the subject was disposed of.
                    let still = control.places.find(key).is_some();
                    gone.who = still.then(|| control.expel(list, place));
                    control.close_up_if_many(list);
                }
                Halted::Calling => {
                    control.places.set(place, Place::Leaving(index));
                    control.leaving.push(place);
                    left_over = true;
                }
            },
        }
        if control.end.is_none() {
            self.count(-1);
        }
        left_over
    }

    /// Waits until the observer behind `key`, who is leaving, is not called any more.
    fn wait_until_gone(&self, key: u64) {
        let mut gone = Vec::new();
        let mut control = self.control.hold();
        control.waiters += 1;
        while control.places.find(key).is_some() && !self.gate.is_calling_here() {
            if self.gate.halt(&mut control.fenced) == Halted::Idle {
                // The emission ended without looking at the signal again.
                // SAFETY: the emitter is idle and cannot begin.
                control.let_go(unsafe { &mut *self.gate.list() }, &mut gone);
                break;
            }
            let so_far = self.departures.so_far();
            drop(control);
            self.departures.wait(so_far);
            control = self.control.hold();
        }
        control.waiters -= 1;
        drop(control);
        drop(gone);
    }
}

/// Who was taken out, to be dropped without the lock.
struct Gone<L> {
    who: Option<L>,
    others: Vec<L>,
}

impl<L> Gone<L> {
    const fn nobody() -> Self {
        Self {
            who: None,
            others: Vec::new(),
        }
    }
}
