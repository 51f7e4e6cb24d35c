//! JetStream work on a shard's thread.
//!
//! If a shard passed one message to the idle JetStream thread, it would wake that thread, whose response
//! would wake the shard: two context switches for a microsecond of work. The shard therefore does the work
//! itself if the batch is small, needs no disk, and no other thread is doing JetStream work. Everything else
//! goes to the JetStream thread.

use std::sync::Arc;

use fanline_engine::Batch;

use super::{Service, ThreadHandler};
use crate::ipc::{Common, InlineService, JetStreamAtWork};
use crate::sync::{Mutex, MutexGuard};

/// Maximum size in bytes of a batch that a shard processes itself, so that it soon reads from its connections
/// again.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// The JetStream service behind a lock, for all threads that do its work.
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

    /// Locks the service for the JetStream thread; waits if a shard is using it. Returns `None` if a thread
    /// has panicked with the lock, because the state may be half changed.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, Service<H>>> {
        self.thread.lock().ok()
    }
}

impl<H: ThreadHandler> InlineService for SharedService<H> {
    fn try_run(&self, batch: &mut Batch) -> bool {
        if batch.bytes() > INLINE_BYTES_MAX {
            return false;
        }
        // Another thread is doing JetStream work, or has panicked while it did.
        let Ok(mut thread) = self.thread.try_lock() else {
            return false;
        };
        let _at_work = JetStreamAtWork::begin();
        let _guard = self.common.panic_stop.guard();
        thread.try_run(batch)
    }
}
