//! The free space of a bounded queue: the number of received values, and a sender that waits for room.
//!
//! After it has taken a value, the receiver checks whether the sender waits. The sender stores the count at
//! which it must be woken, and then checks how many values the receiver has taken. Fences ensure that at
//! least one of them sees the other's change.

use crate::fence::Fences;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// Number of checks for room before a sender sleeps.
const LOOKS: usize = if cfg!(all(test, fanline_loom)) { 0 } else { 8 };
/// Number of spins before each of these checks.
const SPINS: usize = 32;

/// The counters that both sides share. They have cache lines of their own, because the receiver writes to
/// them for each value.
#[repr(align(128))]
pub(super) struct Space {
    /// Number of all values removed so far. The count protects no data, so Relaxed suffices.
    taken: AtomicU64,
    /// Number of removed values at which the sender must be woken. Accesses are relaxed, because the fences
    /// order them.
    wake_at: AtomicU64,
    capacity: u64,
    fences: Fences,
    sleep: Mutex<()>,
    room: Condvar,
}

/// The value of `wake_at` while no sender waits.
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

    /// Returns the total number of written values at which the queue is full, given the values removed so
    /// far.
    pub(super) fn limit(&self) -> u64 {
        self.taken
            .load(Ordering::Relaxed)
            .saturating_add(self.capacity)
    }

    /// Stores the number of values that the receiver has removed.
    #[inline]
    pub(super) fn set_taken(&self, taken: u64) {
        self.taken.store(taken, Ordering::Relaxed);
        self.fences.light();
        let wake_at = self.wake_at.load(Ordering::Relaxed);
        if taken >= wake_at {
            self.wake(wake_at);
        }
    }

    #[cold]
    fn wake(&self, wake_at: u64) {
        // The exchange fails if the sender already waits for another count. In that case the sender has seen
        // the current count of removed values.
        let exchanged =
            self.wake_at
                .compare_exchange(wake_at, NEVER, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.wake_all();
        }
    }

    /// Makes a sleeping sender check for room again.
    pub(super) fn wake_all(&self) {
        // The sender checks for room under this lock before it sleeps.
        drop(lock(&self.sleep));
        self.room.notify_all();
    }

    /// Waits until there is room or `is_closed` returns true. The sender has written `count` values so far.
    pub(super) fn wait(&self, count: u64, is_closed: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            for _ in 0..SPINS {
                std::hint::spin_loop();
            }
            if count < self.limit() || is_closed() {
                return;
            }
        }
        // Wake at half the capacity rather than for each value, because waking a thread costs more than
        // filling half the queue.
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
