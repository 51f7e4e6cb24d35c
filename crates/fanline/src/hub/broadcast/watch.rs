//! The condition that the producer waits for when there is no room: that all consumers leave the head.
//!
//! With several threads, consumers leave the head in any order. They are not counted, because that would cost
//! a word that all of them write. Instead one of them is named, the laggard. When it leaves, it looks for
//! another that is still there and names that one, or wakes the producer if there is none. So the producer
//! sleeps once for all of them. The search goes through the registry once, because a consumer that has left
//! the head does not come back. Few are named, because by then most others have left.
//!
//! A consumer that leaves the head sees that the head is watched, because the producer executed a heavy fence
//! after setting the watch. The laggard may change in the meantime. So the thread that names one and the
//! consumer that leaves both execute a full fence before they check. Only consumers that leave a watched head
//! pay for it.

use crate::sync::{AtomicU64, Ordering, fence};

/// The producer waits for no consumer.
const IDLE: u64 = 0;
/// The hub has failed. Consumers check this before anything else.
const FAILED: u64 = 2;

/// Words that are rarely written, under the hub's lock, and read for each element.
pub(super) struct Watch {
    /// A watched position, encoded as an odd number, or one of the constants above.
    word: AtomicU64,
    /// The id of the laggard.
    laggard: AtomicU64,
}

/// The encoding drops the top bit. Positions that differ only in it never exist at the same time.
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

    /// Returns whether a position is watched. Called after the consumer's own position is published, and a
    /// light fence.
    #[inline(always)]
    pub(super) fn is_at(&self, position: usize) -> bool {
        // Relaxed: the fence orders it; what follows is under the lock.
        self.word.load(Ordering::Relaxed) == word_of(position)
    }

    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: the announced error is read under the lock.
        self.word.load(Ordering::Relaxed) == FAILED
    }

    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: a hint, read without the lock.
        self.word.load(Ordering::Relaxed) == IDLE
    }

    /// Returns whether a consumer that has left a watched position is the laggard.
    pub(super) fn is_laggard(&self, id: u64) -> bool {
        // A thread that names it after this fence sees that it has left.
        fence(Ordering::SeqCst);
        self.laggard.load(Ordering::Relaxed) == id
    }

    /// Returns whether the producer waits for this consumer. Called under the lock.
    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.word.load(Ordering::Relaxed) & 1 != 0 && self.laggard.load(Ordering::Relaxed) == id
    }

    // The following functions are called under the lock.

    /// Sets the watch. The caller then executes a heavy fence.
    pub(super) fn begin(&self, position: usize) {
        self.word.store(word_of(position), Ordering::Relaxed);
    }

    /// Names a consumer. The caller checks its position afterwards.
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
