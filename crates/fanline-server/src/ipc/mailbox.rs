//! Mailboxes for batches between shards. Each batch takes one lock and at most one wake-up. It is not copied
//! if the mailbox is empty.

use fanline_engine::Batch;
use tokio::sync::Notify;

use crate::sync::{AtomicBool, AtomicUsize, Lock, Ordering};

/// Publishers wait while a mailbox contains more bytes than this.
pub(crate) const FULL_BYTES: usize = 8 * 1024 * 1024;

/// Batches from other shards for one shard.
#[derive(Default)]
pub(crate) struct Mailbox {
    queue: Queue<Batch>,
    arrived: Notify,
    /// Whether a subscriber of this shard reads too slowly. Publishers that post here then wait.
    congested: AtomicBool,
}

impl Mailbox {
    /// Moves a batch into the mailbox.
    pub(crate) fn post(&self, batch: &mut Batch) {
        if self.queue.put(batch) {
            self.arrived.notify_one();
        }
    }

    /// Moves a batch into the mailbox without a wake-up, for a caller that takes it out at once.
    pub(crate) fn post_without_wake(&self, batch: &mut Batch) {
        self.queue.put(batch);
    }

    /// Returns whether the mailbox is empty. Another thread may post to it at any time.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Wakes the reader, or ends its next wait at once.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Passes everything to `read`, if there is anything.
    #[inline]
    pub(crate) fn take(&self, read: impl FnOnce(&Batch)) {
        self.queue.take(read);
    }

    /// Returns whether publishers should wait.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.bytes() > FULL_BYTES
    }

    /// Returns whether a subscriber of this shard reads too slowly.
    pub(crate) fn is_congested(&self) -> bool {
        // Relaxed: the value is a hint, and no other memory access depends on it.
        self.congested.load(Ordering::Relaxed)
    }

    pub(crate) fn set_congested(&self, congested: bool) {
        // Stores only a change, because all publishers read this cache line.
        if self.is_congested() != congested {
            self.congested.store(congested, Ordering::Relaxed);
        }
    }

    /// Waits for a batch.
    pub(crate) async fn wait(&self) {
        self.arrived.notified().await;
    }
}

/// Contents of a [`Queue`]. This is a trait, because the loom models use numbers in place of a batch.
trait Contents: Default {
    fn append(&mut self, other: &mut Self);
    fn bytes(&self) -> usize;
    fn clear(&mut self);
}

impl Contents for Batch {
    fn append(&mut self, other: &mut Self) {
        Batch::append(self, other);
    }

    fn bytes(&self) -> usize {
        Batch::bytes(self)
    }

    fn clear(&mut self) {
        Batch::clear(self);
    }
}

/// A mailbox without its wake-up: many producers, one consumer.
#[derive(Default)]
struct Queue<C> {
    waiting: Lock<Waiting<C>>,
    /// Whether the queue has contents. Producers and the consumer write the flag only while they hold the
    /// lock, so a thread with the lock always reads the right value. The consumer also reads the flag without
    /// the lock. If the flag is then clear, the contents of every `put` that happened before have already
    /// been taken.
    has_contents: AtomicBool,
    bytes: AtomicUsize,
}

/// The contents, and an empty buffer from an earlier read. When the consumer takes the contents, the empty
/// buffer replaces them, and the next producer swaps its batch for that buffer.
#[derive(Default)]
struct Waiting<C> {
    contents: C,
    spare: C,
}

impl<C: Contents> Queue<C> {
    /// Moves contents into the queue. Returns whether the consumer needs a wake-up, that is, whether the queue
    /// was empty.
    fn put(&self, contents: &mut C) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.contents.append(contents);
        // The size is approximate, because it only decides whether publishers wait.
        self.bytes
            .store(waiting.contents.bytes(), Ordering::Relaxed);
        // Release: a thread that sees the flag sees the contents.
        !self.has_contents.swap(true, Ordering::Release)
    }

    /// Passes everything to `read`, if there is anything.
    #[inline]
    fn take(&self, read: impl FnOnce(&C)) {
        // Acquire pairs with the Release in `put`. Nearly always the queue is empty. In this case a load
        // leaves the cache line with the producers, but a swap would take it away from them.
        if !self.has_contents.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.waiting.lock();
        // Relaxed, because the lock orders this store with every `put`.
        self.has_contents.store(false, Ordering::Relaxed);
        let spare = std::mem::take(&mut waiting.spare);
        let mut contents = std::mem::replace(&mut waiting.contents, spare);
        self.bytes.store(0, Ordering::Relaxed);
        drop(waiting);
        read(&contents);
        // The buffer is reused.
        contents.clear();
        self.waiting.lock().spare = contents;
    }

    fn is_empty(&self) -> bool {
        // Relaxed: the value is a hint, and no other memory access depends on it.
        !self.has_contents.load(Ordering::Relaxed)
    }

    /// Returns the approximate size of the contents in bytes.
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Models for loom. [`crate::sync`] describes how to run them.
#[cfg(all(test, fanline_loom))]
mod loom_models {
    use loom::sync::{Arc, Notify};
    use loom::thread;

    use super::*;

    impl Contents for Vec<u32> {
        fn append(&mut self, other: &mut Self) {
            if self.is_empty() {
                return std::mem::swap(self, other);
            }
            Vec::append(self, other);
        }

        fn bytes(&self) -> usize {
            self.len()
        }

        fn clear(&mut self) {
            Vec::clear(self);
        }
    }

    fn take_all(queue: &Queue<Vec<u32>>, into: &mut Vec<u32>) {
        queue.take(|contents| into.extend_from_slice(contents));
    }

    #[test]
    fn loom_nothing_is_lost_or_reordered() {
        loom::model(|| {
            let queue = Arc::new(Queue::<Vec<u32>>::default());
            let poster = thread::spawn({
                let queue = Arc::clone(&queue);
                move || {
                    queue.put(&mut vec![1, 2]);
                    queue.put(&mut vec![3]);
                }
            });
            let mut got = Vec::new();
            take_all(&queue, &mut got);
            take_all(&queue, &mut got);
            poster.join().expect("the poster does not panic");
            // This read happens after the producer has finished, so it finds the rest.
            take_all(&queue, &mut got);
            assert_eq!(got, [1, 2, 3]);
        });
    }

    #[test]
    fn loom_two_posters_keep_their_own_order() {
        loom::model(|| {
            let queue = Arc::new(Queue::<Vec<u32>>::default());
            let poster = thread::spawn({
                let queue = Arc::clone(&queue);
                move || {
                    queue.put(&mut vec![1]);
                    queue.put(&mut vec![2]);
                }
            });
            let other = thread::spawn({
                let queue = Arc::clone(&queue);
                move || {
                    queue.put(&mut vec![9]);
                }
            });
            let mut got = Vec::new();
            take_all(&queue, &mut got);
            poster.join().expect("the poster does not panic");
            other.join().expect("the poster does not panic");
            take_all(&queue, &mut got);
            assert_eq!(got.len(), 3);
            got.retain(|word| *word != 9);
            assert_eq!(got, [1, 2]);
        });
    }

    /// A lost wake-up leaves the consumer asleep forever, which loom reports as a deadlock.
    #[test]
    fn loom_a_reader_that_sleeps_is_woken_for_each_mail() {
        loom::model(|| {
            let queue = Arc::new(Queue::<Vec<u32>>::default());
            // Like tokio's `Notify`, loom's stores one permit for a later wait.
            let bell = Arc::new(Notify::new());
            let poster = thread::spawn({
                let (queue, bell) = (Arc::clone(&queue), Arc::clone(&bell));
                move || {
                    for word in 1..=3 {
                        if queue.put(&mut vec![word]) {
                            bell.notify();
                        }
                    }
                }
            });
            let mut got = Vec::new();
            // Connections also read without a wake-up.
            take_all(&queue, &mut got);
            while got.len() < 3 {
                bell.wait();
                take_all(&queue, &mut got);
            }
            poster.join().expect("the poster does not panic");
            assert_eq!(got, [1, 2, 3]);
        });
    }
}
