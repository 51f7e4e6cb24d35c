//! The JetStream service's work done by a shard.
//!
//! A shard that has one message for a JetStream service that sleeps would wake its thread, and be woken for what
//! comes of it: two threads that start and stop for what takes a microsecond. So it does that work
//! itself, when it is little, waits for no disk, and nobody else is at it. Whatever is more than that
//! is for the JetStream thread, beside the shards.

use std::sync::Arc;

use fanline_engine::Batch;
use fanline_engine::jetstream::Handler;

use super::Service;
use crate::ipc::{Common, InlineService, JetStreamAtWork};
use crate::sync::{Mutex, MutexGuard};

/// A batch larger than this is for the JetStream thread: meanwhile the shard reads on.
const HELPED_BYTES_MAX: usize = 4 * 1024;

/// The JetStream service, for whichever thread does its work.
pub(super) struct Shared<H> {
    thread: Mutex<Service<H>>,
    common: Arc<Common>,
}

impl<H> Shared<H> {
    pub(super) fn new(thread: Service<H>) -> Self {
        Shared {
            common: Arc::clone(&thread.common),
            thread: Mutex::new(thread),
        }
    }

    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    /// For the JetStream thread, which waits for a shard to be done. `None` after a panic in the middle of the
    /// work: what it has left half done is not used any more.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, Service<H>>> {
        self.thread.lock().ok()
    }
}

impl<H: Handler + Send> InlineService for Shared<H> {
    fn try_run(&self, batch: &mut Batch) -> bool {
        if batch.bytes() > HELPED_BYTES_MAX {
            return false;
        }
        // Somebody is at it; or a panic was, and there is nobody any more.
        let Ok(mut thread) = self.thread.try_lock() else {
            return false;
        };
        let _at_work = JetStreamAtWork::begin();
        let _guard = self.common.panic_stop.guard();
        thread.try_run(batch)
    }
}
