//! Room in a queue with a limit: how far the receiver has come, and a sender that waits for it.
//!
//! The receiver looks whether it is waited for after it has taken a value, and the sender looks how far
//! the receiver is after it has said from where on it wants to be woken; the fences see to it that they
//! do not miss each other.

use crate::fence::Fences;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// How often a sender looks for room, and how long it waits before each look, before it sleeps.
const LOOKS: usize = if cfg!(all(test, fanline_loom)) { 0 } else { 8 };
const SPINS: usize = 32;

/// On cache lines of its own: the receiver writes to it for each value.
#[repr(align(128))]
pub(super) struct Space {
    /// Values that were ever taken out. It says how much room there is and guards no data: relaxed.
    taken: AtomicU64,
    /// Once so many are taken, somebody is to be woken. Relaxed: ordered by the fences.
    wake_at: AtomicU64,
    capacity: u64,
    fences: Fences,
    sleep: Mutex<()>,
    room: Condvar,
}

/// Nobody waits.
const NEVER: u64 = u64::MAX;

impl Space {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            taken: AtomicU64::new(0),
            wake_at: AtomicU64::new(NEVER),
            capacity: u64::try_from(capacity).unwrap_or(u64::MAX),
            fences: Fences::detect(),
            sleep: Mutex::new(()),
            room: Condvar::new(),
        }
    }

    /// Up to which count the sender may write, as far as is known now.
    pub(super) fn limit(&self) -> u64 {
        self.taken
            .load(Ordering::Relaxed)
            .saturating_add(self.capacity)
    }

    /// The receiver has taken so many so far.
    #[inline]
    pub(super) fn took(&self, taken: u64) {
        self.taken.store(taken, Ordering::Relaxed);
        self.fences.light();
        let wake_at = self.wake_at.load(Ordering::Relaxed);
        if taken >= wake_at {
            self.wake(wake_at);
        }
    }

    #[cold]
    fn wake(&self, wake_at: u64) {
        // The sender may be waiting for another count already; it has seen what was taken then.
        let exchanged =
            self.wake_at
                .compare_exchange(wake_at, NEVER, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.wake_all();
        }
    }

    /// Has a sender that sleeps look again.
    pub(super) fn wake_all(&self) {
        // It looks under the lock before it sleeps.
        drop(lock(&self.sleep));
        self.room.notify_all();
    }

    /// Waits until the sender, which has written `count`, may write another, or `is_closed`.
    pub(super) fn wait(&self, count: u64, is_closed: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            for _ in 0..SPINS {
                std::hint::spin_loop();
            }
            if count < self.limit() || is_closed() {
                return;
            }
        }
        // Not for each value: to wake a thread costs more than to fill half the queue.
        let wake_at = count - (self.capacity / 2).min(count);
        self.wake_at.store(wake_at, Ordering::Relaxed);
        self.fences.heavy();
        let mut sleep = lock(&self.sleep);
        while count >= self.limit() && !is_closed() {
            sleep = wait(&self.room, sleep);
        }
        drop(sleep);
        self.wake_at.store(NEVER, Ordering::Relaxed);
    }
}
