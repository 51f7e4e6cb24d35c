//! An unbounded queue with one sender and one receiver, in chunks.
//!
//! The sender writes a value into a slot that the receiver does not look at yet, and then says how far
//! it has written; the receiver reads up to there. Neither waits for the other. What each side works
//! on stands apart from the other's, and the count is the only word that both touch.
#![expect(
    unsafe_code,
    reason = "slots are written on one thread and emptied on another without a lock: a lock for each \
              value costs more than all the rest"
)]

use std::sync::{Arc, OnceLock};

use crate::sync::{AtomicU64, Ordering, SharedCell};

/// A pair of ends of a new queue.
pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let chunk = Chunk::new();
    let written = Arc::new(Written(AtomicU64::new(0)));
    let sender = Sender {
        chunk: Arc::clone(&chunk),
        at: 0,
        count: 0,
        written: Arc::clone(&written),
    };
    let receiver = Receiver {
        chunk,
        at: 0,
        read: 0,
        readable: 0,
        written,
    };
    (sender, receiver)
}

/// Puts values in.
pub(super) struct Sender<T> {
    chunk: Arc<Chunk<T>>,
    /// The slot that is written next.
    at: usize,
    count: u64,
    written: Arc<Written>,
}

/// Takes values out.
pub(super) struct Receiver<T> {
    chunk: Arc<Chunk<T>>,
    /// The slot that is read next.
    at: usize,
    read: u64,
    /// How far may be read without asking.
    readable: u64,
    written: Arc<Written>,
}

/// How many values were ever written, on a cache line of its own.
#[repr(align(128))]
pub(super) struct Written(AtomicU64);

struct Chunk<T> {
    slots: Box<[SharedCell<Option<T>>]>,
    next: OnceLock<Arc<Chunk<T>>>,
}

// SAFETY: a slot is touched by the sender until the count says that it is written, and by the receiver
// after that; values go from the one to the other, which `Send` allows.
unsafe impl<T: Send> Send for Chunk<T> {}
// SAFETY: as above; sharing a chunk gives access to values only in turn.
unsafe impl<T: Send> Sync for Chunk<T> {}

impl<T> Chunk<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: (0..slots::<T>()).map(|_| SharedCell::new(None)).collect(),
            next: OnceLock::new(),
        })
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        // One after the other: a long queue must not take a deep stack.
        let mut next = self.next.take();
        while let Some(chunk) = next {
            next = Arc::into_inner(chunk).and_then(|mut chunk| chunk.next.take());
        }
    }
}

/// Values in a chunk: so many that changing chunks does not count, and not more than a few pages.
const fn slots<T>() -> usize {
    if cfg!(all(test, fanline_loom)) {
        return 2;
    }
    let fit = (16 * 1024) / size_of::<SharedCell<Option<T>>>();
    if fit > 512 {
        512
    } else if fit < 8 {
        8
    } else {
        fit
    }
}

impl<T> Sender<T> {
    /// Writes a value, which the receiver does not see before [`publish`](Sender::publish).
    #[inline]
    pub(super) fn write(&mut self, value: T) {
        if self.at == self.chunk.slots.len() {
            self.next_chunk();
        }
        let slot = self.chunk.slots[self.at].get();
        // SAFETY: this slot is beyond what was ever published, so the receiver does not touch it, and
        // there is one sender. It holds `None`: nothing is lost by writing over it.
        unsafe { slot.write(Some(value)) };
        self.at += 1;
        self.count += 1;
    }

    /// Lets the receiver see what was written.
    #[inline]
    pub(super) fn publish(&self) {
        // Release: after the slots, and the chunks that hold them.
        self.written.0.store(self.count, Ordering::Release);
    }

    #[cold]
    fn next_chunk(&mut self) {
        let next = Chunk::new();
        // Only the one sender sets it, once for each chunk.
        let _ = self.chunk.next.set(Arc::clone(&next));
        self.chunk = next;
        self.at = 0;
    }
}

impl<T> Receiver<T> {
    /// How many values were published and not read.
    pub(super) fn available(&mut self) -> usize {
        if self.read == self.readable {
            self.readable = self.written.count();
        }
        usize::try_from(self.readable - self.read).unwrap_or(usize::MAX)
    }

    /// The next value that was published, among those that [`available`](Receiver::available) counted.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.readable {
            return None;
        }
        if self.at == self.chunk.slots.len() {
            // The chunk was linked before the value in it was published.
            self.chunk = Arc::clone(self.chunk.next.get()?);
            self.at = 0;
        }
        let slot = self.chunk.slots[self.at].get();
        self.at += 1;
        self.read += 1;
        // SAFETY: the slot was published, so the sender does not touch it any more, and there is one
        // receiver.
        unsafe { (*slot).take() }
    }

    /// How many values were read so far.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    pub(super) fn written(&self) -> Arc<Written> {
        Arc::clone(&self.written)
    }
}

impl Written {
    pub(super) fn count(&self) -> u64 {
        // Acquire: before the slots are read.
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The naive twin is a `VecDeque` from which the receiver sees what was published.
        #[test]
        fn is_a_queue(steps in prop::collection::vec(0_u8..8, 0..3000)) {
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
    fn a_long_queue_is_dropped_without_a_deep_stack() {
        let (mut sender, receiver) = channel();
        for n in 0..2_000_000_u64 {
            sender.write(n);
        }
        drop(receiver);
        drop(sender);
    }
}
