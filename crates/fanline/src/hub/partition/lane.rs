//! The shared state of one consumer and the routing thread.

use crate::hub::waker_slot::WakerSlot;
use crate::sync::{AtomicU64, Ordering};

/// The counters and the waker of one consumer (its *lane*).
pub(super) struct Lane {
    pub(super) id: i64,
    consumer_side: ConsumerSide,
    router_side: RouterSide,
}

/// Words with a cache line of their own: the consumer writes to them for each element.
#[repr(align(64))]
struct ConsumerSide {
    taken: AtomicU64,
}

/// Words with a cache line of their own: the routing thread writes to them for each element.
#[repr(align(64))]
struct RouterSide {
    sent: AtomicU64,
    /// Wakes the consumer when there are elements.
    waker_slot: WakerSlot,
}

impl Lane {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            consumer_side: ConsumerSide {
                taken: AtomicU64::new(0),
            },
            router_side: RouterSide {
                sent: AtomicU64::new(0),
                waker_slot: WakerSlot::new(),
            },
        }
    }

    #[inline]
    pub(super) fn waker_slot(&self) -> &WakerSlot {
        &self.router_side.waker_slot
    }

    /// Returns the number of elements that the consumer has taken.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        // Relaxed: the count is only a bound. The queue itself orders accesses to its slots.
        self.consumer_side.taken.load(Ordering::Relaxed)
    }

    /// Counts one more taken element. Only the consumer calls this.
    #[inline]
    pub(super) fn add_taken(&self) {
        // Relaxed: no other thread writes the count.
        let taken = self.consumer_side.taken.load(Ordering::Relaxed) + 1;
        self.consumer_side.taken.store(taken, Ordering::Relaxed);
    }

    /// Stores the number of elements sent to the consumer. Only the routing thread calls this.
    #[inline]
    pub(super) fn set_sent(&self, sent: u64) {
        // Relaxed: only for length queries.
        self.router_side.sent.store(sent, Ordering::Relaxed);
    }

    /// Returns the number of queued elements, which may have changed when the caller uses it.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        let taken = self.taken();
        let sent = self.router_side.sent.load(Ordering::Relaxed);
        usize::try_from(sent.saturating_sub(taken)).unwrap_or(usize::MAX)
    }
}
