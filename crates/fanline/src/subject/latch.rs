//! The lock of a subject's inside.
//!
//! Releasing it is a plain store, so that to lock and release takes one atomic read-modify-write, half
//! of what a mutex takes: subscribing and leaving do little else. In return nobody is woken: who finds it
//! held looks again, after a while only now and then. It is held for tens of nanoseconds, rarely for
//! microseconds, and no code of the user's runs meanwhile.
//!
//! Nothing of the latch is touched once it is released, so that what it protects may hold the count that
//! keeps the latch in memory.
#![expect(unsafe_code, reason = "a cell that belongs to whoever holds the latch")]

use std::ops::{Deref, DerefMut};
use std::thread::sleep;
use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, SharedCell, thread};

/// How often somebody who waits looks again at once, and how often he lets others run in between,
/// before he sleeps in between: who holds it may have been interrupted.
const SPINS: u32 = 32;
const YIELDS: u32 = 64;
const SLEEP: Duration = Duration::from_micros(50);

pub(super) struct Latch<C> {
    held: AtomicBool,
    content: SharedCell<C>,
}

// SAFETY: the content is handed out to one thread at a time.
unsafe impl<C: Send> Sync for Latch<C> {}

/// What is held, until it is dropped.
pub(super) struct Held<'a, C> {
    latch: &'a Latch<C>,
}

impl<C> Latch<C> {
    pub(super) fn new(content: C) -> Self {
        Self {
            held: AtomicBool::new(false),
            content: SharedCell::new(content),
        }
    }

    /// Waits until nobody else holds it. Not for somebody who holds it already.
    #[inline]
    pub(super) fn hold(&self) -> Held<'_, C> {
        if !self.try_hold() {
            self.wait_to_hold();
        }
        Held { latch: self }
    }

    #[inline(always)]
    fn try_hold(&self) -> bool {
        // Acquire: after whoever held it before.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait_to_hold(&self) {
        let mut looks = 0;
        loop {
            wait_a_little(looks);
            looks += 1;
            // Relaxed: a first guess, which leaves the line to whoever holds it.
            if !self.held.load(Ordering::Relaxed) && self.try_hold() {
                return;
            }
        }
    }
}

/// Before the look that comes after so many others.
fn wait_a_little(looks: u32) {
    // In a model nothing else gets a turn before this thread gives its own away.
    if cfg!(all(test, fanline_loom)) || (SPINS..SPINS + YIELDS).contains(&looks) {
        thread::yield_now();
    } else if looks < SPINS {
        std::hint::spin_loop();
    } else {
        sleep(SLEEP);
    }
}

impl<C> Deref for Held<'_, C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        // SAFETY: held, so nobody else has a reference to the content.
        unsafe { &*self.latch.content.get() }
    }
}

impl<C> DerefMut for Held<'_, C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: as above, and the reference is as unique as that to `self`.
        unsafe { &mut *self.latch.content.get() }
    }
}

impl<C> Drop for Held<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: before whoever holds it next.
        self.latch.held.store(false, Ordering::Release);
    }
}

/// In models of what is built on it: those who look again and again have too many ways to do so.
#[cfg(all(test, fanline_loom))]
pub(super) struct Modelled<C>(crate::sync::Mutex<C>);

#[cfg(all(test, fanline_loom))]
impl<C> Modelled<C> {
    pub(super) fn new(content: C) -> Self {
        Self(crate::sync::Mutex::new(content))
    }

    pub(super) fn hold(&self) -> crate::sync::MutexGuard<'_, C> {
        crate::sync::lock(&self.0)
    }
}

#[cfg(all(test, fanline_loom))]
mod models {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn loom_a_latch_is_held_by_one_at_a_time() {
        loom::model(|| {
            let latch = Arc::new(Latch::new(0));
            let other = {
                let latch = latch.clone();
                thread::spawn(move || *latch.hold() += 1)
            };
            *latch.hold() += 1;
            other.join().unwrap();
            assert_eq!(*latch.hold(), 2);
        });
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_gets_it_all_the_same() {
        let latch = Latch::new(Vec::new());
        thread::scope(|scope| {
            let held = latch.hold();
            let others = [1, 2].map(|name| {
                scope.spawn({
                    let latch = &latch;
                    move || latch.hold().push(name)
                })
            });
            // Long enough that they sleep; the test holds if not.
            sleep(SLEEP * 20);
            assert!(held.is_empty());
            drop(held);
            for other in others {
                other.join().expect("whole");
            }
        });
        let mut names = latch.hold().clone();
        names.sort_unstable();
        assert_eq!(names, [1, 2]);
    }

    #[test]
    fn a_panic_releases_it() {
        let latch = Latch::new(0);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut held = latch.hold();
            *held = 1;
            panic!("as a broken invariant would");
        }));
        assert!(outcome.is_err());
        assert_eq!(*latch.hold(), 1);
    }
}
