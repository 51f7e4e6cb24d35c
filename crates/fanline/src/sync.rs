//! Where atomics and locks come from, so that loom can take the place of the standard library's.
//!
//! The models run with
//!
//! ```text
//! RUSTFLAGS="--cfg fanline_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test --release -p fanline --lib loom
//! ```
//!
//! All other unit tests fail under it: loom's types work only inside a model.
#![allow(
    unused_imports,
    reason = "one set of names for the library and for its models"
)]

#[cfg(all(test, fanline_loom))]
mod exports {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread;
}

#[cfg(not(all(test, fanline_loom)))]
mod exports {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;
}

pub(crate) use exports::*;

/// Locks, whether or not a thread panicked while it held the lock. No user code runs under the
/// library's locks, so what they protect is whole all the same.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
