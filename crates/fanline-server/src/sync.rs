//! Atomics and locks of the standard library, or of loom in model tests.
//!
//! The models run with
//!
//! ```text
//! RUSTFLAGS="--cfg fanline_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test --release -p fanline-server --lib loom
//! ```
//!
//! The flag is not `loom`, because `--cfg loom` would change tokio too. All other unit tests fail with this
//! flag, because loom's types work only inside a model.

use std::sync::PoisonError;

#[cfg(all(test, fanline_loom))]
mod exports {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

#[cfg(not(all(test, fanline_loom)))]
mod exports {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}

pub(crate) use exports::*;

/// A mutex without poisoning, for values that are consistent between any two statements. State that a panic
/// may leave half changed needs a [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
