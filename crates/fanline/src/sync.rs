//! The atomics, locks, and threads of the library, so that loom can replace those of the standard library.
//!
//! Run the models with
//!
//! ```text
//! RUSTFLAGS="--cfg fanline_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test --release -p fanline --lib loom
//! ```
//!
//! All other unit tests fail with this flag: loom's types work only inside a model.
#![allow(
    unused_imports,
    reason = "one set of names for the library and for its models"
)]

#[cfg(all(test, fanline_loom))]
mod exports {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread;

    pub(super) fn cell<T>(value: T) -> loom::cell::UnsafeCell<T> {
        loom::cell::UnsafeCell::new(value)
    }
}

/// Returns a model with a bound on preemptions, which `LOOM_MAX_PREEMPTIONS` may lower.
#[cfg(all(test, fanline_loom))]
pub(crate) fn model(preemptions: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    let max = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(preemptions.min(max));
    model
}

#[cfg(all(feature = "std", not(all(test, fanline_loom))))]
mod exports {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;

    pub(super) fn cell<T>(value: T) -> std::cell::UnsafeCell<T> {
        std::cell::UnsafeCell::new(value)
    }
}

/// Without the feature `std`, a thread that waits for a lock spins until another thread releases it.
#[cfg(not(feature = "std"))]
mod exports {
    pub(crate) use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
    };

    pub(crate) use crate::spin_lock::{SpinGuard as MutexGuard, SpinLock as Mutex};

    pub(crate) mod thread {
        pub(crate) fn yield_now() {
            core::hint::spin_loop();
        }
    }

    pub(super) fn cell<T>(value: T) -> core::cell::UnsafeCell<T> {
        core::cell::UnsafeCell::new(value)
    }
}

pub(crate) use exports::*;

/// A cell whose users coordinate access. In loom models, each call of `get` checks for concurrent access.
pub(crate) struct SharedCell<T> {
    #[cfg(all(test, fanline_loom))]
    inner: loom::cell::UnsafeCell<T>,
    #[cfg(not(all(test, fanline_loom)))]
    inner: core::cell::UnsafeCell<T>,
}

impl<T> SharedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { inner: cell(value) }
    }

    /// Returns the address of the value. The caller must have exclusive access to it.
    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        #[cfg(all(test, fanline_loom))]
        {
            self.inner.with_mut(|address| address)
        }
        #[cfg(not(all(test, fanline_loom)))]
        {
            self.inner.get()
        }
    }
}

/// Locks, and ignores poisoning. No user code runs under the library's locks, so a panic leaves the protected
/// data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let guard = mutex.lock();
    #[cfg(feature = "std")]
    let guard = guard.unwrap_or_else(std::sync::PoisonError::into_inner);
    guard
}

/// Waits for a notification.
#[cfg(feature = "std")]
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits for a notification, for at most `timeout`.
#[cfg(feature = "std")]
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: std::time::Duration,
) -> MutexGuard<'a, T> {
    condvar
        .wait_timeout(guard, timeout)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .0
}
