//! For those who wait until an observer has left.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, lock};

/// How long somebody sleeps before he looks again, for the case that the emission he waits for ends
/// without looking at the signal once more.
const POLL: Duration = Duration::from_millis(1);

/// How often observers have left while somebody waited.
pub(super) struct Departures {
    number: Mutex<usize>,
    changed: Condvar,
}

impl Departures {
    pub(super) fn new() -> Self {
        Self {
            number: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// To be asked with the control held, and waited for without.
    pub(super) fn so_far(&self) -> usize {
        *lock(&self.number)
    }

    pub(super) fn announce(&self) {
        *lock(&self.number) += 1;
        self.changed.notify_all();
    }

    /// Until there are more than `known`, or a while has passed.
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
