//! What a consumer and those who route share of one consumer.

use crate::hub::bell::Bell;
use crate::sync::{AtomicU64, Ordering};

/// One consumer.
pub(super) struct Lane {
    pub(super) id: i64,
    ours: Consumers,
    theirs: Routers,
}

/// On a cache line of its own: the consumer writes it for each element.
#[repr(align(64))]
struct Consumers {
    taken: AtomicU64,
}

/// On a cache line of its own: who routes writes it for each element.
#[repr(align(64))]
struct Routers {
    sent: AtomicU64,
    /// The consumer sleeps for want of elements.
    bell: Bell,
}

impl Lane {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            ours: Consumers {
                taken: AtomicU64::new(0),
            },
            theirs: Routers {
                sent: AtomicU64::new(0),
                bell: Bell::new(),
            },
        }
    }

    #[inline]
    pub(super) fn bell(&self) -> &Bell {
        &self.theirs.bell
    }

    /// How many elements the consumer has taken.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        // Relaxed: a bound; what it makes room for is handed back by the queue itself.
        self.ours.taken.load(Ordering::Relaxed)
    }

    /// One more was taken. Only for the consumer.
    #[inline]
    pub(super) fn add_taken(&self) {
        // Relaxed: nobody else writes it.
        let taken = self.ours.taken.load(Ordering::Relaxed) + 1;
        self.ours.taken.store(taken, Ordering::Relaxed);
    }

    /// So many were sent to it so far. Only for who routes.
    #[inline]
    pub(super) fn set_sent(&self, sent: u64) {
        // Relaxed: a number for those who ask.
        self.theirs.sent.store(sent, Ordering::Relaxed);
    }

    /// How many elements wait for it, as it was a moment ago.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        let taken = self.taken();
        let sent = self.theirs.sent.load(Ordering::Relaxed);
        usize::try_from(sent.saturating_sub(taken)).unwrap_or(usize::MAX)
    }
}
