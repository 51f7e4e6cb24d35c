//! The keeper's work done by a shard.
//!
//! A shard that has one message for a keeper that sleeps would wake its thread, and be woken for what
//! comes of it: two threads that start and stop for what takes a microsecond. So it does that work
//! itself, when it is little, waits for no disk, and nobody else is at it. Whatever is more than that
//! is for the keeper's thread, beside the shards.

use std::sync::{PoisonError, TryLockError};

use fanline_engine::Batch;

use super::Thread;
use super::work::Work;
use crate::sync::{Mutex, MutexGuard};

/// A batch larger than this is for the keeper's thread: meanwhile the shard reads on.
const HELPED_BYTES_MAX: usize = 4 * 1024;

/// A keeper whose work another thread may do.
pub(crate) trait Helped: Send + Sync {
    /// Takes a batch and does all that follows from it now; or says no, and the batch is as it was.
    /// Never waits.
    fn help(&self, batch: &mut Batch) -> bool;
}

/// The keeper, for whichever thread does its work.
pub(super) struct Shared<W>(Mutex<Thread<W>>);

impl<W> Shared<W> {
    pub(super) fn new(thread: Thread<W>) -> Self {
        Shared(Mutex::new(thread))
    }

    /// For the keeper's own thread, which waits for a shard to be done.
    pub(super) fn lock(&self) -> MutexGuard<'_, Thread<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Work> Helped for Shared<W> {
    fn help(&self, batch: &mut Batch) -> bool {
        if batch.bytes() > HELPED_BYTES_MAX {
            return false;
        }
        match self.0.try_lock() {
            Ok(mut thread) => thread.help(batch),
            // Somebody is at it; or a panic was, and there is nobody any more.
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => false,
        }
    }
}
