//! Whose turn it is to emit, of the threads that share a subject.
//!
//! Nobody waits for the turn: who finds it taken leaves what he has in a queue, says so, and goes on;
//! who has it looks for that before he gives it back. Both looks must not miss each other. Taking the turn is a
//! read-modify-write in any case. Giving it back is a plain store with a look afterwards as long as
//! nobody has been in the way: the first who is makes the fence that this look does without, which is dear
//! (see [`Fences`]), and from then on giving it back is a read-modify-write, too, until the turn has been
//! given back in peace for a while.
//!
//! ```text
//! who has the turn                       who finds it taken
//!   taken -> free (plain)                  taken -> queued, or takes it if it is free
//!   light fence                            contended? if not:
//!   contended?                               contended <- true, heavy fence, and all over
//!     if so: as on the right
//! ```
//!
//! The plain store may wipe out `queued`. Either it comes after the heavy fence: then whoever made the store
//! finds `contended`, and says once more that something is queued. Or it comes before: then whoever made the
//! fence finds the turn free, and takes it. Whoever makes peace, so that `contended` is not found any more,
//! looks into the queue himself. In between the turn is free while something is queued: whoever takes it then
//! has to look whether that is his own, which comes first.

use crate::fence::Fences;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

const FREE: usize = 0;
/// Somebody emits.
const TAKEN: usize = 1;
/// Somebody emits, and there is something in the queue.
const QUEUED: usize = 2;

/// So often in a row nobody was in the way, until giving back is a plain store again.
const PEACE: u32 = if cfg!(all(test, fanline_loom)) {
    1
} else {
    1024
};

pub(super) struct Turn {
    state: AtomicUsize,
    /// Whether somebody was in the way lately.
    contended: AtomicBool,
    /// How often the turn was given back since; belongs to whoever has it.
    peaceful: AtomicU32,
    fences: Fences,
}

impl Turn {
    pub(super) fn new(fences: Fences) -> Self {
        Self {
            state: AtomicUsize::new(FREE),
            contended: AtomicBool::new(!can_be_plain(fences)),
            peaceful: AtomicU32::new(0),
            fences,
        }
    }

    /// Takes the turn, if nobody has it.
    #[inline(always)]
    pub(super) fn take(&self) -> bool {
        // Acquire: after whoever had it before.
        self.state
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives the turn back; or keeps it, when something may be queued.
    #[inline(always)]
    #[must_use = "what is queued is to be emitted"]
    pub(super) fn give_back(&self) -> bool {
        // Relaxed: who finds the turn taken after these looks is found by the one below.
        if self.contended.load(Ordering::Relaxed) || self.state.load(Ordering::Relaxed) != TAKEN {
            return self.give_back_carefully();
        }
        self.free();
        self.fences.light();
        // Relaxed: the fences order it.
        !self.contended.load(Ordering::Relaxed) || !self.announce()
    }

    /// The plain store.
    #[inline(always)]
    fn free(&self) {
        // Release: before whoever has it next.
        #[cfg(not(all(test, fanline_loom)))]
        self.state.store(FREE, Ordering::Release);
        // loom lets a store come between a read-modify-write and what that has read, which no machine
        // does. What it replaces is not looked at.
        #[cfg(all(test, fanline_loom))]
        self.state.swap(FREE, Ordering::Release);
    }

    #[cold]
    fn give_back_carefully(&self) -> bool {
        // Relaxed, both: in the hands of one thread at a time, which the turn orders.
        let peaceful = self.peaceful.load(Ordering::Relaxed) + 1;
        self.peaceful.store(peaceful % PEACE, Ordering::Relaxed);
        if peaceful >= PEACE && can_be_plain(self.fences) {
            self.contended.store(false, Ordering::Relaxed);
            // Kept for one look into the queue: somebody may have wiped out that something is in there, and
            // not yet have looked whether he did. Now he does not find out.
            return false;
        }
        self.give_back_unless_queued()
    }

    /// The same, by a read-modify-write whatever was before.
    #[must_use = "what is queued is to be emitted"]
    pub(super) fn give_back_unless_queued(&self) -> bool {
        // Release: before whoever has it next.
        let free = self
            .state
            .compare_exchange(TAKEN, FREE, Ordering::Release, Ordering::Relaxed);
        if free.is_err() {
            self.peaceful.store(0, Ordering::Relaxed);
        }
        free.is_ok()
    }

    /// Whoever has the turn is about to look into the queue.
    pub(super) fn begin_round(&self) {
        // Acquire: after those who have queued; they have held the queue's lock, too.
        self.state.swap(TAKEN, Ordering::Acquire);
    }

    /// Says that something was queued. Whoever has the turn finds it; or the turn is the caller's, when it is
    /// free by now, and the queue is to be emptied.
    #[cold]
    #[must_use = "what is queued is to be emitted"]
    pub(super) fn announce(&self) -> bool {
        // Relaxed: a first guess.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let wanted = if state == FREE { TAKEN } else { QUEUED };
            // Acquire when it takes the turn, and so that the look below comes after what whoever had it has
            // written before; release for who finds it queued.
            match self.state.compare_exchange_weak(
                state,
                wanted,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(FREE) => return true,
                Ok(_) if self.contended.load(Ordering::Relaxed) => return false,
                Ok(_) => {
                    self.contended.store(true, Ordering::Relaxed);
                    self.fences.heavy();
                    state = wanted;
                }
                Err(now) => state = now,
            }
        }
    }

    /// The same for a thread that has the turn itself, further up on its stack: nobody is in its way.
    pub(super) fn announce_own(&self) {
        // Relaxed: found by this thread. Nobody else changes it but to the same.
        self.state.store(QUEUED, Ordering::Relaxed);
    }
}

/// Whether the light fence costs nothing, as it must. A model is there to try it.
fn can_be_plain(fences: Fences) -> bool {
    fences == Fences::Asymmetric || cfg!(all(test, fanline_loom))
}

#[cfg(all(test, fanline_loom))]
mod models {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{Mutex, SharedCell, lock, thread};

    /// What is handed in, and what was emitted by whoever had the turn.
    struct Desk {
        turn: Turn,
        queue: Mutex<Vec<u32>>,
        has_queued: AtomicBool,
        emitted: SharedCell<Vec<u32>>,
    }

    // SAFETY: what was emitted belongs to whoever has the turn, which loom checks.
    #[expect(unsafe_code, reason = "to have loom check the turn")]
    unsafe impl Sync for Desk {}

    impl Desk {
        #[expect(unsafe_code, reason = "to have loom check the turn")]
        fn emit(&self, value: u32) {
            // SAFETY: as above.
            unsafe { (*self.emitted.get()).push(value) };
        }

        fn hand_in(&self, value: u32) {
            let ours = self.turn.take();
            if ours && !self.has_queued.load(Ordering::Relaxed) {
                self.emit(value);
                if !self.turn.give_back() {
                    self.drain();
                }
                return;
            }
            {
                let mut queue = lock(&self.queue);
                queue.push(value);
                self.has_queued.store(true, Ordering::Relaxed);
            }
            if ours || self.turn.announce() {
                self.drain();
            }
        }

        fn drain(&self) {
            loop {
                self.turn.begin_round();
                let batch = {
                    let mut queue = lock(&self.queue);
                    self.has_queued.store(false, Ordering::Relaxed);
                    std::mem::take(&mut *queue)
                };
                batch.into_iter().for_each(|value| self.emit(value));
                if self.turn.give_back_unless_queued() {
                    return;
                }
            }
        }
    }

    /// Each thread hands in so many values; none is left lying.
    fn check(counts: &'static [u32], fences: Fences, preemptions: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || {
            let desk = Arc::new(Desk {
                turn: Turn::new(fences),
                queue: Mutex::new(Vec::new()),
                has_queued: AtomicBool::new(false),
                emitted: SharedCell::new(Vec::new()),
            });
            let hand_in = |desk: Arc<Desk>, who: u32, count: u32| {
                move || (0..count).for_each(|value| desk.hand_in(who * 10 + value))
            };
            let others: Vec<_> = (0..)
                .zip(counts)
                .skip(1)
                .map(|(who, count)| thread::spawn(hand_in(desk.clone(), who, *count)))
                .collect();
            hand_in(desk.clone(), 0, counts[0])();
            for other in others {
                other.join().unwrap();
            }
            assert!(lock(&desk.queue).is_empty());
            assert!(desk.turn.take(), "somebody kept the turn");
            // SAFETY: the turn was taken.
            #[expect(unsafe_code, reason = "to have loom check the turn")]
            let emitted = unsafe { (*desk.emitted.get()).clone() };
            for (who, count) in (0..).zip(counts) {
                let own = emitted.iter().filter(|value| **value / 10 == who);
                assert!(own.map(|value| value % 10).eq(0..*count), "{emitted:?}");
            }
        });
    }

    #[test]
    fn loom_nobody_is_left_waiting_by_two() {
        check(&[3, 2], Fences::Asymmetric, 3);
        check(&[2, 2], Fences::Symmetric, 3);
    }

    #[test]
    fn loom_nobody_is_left_waiting_by_three() {
        check(&[2, 1, 1], Fences::Asymmetric, 2);
    }
}
