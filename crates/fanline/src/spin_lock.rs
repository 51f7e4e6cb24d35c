//! The lock of a subject's core.
//!
//! Releasing the lock is a plain store. So locking and releasing take one atomic read-modify-write, half of
//! what a mutex takes. That matters, because subscribing and unsubscribing do little else. In return there
//! are no wake-ups: a thread that finds the lock taken retries, with growing pauses. The lock is held for
//! tens of nanoseconds, rarely for microseconds, and no user code runs meanwhile.
//!
//! The lock is not accessed after its release. So the content may contain the reference count that keeps the
//! lock in memory.
#![expect(unsafe_code, reason = "a cell that belongs to the holder of the lock")]

use core::ops::{Deref, DerefMut};
#[cfg(feature = "std")]
use core::time::Duration;
#[cfg(feature = "std")]
use std::thread::sleep;

#[cfg(feature = "std")]
use crate::sync::thread;
use crate::sync::{AtomicBool, Ordering, SharedCell};

/// Number of retries with a spin between them. They are the first retries.
#[cfg(feature = "std")]
const SPINS: u32 = 32;
/// Number of retries with a yield between them, after those with a spin.
#[cfg(feature = "std")]
const YIELDS: u32 = 64;
/// Pause between all later retries, because the holder of the lock may have been preempted.
#[cfg(feature = "std")]
const SLEEP: Duration = Duration::from_micros(50);

pub(crate) struct SpinLock<C> {
    locked: AtomicBool,
    content: SharedCell<C>,
}

// SAFETY: only one thread at a time accesses the content.
unsafe impl<C: Send> Sync for SpinLock<C> {}

impl<C: Default> Default for SpinLock<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

/// Access to the content; dropping it releases the lock.
pub(crate) struct SpinGuard<'a, C> {
    spin_lock: &'a SpinLock<C>,
}

impl<C> SpinLock<C> {
    pub(crate) fn new(content: C) -> Self {
        Self {
            locked: AtomicBool::new(false),
            content: SharedCell::new(content),
        }
    }

    /// Locks, and waits while another thread holds the lock. Deadlocks if this thread holds it.
    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, C> {
        if !self.try_lock() {
            self.lock_slowly();
        }
        SpinGuard { spin_lock: self }
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        // Acquire: this thread sees the writes of the previous holder.
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_slowly(&self) {
        let mut retries = 0;
        loop {
            pause(retries);
            retries += 1;
            // Relaxed: a check without a write, so that the cache line stays with the holder.
            if !self.locked.load(Ordering::Relaxed) && self.try_lock() {
                return;
            }
        }
    }
}

/// Waits between two attempts. The more `retries` there were, the longer it waits.
/// Without the feature `std`, a thread cannot yield the processor to another one.
#[cfg(not(feature = "std"))]
fn pause(_retries: u32) {
    core::hint::spin_loop();
}

#[cfg(feature = "std")]
fn pause(retries: u32) {
    // In a loom model no other thread runs until this one yields.
    if cfg!(all(test, fanline_loom)) || (SPINS..SPINS + YIELDS).contains(&retries) {
        thread::yield_now();
    } else if retries < SPINS {
        core::hint::spin_loop();
    } else {
        sleep(SLEEP);
    }
}

impl<C> Deref for SpinGuard<'_, C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        // SAFETY: this thread holds the lock, so there is no unique reference to the content.
        unsafe { &*self.spin_lock.content.get() }
    }
}

impl<C> DerefMut for SpinGuard<'_, C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: this thread holds the lock, and `&mut self` makes the reference unique.
        unsafe { &mut *self.spin_lock.content.get() }
    }
}

impl<C> Drop for SpinGuard<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: the next holder sees this holder's writes.
        self.spin_lock.locked.store(false, Ordering::Release);
    }
}

/// A mutex that replaces [`SpinLock`] in loom models of its users: a spin loop has too many interleavings.
#[cfg(all(test, fanline_loom))]
pub(crate) struct ModelLock<C>(crate::sync::Mutex<C>);

#[cfg(all(test, fanline_loom))]
impl<C> ModelLock<C> {
    pub(crate) fn new(content: C) -> Self {
        Self(crate::sync::Mutex::new(content))
    }

    pub(crate) fn lock(&self) -> crate::sync::MutexGuard<'_, C> {
        crate::sync::lock(&self.0)
    }
}

#[cfg(all(test, fanline_loom))]
mod models {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn loom_lock_excludes_other_threads() {
        loom::model(|| {
            let spin_lock = Arc::new(SpinLock::new(0));
            let other = {
                let spin_lock = spin_lock.clone();
                thread::spawn(move || *spin_lock.lock() += 1)
            };
            *spin_lock.lock() += 1;
            other.join().unwrap();
            assert_eq!(*spin_lock.lock(), 2);
        });
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn sleeping_waiters_get_the_lock() {
        let spin_lock = SpinLock::new(Vec::new());
        thread::scope(|scope| {
            let locked = spin_lock.lock();
            let others = [1, 2].map(|name| {
                scope.spawn({
                    let spin_lock = &spin_lock;
                    move || spin_lock.lock().push(name)
                })
            });
            // This time is long enough that the other threads sleep. If they do not, the test still passes.
            sleep(SLEEP * 20);
            assert!(locked.is_empty());
            drop(locked);
            for other in others {
                other.join().expect("no panic");
            }
        });
        let mut names = spin_lock.lock().clone();
        names.sort_unstable();
        assert_eq!(names, [1, 2]);
    }

    #[test]
    fn panic_releases_the_lock() {
        let spin_lock = SpinLock::new(0);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut locked = spin_lock.lock();
            *locked = 1;
            panic!("a broken invariant");
        }));
        assert!(outcome.is_err());
        assert_eq!(*spin_lock.lock(), 1);
    }
}
