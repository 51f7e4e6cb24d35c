//! Somebody asleep, and how others wake it.
//!
//! ```text
//! sleeper                       others
//!   waker <- its own              what it waits for <- there
//!   asleep <- true                full fence
//!   full fence                    asleep?
//!   there?                          yes: take the waker and wake
//!     yes: go on
//!     no:  pending
//! ```
//!
//! Both sides write one word and then read the other's, with a full fence in between, so that one of
//! them sees the other (hazards 1 to 3 of lost wake-ups are of this kind). Ringing for somebody who is
//! up is one load, and whoever was woken is not woken again before it sleeps again: a burst of elements
//! is one wake-up.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

#[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
use crate::sync::fence;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Wakes one sleeper. The waker's own code (clone, wake, drop) never runs under the lock.
pub(crate) struct Bell {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    /// Leaves a waker. The caller then looks once more at what it waits for, which the fence here
    /// orders, and only sleeps when it is still not there.
    pub(crate) fn lie_down(&self, waker: &Waker) {
        if !self.knows(waker) {
            let own = waker.clone();
            let old = lock(&self.waker).replace(own);
            drop(old);
        }
        // An exchange, so that of those who ring at once each comes before it or after. The fence orders
        // it before the look of the caller.
        self.asleep.swap(true, Ordering::AcqRel);
        fence_after_exchange();
    }

    fn knows(&self, waker: &Waker) -> bool {
        // Relaxed: the sleeper itself says so. Whoever rings takes the waker with it.
        self.asleep.load(Ordering::Relaxed)
            && lock(&self.waker)
                .as_ref()
                .is_some_and(|own| own.will_wake(waker))
    }

    /// Wakes the sleeper, if there is one. Between making what it waits for and this, the caller has
    /// made a full fence.
    #[inline]
    pub(crate) fn ring(&self) {
        // Relaxed: the caller's fence orders it.
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Acquire and release: of two who ring, one finds it asleep, and sees its waker. A sleeper that
        // lies down anew in between may have its new waker taken by this one, which wakes it too.
        if self.asleep.swap(false, Ordering::AcqRel) {
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// The sleeper is up for another reason, or gone: forgets its waker.
    pub(crate) fn rise(&self) {
        // Relaxed: the sleeper itself says so; at worst it is woken once for nothing.
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            let waker = lock(&self.waker).take();
            drop(waker);
        }
    }
}

/// Does one after the other, though a waker may panic in the first: that is passed on after the second.
pub(crate) fn both(first: impl FnOnce(), second: impl FnOnce()) {
    let first = catch_unwind(AssertUnwindSafe(first));
    second();
    if let Err(panic) = first {
        resume_unwind(panic);
    }
}

/// Rings all, though a waker may panic. The caller has made its fence, as for [`Bell::ring`].
pub(crate) fn ring_all<'a>(bells: impl Iterator<Item = &'a Bell>) {
    struct Rest<'a, I: Iterator<Item = &'a Bell>>(I);
    impl<'a, I: Iterator<Item = &'a Bell>> Drop for Rest<'a, I> {
        fn drop(&mut self) {
            for bell in &mut self.0 {
                // Only after a panic of another waker: a second one would abort.
                let _ = catch_unwind(AssertUnwindSafe(|| bell.ring()));
            }
        }
    }
    let mut rest = Rest(bells);
    for bell in rest.0.by_ref() {
        bell.ring();
    }
}

/// A full fence where a read-modify-write was just made.
#[inline(always)]
pub(crate) fn fence_after_exchange() {
    // There an exchange is a full fence itself, and another would double the cost.
    #[cfg(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
    fence(Ordering::SeqCst);
}
