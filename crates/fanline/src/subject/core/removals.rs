//! Notification of threads that wait until an observer is removed.

#[cfg(feature = "std")]
use core::time::Duration;

#[cfg(feature = "std")]
use crate::sync::Condvar;
use crate::sync::{Mutex, lock};

/// Interval at which a waiting thread checks again. An emission that ends without another check of the signal
/// does not notify the waiting thread.
#[cfg(feature = "std")]
const POLL: Duration = Duration::from_millis(1);

/// A counter of removals, incremented while threads wait.
pub(super) struct Removals {
    number: Mutex<usize>,
    #[cfg(feature = "std")]
    changed: Condvar,
}

impl Removals {
    pub(super) fn new() -> Self {
        Self {
            number: Mutex::new(0),
            #[cfg(feature = "std")]
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
        #[cfg(feature = "std")]
        self.changed.notify_all();
    }

    /// Waits until the count differs from `known`, or [`POLL`] has passed.
    #[cfg(all(feature = "std", not(all(test, fanline_loom))))]
    pub(super) fn wait(&self, known: usize) {
        let number = lock(&self.number);
        if *number == known {
            drop(crate::sync::wait_timeout(&self.changed, number, POLL));
        }
    }

    #[cfg(not(feature = "std"))]
    pub(super) fn wait(&self, _known: usize) {
        crate::sync::thread::yield_now();
    }

    #[cfg(all(test, fanline_loom))]
    pub(super) fn wait(&self, _known: usize) {
        let _ = (&self.changed, POLL);
        crate::sync::thread::yield_now();
    }
}
