//! Where atomics and locks come from, so that loom can take the place of the standard library's.
//!
//! The models run with
//!
//! ```text
//! RUSTFLAGS="--cfg fanline_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test --release -p fanline-server --lib loom
//! ```
//!
//! The name is our own because `--cfg loom` would change tokio too. All other unit tests fail
//! under it: loom's types work only inside a model.

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
