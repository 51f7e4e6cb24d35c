//! The shared state of one producer and the consumer.

use crate::hub::waker_slot::WakerSlot;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The counters and wakers of one producer (its *lane*). A lane lives as long as the hub, and is reused by a
/// later producer.
pub(super) struct Lane {
    consumer_side: ConsumerSide,
    producer_side: ProducerSide,
}

/// Words with a cache line of their own: the consumer writes to them for each element.
#[repr(align(64))]
struct ConsumerSide {
    /// Number of elements of this producer that were taken; only the consumer changes it.
    taken: AtomicU64,
    /// Wakes the producer when there is room.
    room: WakerSlot,
}

/// Words with a cache line of their own: the producer writes to them for each element.
#[repr(align(64))]
struct ProducerSide {
    /// Number of elements that this producer has appended; used for length queries only.
    sent: AtomicU64,
    /// Wakes the producer when it is granted a permit.
    permit: WakerSlot,
    /// Wakes an attached stream, which may be pending while the hub ends.
    end: WakerSlot,
    /// The producer's ticket in the wait queue; 0 if it is not queued.
    ticket: AtomicU64,
    /// Whether the producer was granted a permit that it has not seen yet.
    granted: AtomicBool,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            consumer_side: ConsumerSide {
                taken: AtomicU64::new(0),
                room: WakerSlot::new(),
            },
            producer_side: ProducerSide {
                sent: AtomicU64::new(0),
                permit: WakerSlot::new(),
                end: WakerSlot::new(),
                ticket: AtomicU64::new(0),
                granted: AtomicBool::new(false),
            },
        }
    }

    /// Returns the slot that wakes the producer when there is room, or when the hub ends.
    pub(super) fn room(&self) -> &WakerSlot {
        &self.consumer_side.room
    }

    /// Returns the slot that wakes the producer when it is granted a permit, or when the hub ends.
    pub(super) fn permit(&self) -> &WakerSlot {
        &self.producer_side.permit
    }

    /// Returns all waker slots, which are woken when the hub ends.
    pub(super) fn waker_slots(&self) -> [&WakerSlot; 3] {
        [self.room(), self.permit(), self.end()]
    }

    /// Returns the slot that wakes the producer only when the hub ends.
    pub(super) fn end(&self) -> &WakerSlot {
        &self.producer_side.end
    }

    #[inline]
    pub(super) fn taken(&self) -> u64 {
        // Acquire: the consumer has finished with the nodes of the taken elements before the producer reuses
        // them.
        self.consumer_side.taken.load(Ordering::Acquire)
    }

    /// Counts one more taken element. Only the consumer calls this.
    #[inline]
    pub(super) fn add_taken(&self) {
        // Relaxed: no other thread writes the count.
        let taken = self.consumer_side.taken.load(Ordering::Relaxed) + 1;
        // Release: a thread that sees the new count also sees that the element was removed from its node.
        self.consumer_side.taken.store(taken, Ordering::Release);
    }

    /// Stores the number of appended elements. Only the producer calls this.
    #[inline]
    pub(super) fn set_sent(&self, sent: u64) {
        // Relaxed: only for length queries.
        self.producer_side.sent.store(sent, Ordering::Relaxed);
    }

    pub(super) fn queued(&self) -> u64 {
        // Because `taken` is loaded before `sent`, the result may be too large, but never too small. It is
        // not exact while other threads work.
        let taken = self.taken();
        let sent = self.producer_side.sent.load(Ordering::Relaxed);
        sent.saturating_sub(taken)
    }

    // The ticket is used only under the lock of the wait queue, which orders all accesses. So they are
    // relaxed.

    pub(super) fn ticket(&self) -> u64 {
        self.producer_side.ticket.load(Ordering::Relaxed)
    }

    pub(super) fn set_ticket(&self, ticket: u64) {
        self.producer_side.ticket.store(ticket, Ordering::Relaxed);
    }

    /// Grants a permit. Called under the lock of the wait queue.
    pub(super) fn grant(&self) {
        // Release: the producer comes after the thread that returned the permit.
        self.producer_side.granted.store(true, Ordering::Release);
    }

    /// Returns whether a permit was granted, which the caller then owns. Only the producer calls this.
    #[inline]
    pub(super) fn take_grant(&self) -> bool {
        // Acquire: see `grant`. The store below is relaxed, because no thread grants a second permit to a
        // lane before the first is taken.
        let granted = self.producer_side.granted.load(Ordering::Acquire);
        if granted {
            self.producer_side.granted.store(false, Ordering::Relaxed);
        }
        granted
    }
}
