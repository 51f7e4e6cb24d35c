//! Exclusive access to emission, for the threads that share a subject.
//!
//! No thread waits for access. A thread that finds access taken puts its emission into a queue, announces the
//! emission, and continues. The holder checks for announcements before it releases access. The holder must
//! not miss an announcement. Acquiring access is always a read-modify-write. As long as there has been no
//! contention, releasing is a plain store, a light fence, and a check (see [`Fences`]). A light fence works
//! only with a heavy fence on the other side. So the first thread that finds access taken executes the
//! expensive heavy fence. From then on, releasing is a read-modify-write too, until access has been released
//! many times in a row without contention.
//! ```text
//! holder                                 thread that finds it taken
//!   taken -> free (plain)                  taken -> queued, or acquires if it is free
//!   light fence                            contended? if not:
//!   contended?                               contended <- true, heavy fence, and start over
//!     if so: as on the right
//! ```
//!
//! The plain store may overwrite `queued`. If the store comes after the heavy fence, the holder finds
//! `contended` set and announces the queued emission itself. If the store comes before the heavy fence, the
//! thread that executed the fence finds access free and acquires it. A holder that clears `contended` must
//! check the queue again. Between the store and the announcement, access is free although an emission is
//! queued. A thread that acquires access at that moment must check whether its own emission is queued. If so,
//! it must emit the queued one first.

use crate::fence::Fences;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

const FREE: usize = 0;
/// A thread emits.
const TAKEN: usize = 1;
/// A thread emits, and the queue is not empty.
const QUEUED: usize = 2;

/// Number of releases without contention after which a release is a plain store again.
const UNCONTENDED_MIN: u32 = if cfg!(all(test, fanline_loom)) {
    1
} else {
    1024
};

pub(super) struct Combiner {
    state: AtomicUsize,
    /// Whether there was contention recently.
    contended: AtomicBool,
    /// Number of releases since the last contention; only the holder uses it.
    uncontended: AtomicU32,
    fences: Fences,
}

impl Combiner {
    pub(super) fn new(fences: Fences) -> Self {
        Self {
            state: AtomicUsize::new(FREE),
            contended: AtomicBool::new(!can_release_plainly(fences)),
            uncontended: AtomicU32::new(0),
            fences,
        }
    }

    /// Acquires access, if it is free.
    #[inline(always)]
    pub(super) fn try_acquire(&self) -> bool {
        // Acquire: this thread sees the writes of the previous holder.
        self.state
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Releases access. Returns `false`, and retains access, if an emission may be queued.
    #[inline(always)]
    #[must_use = "queued emissions must be emitted"]
    pub(super) fn release(&self) -> bool {
        // Relaxed: if another thread finds access taken after these loads, it sets `contended` and executes a
        // heavy fence. Then either the last load below sees `contended`, or that thread finds access free
        // after its fence.
        if self.contended.load(Ordering::Relaxed) || self.state.load(Ordering::Relaxed) != TAKEN {
            return self.release_contended();
        }
        self.store_free();
        self.fences.light();
        // Relaxed: the fences order this load.
        !self.contended.load(Ordering::Relaxed) || !self.announce()
    }

    /// Releases by a plain store.
    #[inline(always)]
    fn store_free(&self) {
        // Release: the next holder sees this holder's writes.
        #[cfg(not(all(test, fanline_loom)))]
        self.state.store(FREE, Ordering::Release);
        // loom may order a plain store between the read and the write of another thread's read-modify-write,
        // which no machine does. So models use a swap, and ignore its result.
        #[cfg(all(test, fanline_loom))]
        self.state.swap(FREE, Ordering::Release);
    }

    #[cold]
    fn release_contended(&self) -> bool {
        // Relaxed, load and store: only the holder uses the counter, and acquiring access orders the holders.
        let uncontended = self.uncontended.load(Ordering::Relaxed) + 1;
        self.uncontended
            .store(uncontended % UNCONTENDED_MIN, Ordering::Relaxed);
        if uncontended >= UNCONTENDED_MIN && can_release_plainly(self.fences) {
            self.contended.store(false, Ordering::Relaxed);
            // Return `false`, so that the caller retains access and checks the queue. This is necessary
            // because a previous holder may have overwritten `QUEUED`. That holder now finds `contended`
            // cleared, and so does not announce the queued emission.
            return false;
        }
        self.release_unless_queued()
    }

    /// Releases access by a read-modify-write, and returns `true`. If an emission is queued, retains access
    /// and returns `false`.
    #[must_use = "queued emissions must be emitted"]
    pub(super) fn release_unless_queued(&self) -> bool {
        // Release: the next holder sees this holder's writes.
        let freed = self
            .state
            .compare_exchange(TAKEN, FREE, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.uncontended.store(0, Ordering::Relaxed);
        }
        freed.is_ok()
    }

    /// Sets the state to `TAKEN`, before the holder reads the queue.
    pub(super) fn mark_taken(&self) {
        // Acquire: this thread, the holder, sees the writes of the threads that announced emissions.
        self.state.swap(TAKEN, Ordering::Acquire);
    }

    /// Announces a queued emission. Returns `false` if the holder will find the emission. Returns `true` if
    /// access was free: the caller has then acquired access and must empty the queue.
    #[cold]
    #[must_use = "queued emissions must be emitted"]
    pub(super) fn announce(&self) -> bool {
        // Relaxed: a first guess.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let target = if state == FREE { TAKEN } else { QUEUED };
            // Acquire: this thread sees the previous holder's writes, both if it acquires access here, and
            // otherwise in the load of `contended` below. Release: a holder that finds `QUEUED` sees this
            // thread's writes.
            match self.state.compare_exchange_weak(
                state,
                target,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(FREE) => return true,
                Ok(_) if self.contended.load(Ordering::Relaxed) => return false,
                Ok(_) => {
                    self.contended.store(true, Ordering::Relaxed);
                    self.fences.heavy();
                    state = target;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Announces an emission that an observer queued on the holder's own thread. This is not contention.
    pub(super) fn announce_from_holder(&self) {
        // Relaxed: only this thread, the holder, needs to see this value. While access is taken, other
        // threads write only the same value.
        self.state.store(QUEUED, Ordering::Relaxed);
    }
}

/// Returns whether a release may be a plain store, which pays off only if the light fence is free. In loom
/// models, releases are plain stores with all kinds of fences.
fn can_release_plainly(fences: Fences) -> bool {
    fences == Fences::Asymmetric || cfg!(all(test, fanline_loom))
}

#[cfg(all(test, fanline_loom))]
mod models {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{Mutex, SharedCell, lock, thread};

    /// A combiner with its queue, and the values emitted by the holders.
    struct Harness {
        combiner: Combiner,
        queue: Mutex<Vec<u32>>,
        has_queued: AtomicBool,
        emitted: SharedCell<Vec<u32>>,
    }

    // SAFETY: only the holder accesses the emitted values, which loom checks.
    #[expect(unsafe_code, reason = "to have loom check the combiner")]
    unsafe impl Sync for Harness {}

    impl Harness {
        #[expect(unsafe_code, reason = "to have loom check the combiner")]
        fn emit(&self, value: u32) {
            // SAFETY: as above.
            unsafe { (*self.emitted.get()).push(value) };
        }

        fn emit_or_queue(&self, value: u32) {
            let acquired = self.combiner.try_acquire();
            if acquired && !self.has_queued.load(Ordering::Relaxed) {
                self.emit(value);
                if !self.combiner.release() {
                    self.emit_queued();
                }
                return;
            }
            {
                let mut queue = lock(&self.queue);
                queue.push(value);
                self.has_queued.store(true, Ordering::Relaxed);
            }
            if acquired || self.combiner.announce() {
                self.emit_queued();
            }
        }

        fn emit_queued(&self) {
            loop {
                self.combiner.mark_taken();
                let batch = {
                    let mut queue = lock(&self.queue);
                    self.has_queued.store(false, Ordering::Relaxed);
                    std::mem::take(&mut *queue)
                };
                batch.into_iter().for_each(|value| self.emit(value));
                if self.combiner.release_unless_queued() {
                    return;
                }
            }
        }
    }

    /// Emits the given number of values on each thread, and checks that all are emitted in order.
    fn check(counts: &'static [u32], fences: Fences, preemptions: usize) {
        crate::sync::model(preemptions).check(move || {
            let harness = Arc::new(Harness {
                combiner: Combiner::new(fences),
                queue: Mutex::new(Vec::new()),
                has_queued: AtomicBool::new(false),
                emitted: SharedCell::new(Vec::new()),
            });
            let emit_or_queue = |harness: Arc<Harness>, thread: u32, count: u32| {
                move || (0..count).for_each(|value| harness.emit_or_queue(thread * 10 + value))
            };
            let others: Vec<_> = (0..)
                .zip(counts)
                .skip(1)
                .map(|(thread, count)| {
                    thread::spawn(emit_or_queue(harness.clone(), thread, *count))
                })
                .collect();
            emit_or_queue(harness.clone(), 0, counts[0])();
            for other in others {
                other.join().unwrap();
            }
            assert!(lock(&harness.queue).is_empty());
            assert!(
                harness.combiner.try_acquire(),
                "a thread did not release access"
            );
            // SAFETY: access was acquired.
            #[expect(unsafe_code, reason = "to have loom check the combiner")]
            let emitted = unsafe { (*harness.emitted.get()).clone() };
            for (thread, count) in (0..).zip(counts) {
                let own = emitted.iter().filter(|value| **value / 10 == thread);
                assert!(own.map(|value| value % 10).eq(0..*count), "{emitted:?}");
            }
        });
    }

    #[test]
    fn loom_two_threads_leave_nothing_queued() {
        check(&[3, 2], Fences::Asymmetric, 3);
        check(&[2, 2], Fences::Symmetric, 3);
    }

    #[test]
    fn loom_three_threads_leave_nothing_queued() {
        check(&[2, 1, 1], Fences::Asymmetric, 2);
    }
}
