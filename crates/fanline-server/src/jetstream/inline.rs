//! JetStream work on a shard's thread.
//!
//! A shard with one message for an idle JetStream service would wake its thread and be woken by the response:
//! two context switches for a microsecond of work. The shard therefore does the work itself if it is small,
//! waits for no disk, and no other thread is at it. Everything else is for the JetStream thread.

use std::sync::Arc;

use fanline_engine::Batch;
use fanline_engine::jetstream::Handler;

use super::Service;
use crate::ipc::{Common, InlineService, JetStreamAtWork};
use crate::sync::{Mutex, MutexGuard};

/// Batches above this size go to the JetStream thread, so that the shard reads on.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// The JetStream service behind a lock, for any thread that does its work.
pub(super) struct SharedService<H> {
    thread: Mutex<Service<H>>,
    common: Arc<Common>,
}

impl<H> SharedService<H> {
    pub(super) fn new(thread: Service<H>) -> Self {
        SharedService {
            common: Arc::clone(&thread.common),
            thread: Mutex::new(thread),
        }
    }

    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    /// Locks the service for the JetStream thread, which waits for a shard to finish. Returns `None` after a
    /// panic under the lock: half-changed state is not used again.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, Service<H>>> {
        self.thread.lock().ok()
    }
}

impl<H: Handler + Send> InlineService for SharedService<H> {
    fn try_run(&self, batch: &mut Batch) -> bool {
        if batch.bytes() > INLINE_BYTES_MAX {
            return false;
        }
        // Another thread is at work, or one has panicked.
        let Ok(mut thread) = self.thread.try_lock() else {
            return false;
        };
        let _at_work = JetStreamAtWork::begin();
        let _guard = self.common.panic_stop.guard();
        thread.try_run(batch)
    }
}
