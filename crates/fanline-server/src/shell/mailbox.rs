//! How shards hand batches to each other: one lock and at most one wake-up a batch.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fanline_engine::Batch;
use tokio::sync::Notify;

/// A shard whose mailbox holds more than this is given time by those who post to it.
pub(super) const FULL_BYTES: usize = 8 * 1024 * 1024;

/// What other shards have for one.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<Batch>,
    /// Set under the lock after something was put in, cleared before it is taken out. A reader
    /// that finds it clear has missed nothing that was posted before it looked.
    has_mail: AtomicBool,
    bytes: AtomicUsize,
    arrived: Notify,
}

impl Mailbox {
    /// Puts a batch in and empties it.
    pub(super) fn post(&self, batch: &mut Batch) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.append(batch);
        // Only an estimate for holding publishers back.
        self.bytes.store(waiting.bytes(), Ordering::Relaxed);
        // Release: whoever sees the flag finds the mail.
        let was_set = self.has_mail.swap(true, Ordering::Release);
        drop(waiting);
        if !was_set {
            self.arrived.notify_one();
        }
    }

    /// Takes everything out, if there is anything.
    #[inline]
    pub(super) fn take(&self, read: impl FnOnce(&Batch)) {
        // Acquire pairs with the Release in `post`. A plain load first: nearly always there is
        // nothing, and a swap would take the cache line from the other shards each time.
        if !self.has_mail.load(Ordering::Acquire) {
            return;
        }
        self.has_mail.store(false, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = std::mem::take(&mut *waiting);
        self.bytes.store(0, Ordering::Relaxed);
        drop(waiting);
        read(&batch);
        // The room goes back to be used again, unless new mail has its own by now.
        batch.clear();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            *waiting = batch;
        }
    }

    /// Whether those who post should wait a little.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > FULL_BYTES
    }

    /// Waits for mail.
    pub(super) async fn wait(&self) {
        self.arrived.notified().await;
    }
}
