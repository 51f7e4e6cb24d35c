//! What the producer waits for when there is no room: that everybody leaves the head.
//!
//! On several threads consumers leave it in any order. Who is still there is not counted, which would
//! cost each of them a word that all write. One of them is named, the laggard; when it leaves, it looks for
//! another that is still there and names that one, and wakes the producer if there is none. So the
//! producer sleeps once for all of them. The search goes through the roster once: whoever was
//! not there stays away, and few are named, since by then most others have left.
//!
//! A consumer that leaves the head sees that it is watched, as the producer made a heavy fence after it had
//! said so. Whether it is the laggard changes meanwhile: both who names and who leaves make a full fence
//! before they look, which is paid by those alone who leave a watched head.

use crate::sync::{AtomicU64, Ordering, fence};

/// The producer waits for nobody.
const NOBODY: u64 = 0;
/// The hub has failed, which everybody has to look at before anything else.
const FAILED: u64 = 2;

/// Written seldom, under the hub's lock, and read for each element.
pub(super) struct Watch {
    /// A position that is watched, which is odd, or one of the words above.
    word: AtomicU64,
    /// The id of the laggard.
    laggard: AtomicU64,
}

/// Positions that are half their range apart are never alive together.
#[inline(always)]
fn word_of(position: usize) -> u64 {
    (position as u64) << 1 | 1
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(NOBODY),
            laggard: AtomicU64::new(0),
        }
    }

    /// Whether who leaves that position is watched. After its own position is published, and a light fence.
    #[inline(always)]
    pub(super) fn is_at(&self, position: usize) -> bool {
        // Relaxed: the fence orders it; what follows is under the lock.
        self.word.load(Ordering::Relaxed) == word_of(position)
    }

    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: what it announces is read under the lock.
        self.word.load(Ordering::Relaxed) == FAILED
    }

    pub(super) fn is_nobody(&self) -> bool {
        // Relaxed: a guess, without the lock.
        self.word.load(Ordering::Relaxed) == NOBODY
    }

    /// A consumer has left a watched position: whether it is the laggard.
    pub(super) fn is_laggard(&self, id: u64) -> bool {
        // Whoever names it after this sees that it has left.
        fence(Ordering::SeqCst);
        self.laggard.load(Ordering::Relaxed) == id
    }

    /// Under the lock: whether that consumer's leaving has to be looked at.
    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.word.load(Ordering::Relaxed) & 1 != 0 && self.laggard.load(Ordering::Relaxed) == id
    }

    // What follows is under the lock.

    /// Before a heavy fence.
    pub(super) fn begin(&self, position: usize) {
        self.word.store(word_of(position), Ordering::Relaxed);
    }

    /// Names a consumer; its position is looked at after this.
    pub(super) fn name(&self, id: u64) {
        self.laggard.store(id, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        if self.word.load(Ordering::Relaxed) != NOBODY && !self.has_failed() {
            self.word.store(NOBODY, Ordering::Relaxed);
        }
    }

    pub(super) fn fail(&self) {
        self.word.store(FAILED, Ordering::Relaxed);
    }
}
