//! A slot for the waker of one waiting task.
//!
//! ```text
//! waiting task                  other threads
//!   slot <- its waker             condition <- true
//!   asleep <- true                full fence
//!   full fence                    asleep?
//!   condition?                      yes: take the waker and wake
//!     true:  continue
//!     false: pending
//! ```
//!
//! Each side writes one word, executes a full fence, and reads the word of the other side. So at least one
//! side sees the other's write, and no wake-up is lost. A wake-up costs one load if the task is not asleep. A
//! woken task is not woken again before it sleeps again, so a burst of elements causes one wake-up.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

#[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
use crate::sync::fence;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// A slot that wakes one task. The waker's own code (clone, wake, drop) never runs under the lock.
pub(crate) struct WakerSlot {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WakerSlot {
    pub(crate) fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    /// Stores a waker. The caller then checks its condition once more, and sleeps only if the condition is
    /// still false. The fence here orders that check after the store.
    pub(crate) fn register(&self, waker: &Waker) {
        if !self.holds(waker) {
            let own = waker.clone();
            let old = lock(&self.waker).replace(own);
            drop(old);
        }
        // An exchange, so that each concurrent `wake` comes either before or after it. The fence orders the
        // exchange before the caller's check.
        self.asleep.swap(true, Ordering::AcqRel);
        fence_after_exchange();
    }

    fn holds(&self, waker: &Waker) -> bool {
        // Relaxed: only the waiting task sets the flag. A thread that clears the flag takes the waker as
        // well.
        self.asleep.load(Ordering::Relaxed)
            && lock(&self.waker)
                .as_ref()
                .is_some_and(|own| own.will_wake(waker))
    }

    /// Wakes the task if it is asleep. The caller has made the condition true and then executed a full fence.
    #[inline]
    pub(crate) fn wake(&self) {
        // Relaxed: the caller's fence orders this load after the change of the condition.
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_asleep();
        }
    }

    #[cold]
    fn wake_asleep(&self) {
        // Acquire and release: of two concurrent calls, only one finds the flag set, and that call sees the
        // waker. If the task registers again in between, the call may take the new waker, which wakes the
        // task too.
        if self.asleep.swap(false, Ordering::AcqRel) {
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Removes the waker, because the task is awake for another reason or is gone.
    pub(crate) fn clear(&self) {
        // Relaxed: only the waiting task sets the flag. At worst, another thread wakes the task once for
        // nothing.
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            let waker = lock(&self.waker).take();
            drop(waker);
        }
    }
}

/// Calls both functions. If a waker panics in the first one, the panic resumes after the second one.
pub(crate) fn both(first: impl FnOnce(), second: impl FnOnce()) {
    let first = catch_unwind(AssertUnwindSafe(first));
    second();
    if let Err(panic) = first {
        resume_unwind(panic);
    }
}

/// Wakes all tasks, even if a waker panics. As for [`WakerSlot::wake`], the caller has executed a full fence.
pub(crate) fn wake_all<'a>(slots: impl Iterator<Item = &'a WakerSlot>) {
    struct Rest<'a, I: Iterator<Item = &'a WakerSlot>>(I);
    impl<'a, I: Iterator<Item = &'a WakerSlot>> Drop for Rest<'a, I> {
        fn drop(&mut self) {
            for slot in &mut self.0 {
                // Runs only after a panic of another waker. A second panic would abort the process.
                let _ = catch_unwind(AssertUnwindSafe(|| slot.wake()));
            }
        }
    }
    let mut rest = Rest(slots);
    for slot in rest.0.by_ref() {
        slot.wake();
    }
}

/// Executes a full fence directly after a read-modify-write.
#[inline(always)]
pub(crate) fn fence_after_exchange() {
    // On x86-64 an exchange is a full fence already; a second one would double the cost.
    #[cfg(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
    fence(Ordering::SeqCst);
}
