//! The condition that the producer waits for when there is no room: that all consumers leave the head (the
//! position of the slowest consumers).
//!
//! With several threads, consumers leave the head in any order. They are not counted, because all of them
//! would write the counter. Instead, one of them is named the *laggard*. When the laggard leaves the head, it
//! names another consumer that is still there. If there is none, it wakes the producer. So the producer
//! sleeps once for all of them. The search for laggards goes through the registry once, because a consumer
//! never returns to the head. Few laggards are named, because most consumers leave the head before the search
//! reaches them.
//!
//! A consumer that leaves the head sees the watch, because the producer executed a heavy fence after setting
//! it. The laggard may change in the meantime. So the thread that names a laggard and the consumer that
//! leaves both execute a full fence before they check. Only consumers that leave a watched head pay for that
//! fence.

use crate::sync::{AtomicU64, Ordering, fence};

/// The producer waits for no consumer.
const IDLE: u64 = 0;
/// The hub has failed. Consumers check this before they take an element.
const FAILED: u64 = 2;

/// Two words that are read for each element, and rarely written. They are written under the hub's lock.
pub(super) struct Watch {
    /// A watched position, encoded as an odd number, or one of the constants above.
    word: AtomicU64,
    /// The id of the laggard.
    laggard: AtomicU64,
}

/// Encodes a position, without its top bit. Two positions that differ only in that bit never exist at the
/// same time.
#[inline(always)]
fn word_of(position: usize) -> u64 {
    (position as u64) << 1 | 1
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(IDLE),
            laggard: AtomicU64::new(0),
        }
    }

    /// Returns whether `position` is watched. Before the call, the consumer has published its own new
    /// position and executed a light fence.
    #[inline(always)]
    pub(super) fn is_at(&self, position: usize) -> bool {
        // Relaxed: the light fence orders this load after the store of the new position. If the old position
        // is watched, the consumer takes the lock before it changes anything.
        self.word.load(Ordering::Relaxed) == word_of(position)
    }

    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: the error itself is read under the lock.
        self.word.load(Ordering::Relaxed) == FAILED
    }

    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: a hint, read without the lock.
        self.word.load(Ordering::Relaxed) == IDLE
    }

    /// Returns whether a consumer that has left a watched position is the laggard.
    pub(super) fn is_laggard(&self, id: u64) -> bool {
        // If another thread names this consumer as the laggard after this fence, that thread sees that the
        // consumer has left the position.
        fence(Ordering::SeqCst);
        self.laggard.load(Ordering::Relaxed) == id
    }

    /// Returns whether the producer waits for this consumer as its laggard. Called under the lock.
    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.word.load(Ordering::Relaxed) & 1 != 0 && self.laggard.load(Ordering::Relaxed) == id
    }

    // The following functions are called under the lock.

    /// Sets the watch. The caller then executes a heavy fence.
    pub(super) fn begin(&self, position: usize) {
        self.word.store(word_of(position), Ordering::Relaxed);
    }

    /// Names a consumer as the laggard. The caller checks the consumer's position afterwards.
    pub(super) fn name(&self, id: u64) {
        self.laggard.store(id, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        if self.word.load(Ordering::Relaxed) != IDLE && !self.has_failed() {
            self.word.store(IDLE, Ordering::Relaxed);
        }
    }

    pub(super) fn fail(&self) {
        self.word.store(FAILED, Ordering::Relaxed);
    }
}
