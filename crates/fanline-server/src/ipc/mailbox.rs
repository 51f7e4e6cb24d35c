//! How shards hand batches to each other: one lock and at most one wake-up a batch, and no copy of a batch that finds
//! the mailbox empty.

use fanline_engine::Batch;
use tokio::sync::Notify;

use crate::sync::{AtomicBool, AtomicUsize, Lock, Ordering};

/// A shard whose mailbox holds more than this is given time by those who post to it.
pub(crate) const FULL_BYTES: usize = 8 * 1024 * 1024;

/// What other shards have for one.
#[derive(Default)]
pub(crate) struct Mailbox {
    queue: Queue<Batch>,
    arrived: Notify,
    /// A subscriber there is behind: those who post are to take their time.
    congested: AtomicBool,
}

impl Mailbox {
    /// Puts a batch in and empties it.
    pub(crate) fn post(&self, batch: &mut Batch) {
        if self.queue.put(batch) {
            self.arrived.notify_one();
        }
    }

    /// The same for whoever takes it out at once, so that nobody has to be woken.
    pub(crate) fn post_unheard(&self, batch: &mut Batch) {
        self.queue.put(batch);
    }

    /// Whether nothing waits; something may come at any time.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Wakes whoever waits for mail, or keeps whoever is about to from it once.
    pub(crate) fn ring(&self) {
        self.arrived.notify_one();
    }

    /// Takes everything out, if there is anything.
    #[inline]
    pub(crate) fn take(&self, read: impl FnOnce(&Batch)) {
        self.queue.take(read);
    }

    /// Whether those who post should wait a little.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.bytes() > FULL_BYTES
    }

    /// Whether a subscriber there is behind.
    pub(crate) fn is_congested(&self) -> bool {
        // A hint that orders nothing.
        self.congested.load(Ordering::Relaxed)
    }

    pub(crate) fn set_congested(&self, congested: bool) {
        // A load first: the line is read by all who post.
        if self.is_congested() != congested {
            self.congested.store(congested, Ordering::Relaxed);
        }
    }

    /// Waits for mail.
    pub(crate) async fn wait(&self) {
        self.arrived.notified().await;
    }
}

/// What a [`Queue`] holds. A trait because loom's models count words instead of bytes.
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

/// A mailbox without its bell: many put in, one takes out.
#[derive(Default)]
struct Queue<C> {
    waiting: Lock<Waiting<C>>,
    /// Whether something waits. Written only under the lock, so that it is never clear while there
    /// is mail; read without it, and who finds it clear has missed nothing that was put in before
    /// it looked.
    has_mail: AtomicBool,
    bytes: AtomicUsize,
}

/// What waits, and the room of what was read before. The reader has a third room in its hands, so that whoever posts
/// gets one in exchange at any time.
#[derive(Default)]
struct Waiting<C> {
    contents: C,
    spare: C,
}

impl<C: Contents> Queue<C> {
    /// Puts something in and empties it. Returns whether the reader has to be woken: it has not
    /// been since it last took anything.
    fn put(&self, contents: &mut C) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.contents.append(contents);
        // Only an estimate for holding publishers back.
        self.bytes
            .store(waiting.contents.bytes(), Ordering::Relaxed);
        // Release: whoever sees the flag has seen what the poster did before.
        !self.has_mail.swap(true, Ordering::Release)
    }

    /// Takes everything out, if there is anything.
    #[inline]
    fn take(&self, read: impl FnOnce(&C)) {
        // Acquire pairs with the Release in `put`. A plain load first: nearly always there is
        // nothing, and a swap would take the cache line from the other shards each time.
        if !self.has_mail.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.waiting.lock();
        // Relaxed, because the lock orders it with every `put`.
        self.has_mail.store(false, Ordering::Relaxed);
        let spare = std::mem::take(&mut waiting.spare);
        let mut contents = std::mem::replace(&mut waiting.contents, spare);
        self.bytes.store(0, Ordering::Relaxed);
        drop(waiting);
        read(&contents);
        // The room goes back to be used again.
        contents.clear();
        self.waiting.lock().spare = contents;
    }

    fn is_empty(&self) -> bool {
        // A hint that orders nothing.
        !self.has_mail.load(Ordering::Relaxed)
    }

    /// About how much waits.
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// How to run these is said in [`crate::sync`].
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
            // A look after the poster has finished finds whatever is left.
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

    /// A wake-up that is lost leaves the reader asleep for good, which loom reports as a deadlock.
    #[test]
    fn loom_a_reader_that_sleeps_is_woken_for_each_mail() {
        loom::model(|| {
            let queue = Arc::new(Queue::<Vec<u32>>::default());
            // Like tokio's, it keeps one permit for a reader that comes later.
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
            // As connections do: a look in passing, without having been woken.
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
