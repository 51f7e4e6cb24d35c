//! An unbounded queue with one sender and one receiver, in chunks.
//!
//! The sender writes a value into a slot that the receiver does not read yet, and then publishes how many
//! values it has written. The receiver reads up to that count. Neither side waits for the other. The two
//! sides take a lock only when they move to another chunk. Chunks that were read are returned to the sender.
//! The two sides use separate cache lines; the count is the only word that both access for each value.
#![expect(
    unsafe_code,
    reason = "slots are written on one thread and emptied on another without a lock, because a lock for \
              each value would cost more than everything else"
)]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::sync::{AtomicU64, Mutex, Ordering, SharedCell, lock};

/// Returns the two ends of a new queue.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    channel_of(slots_max::<T>())
}

/// Returns a queue with chunks of at most `values` values, for a caller that never queues more values than
/// that.
pub(crate) fn channel_for<T>(values: usize) -> (Sender<T>, Receiver<T>) {
    channel_of(values.clamp(1, slots_max::<T>()))
}

fn channel_of<T>(slots: usize) -> (Sender<T>, Receiver<T>) {
    let chunk = Chunk::new(slots_min::<T>().min(slots));
    let written = Arc::new(Written(AtomicU64::new(0)));
    let channel = Arc::new(Channel {
        chain: Mutex::new(Chain {
            next: VecDeque::new(),
            spare: Vec::new(),
            unread: None,
        }),
        written: Arc::clone(&written),
        slots_max: slots,
    });
    let sender = Sender {
        cursor: Cursor::new(Arc::clone(&chunk)),
        written: Arc::clone(&written),
        channel: Arc::clone(&channel),
    };
    let receiver = Receiver {
        cursor: Cursor::new(chunk),
        readable: 0,
        written,
        channel,
    };
    (sender, receiver)
}

/// The sending end.
pub(crate) struct Sender<T> {
    cursor: Cursor<T>,
    written: Arc<Written>,
    channel: Arc<Channel<T>>,
}

/// The receiving end.
pub(crate) struct Receiver<T> {
    cursor: Cursor<T>,
    /// Number of values that the receiver may read before it must load the count of written values again.
    readable: u64,
    written: Arc<Written>,
    channel: Arc<Channel<T>>,
}

/// Number of all values written so far. It has a cache line of its own.
#[repr(align(128))]
pub(crate) struct Written(AtomicU64);

/// The position of an end: the next slot that it writes or reads.
struct Cursor<T> {
    chunk: Arc<Chunk<T>>,
    at: usize,
    /// Number of values in earlier chunks.
    before: u64,
}

/// The state that both ends share. It is dropped after both ends, and then drops the remaining values.
struct Channel<T> {
    chain: Mutex<Chain<T>>,
    written: Arc<Written>,
    /// Number of values in the largest chunks.
    slots_max: usize,
}

struct Chain<T> {
    /// Chunks in which the sender has begun to write, and the receiver has not begun to read.
    next: VecDeque<Arc<Chunk<T>>>,
    /// Chunks that were read.
    spare: Vec<Arc<Chunk<T>>>,
    /// The position of a receiver that was dropped; the values from there on were not read.
    unread: Option<Cursor<T>>,
}

struct Chunk<T> {
    /// The slots. Those between the receiver's and the sender's positions hold values.
    slots: Box<[SharedCell<MaybeUninit<T>>]>,
}

// SAFETY: before the count publishes a slot, only the sender accesses the slot; afterwards, only the receiver
// does. Values move between threads, which `Send` allows.
unsafe impl<T: Send> Send for Chunk<T> {}
// SAFETY: as above. The two sides share a chunk, but only one side at a time accesses a value in it.
unsafe impl<T: Send> Sync for Chunk<T> {}

impl<T> Chunk<T> {
    fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: (0..slots)
                .map(|_| SharedCell::new(MaybeUninit::uninit()))
                .collect(),
        })
    }
}

/// Largest number of read chunks that are stored for reuse.
const SPARE_MAX: usize = 4;

/// Number of values in the largest chunks. With this number, the cost of moving to another chunk is
/// negligible, and a chunk is at most a few pages of memory.
const fn slots_max<T>() -> usize {
    if cfg!(all(test, fanline_loom)) {
        return 2;
    }
    let size = if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    };
    let fit = (16 * 1024) / size;
    if fit > 1024 {
        1024
    } else if fit < 8 {
        8
    } else {
        fit
    }
}

/// Number of values in the first chunk, which is small because most queues stay short.
const fn slots_min<T>() -> usize {
    if slots_max::<T>() < 64 {
        slots_max::<T>()
    } else {
        64
    }
}

impl<T> Cursor<T> {
    fn new(chunk: Arc<Chunk<T>>) -> Self {
        Self {
            chunk,
            at: 0,
            before: 0,
        }
    }

    /// Returns the number of values before this position.
    #[inline]
    fn count(&self) -> u64 {
        self.before + self.at as u64
    }

    #[inline]
    fn chunk_is_over(&self) -> bool {
        self.at == self.chunk.slots.len()
    }

    /// Moves to the next chunk, and returns the previous one.
    fn advance(&mut self, next: Arc<Chunk<T>>) -> Arc<Chunk<T>> {
        self.before = self.count();
        self.at = 0;
        std::mem::replace(&mut self.chunk, next)
    }
}

impl<T> Sender<T> {
    /// Writes a value, which the receiver sees only after [`publish`](Sender::publish).
    #[inline]
    pub(crate) fn write(&mut self, value: T) {
        if self.cursor.chunk_is_over() {
            self.next_chunk();
        }
        self.write_here(value);
    }

    /// Returns whether the chunk has a slot for the next value.
    #[inline]
    pub(crate) fn has_slot(&self) -> bool {
        !self.cursor.chunk_is_over()
    }

    /// Does the same as [`write`](Sender::write) if [there is a slot](Sender::has_slot); panics otherwise.
    #[inline]
    pub(crate) fn write_here(&mut self, value: T) {
        let slot = self.cursor.chunk.slots[self.cursor.at].get();
        // SAFETY: this slot was not published, so the receiver does not touch it, and there is only one
        // sender. The slot holds no value, so overwriting it loses nothing.
        unsafe { slot.write(MaybeUninit::new(value)) };
        self.cursor.at += 1;
    }

    /// Publishes the written values to the receiver.
    #[inline]
    pub(crate) fn publish(&self) {
        // Release: the receiver then sees the values, and the chunks that contain them.
        self.written.0.store(self.cursor.count(), Ordering::Release);
    }

    /// Returns the number of values that were written so far.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.cursor.count()
    }

    #[cold]
    fn next_chunk(&mut self) {
        let slots = (self.cursor.chunk.slots.len() * 4).min(self.channel.slots_max);
        let spare = lock(&self.channel.chain).spare.pop();
        let next = spare.unwrap_or_else(|| Chunk::new(slots));
        // Link the chunk before a value in it is published.
        lock(&self.channel.chain).next.push_back(Arc::clone(&next));
        self.cursor.advance(next);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // A panic may have prevented a `publish`. Publish now, so that the values are dropped with the last
        // end.
        self.publish();
    }
}

impl<T> Receiver<T> {
    /// Returns the number of values that were published and not read.
    pub(crate) fn available(&mut self) -> usize {
        let read = self.read();
        if read == self.readable {
            self.readable = self.written.count();
        }
        usize::try_from(self.readable - read).unwrap_or(usize::MAX)
    }

    /// Returns the next published value, if it is among those that [`available`](Receiver::available)
    /// counted.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.read() == self.readable {
            return None;
        }
        if self.cursor.chunk_is_over() {
            self.next_chunk();
        }
        let slot = self.cursor.chunk.slots[self.cursor.at].get();
        self.cursor.at += 1;
        // SAFETY: the slot was published, so it holds a value. The sender does not touch the slot before the
        // chunk is returned to it. There is one receiver, which has moved past the slot.
        Some(unsafe { (*slot).assume_init_read() })
    }

    /// Returns the number of values that were read so far.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        self.cursor.count()
    }

    pub(crate) fn written(&self) -> Arc<Written> {
        Arc::clone(&self.written)
    }

    #[cold]
    fn next_chunk(&mut self) {
        let mut chain = lock(&self.channel.chain);
        let next = chain.next.pop_front();
        let next = next.expect("a chunk is linked before a value in it is published");
        let read = self.cursor.advance(next);
        if chain.spare.len() < SPARE_MAX && read.slots.len() == self.channel.slots_max {
            chain.spare.push(read);
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        while self.available() > 0 {
            drop(self.pop());
        }
        // The sender may still write values, so store where the unread values start.
        let unread = Cursor {
            chunk: Arc::clone(&self.cursor.chunk),
            ..self.cursor
        };
        lock(&self.channel.chain).unread = Some(unread);
    }
}

impl<T> Drop for Channel<T> {
    fn drop(&mut self) {
        let mut chain = lock(&self.chain);
        let unread = chain.unread.take();
        let mut next = std::mem::take(&mut chain.next);
        drop(chain);
        let Some(mut unread) = unread else { return };
        let written = self.written.count();
        while unread.count() < written {
            if unread.chunk_is_over() {
                let chunk = next.pop_front();
                unread.advance(chunk.expect("a chunk is linked before a value in it is published"));
            }
            let slot = unread.chunk.slots[unread.at].get();
            unread.at += 1;
            // SAFETY: both ends are gone, and the slot was published and not read.
            drop(unsafe { (*slot).assume_init_read() });
        }
    }
}

impl Written {
    pub(crate) fn count(&self) -> u64 {
        // Acquire: the caller then sees the values in the slots.
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Compares the queue with a model: a `VecDeque` that contains only the published values.
        #[test]
        fn behaves_like_a_vec_deque(
            steps in prop::collection::vec(0_u8..8, 0..if cfg!(miri) { 300 } else { 3000 }),
        ) {
            let (mut sender, mut receiver) = channel();
            let (mut written, mut published) = (VecDeque::new(), VecDeque::new());
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    0..4 => {
                        sender.write(Box::new(n));
                        written.push_back(n);
                    }
                    4 => {
                        sender.publish();
                        published.append(&mut written);
                    }
                    _ => {
                        prop_assert_eq!(receiver.available() > 0, !published.is_empty());
                        prop_assert_eq!(receiver.pop().map(|n| *n), published.pop_front());
                    }
                }
            }
        }
    }

    #[test]
    fn drop_of_long_queue_does_not_recurse() {
        let (mut sender, receiver) = channel();
        for n in 0..if cfg!(miri) { 1_000 } else { 2_000_000_u64 } {
            sender.write(n);
        }
        drop(receiver);
        drop(sender);
    }

    /// Every value is dropped exactly once, for different positions of the two ends and both orders in which
    /// the ends are dropped.
    #[test]
    fn remaining_values_are_dropped_once() {
        let (many, later) = if cfg!(miri) { (300, 200) } else { (5000, 3000) };
        for (written, read, late) in [(0, 0, 0), (3, 1, 2), (64, 64, 1), (many, 70, later)] {
            for sender_first in [true, false] {
                let value = Arc::new(());
                let (mut sender, mut receiver) = channel();
                (0..written).for_each(|_| sender.write(Arc::clone(&value)));
                sender.publish();
                for _ in 0..read {
                    assert!(receiver.available() > 0);
                    assert!(receiver.pop().is_some());
                }
                if sender_first {
                    drop(sender);
                    drop(receiver);
                } else {
                    drop(receiver);
                    assert_eq!(
                        Arc::strong_count(&value),
                        1,
                        "the receiver drops published values"
                    );
                    (0..late).for_each(|_| sender.write(Arc::clone(&value)));
                    drop(sender);
                }
                assert_eq!(Arc::strong_count(&value), 1);
            }
        }
    }
}
