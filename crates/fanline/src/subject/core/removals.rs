//! Notification of threads that wait until an observer is removed.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, lock};

/// Interval at which a waiting thread checks again. An emission that ends without another check of the signal
/// does not notify the waiting thread.
const POLL: Duration = Duration::from_millis(1);

/// A counter of removals, incremented while threads wait.
pub(super) struct Removals {
    number: Mutex<usize>,
    changed: Condvar,
}

impl Removals {
    pub(super) fn new() -> Self {
        Self {
            number: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// Returns the current count. Call this while the control state is locked, and call [`wait`](Self::wait)
    /// after unlocking it.
    pub(super) fn so_far(&self) -> usize {
        *lock(&self.number)
    }

    pub(super) fn announce(&self) {
        *lock(&self.number) += 1;
        self.changed.notify_all();
    }

    /// Waits until the count differs from `known`, or [`POLL`] has passed.
    #[cfg(not(all(test, fanline_loom)))]
    pub(super) fn wait(&self, known: usize) {
        let number = lock(&self.number);
        if *number == known {
            drop(crate::sync::wait_timeout(&self.changed, number, POLL));
        }
    }

    #[cfg(all(test, fanline_loom))]
    pub(super) fn wait(&self, _known: usize) {
        let _ = (&self.changed, POLL);
        crate::sync::thread::yield_now();
    }
}
