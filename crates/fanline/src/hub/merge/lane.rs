//! What a producer and the consumer share of one producer.

use crate::hub::bell::Bell;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// One producer, and after it another. It lives as long as the hub.
pub(super) struct Lane {
    ours: Consumers,
    theirs: Producers,
}

/// On a cache line of its own: the consumer writes it for each element.
#[repr(align(64))]
struct Consumers {
    /// How many elements of the lane were taken; only the consumer changes it.
    taken: AtomicU64,
    /// The producer sleeps for want of room.
    room: Bell,
}

/// On a cache line of its own: the producer writes it for each element.
#[repr(align(64))]
struct Producers {
    /// How many elements of the lane were appended, for those who ask.
    sent: AtomicU64,
    /// The producer sleeps for want of a place in the total.
    place: Bell,
    /// A stream is attached, which may be silent while the hub ends.
    end: Bell,
    /// Its place in the line; 0 when it does not stand there.
    ticket: AtomicU64,
    /// It was given a place that it has not seen yet.
    granted: AtomicBool,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            ours: Consumers {
                taken: AtomicU64::new(0),
                room: Bell::new(),
            },
            theirs: Producers {
                sent: AtomicU64::new(0),
                place: Bell::new(),
                end: Bell::new(),
                ticket: AtomicU64::new(0),
                granted: AtomicBool::new(false),
            },
        }
    }

    /// Rung when there is room, or at the end.
    pub(super) fn room(&self) -> &Bell {
        &self.ours.room
    }

    /// Rung when it is granted a place, or at the end.
    pub(super) fn place(&self) -> &Bell {
        &self.theirs.place
    }

    /// All of them, for the end.
    pub(super) fn bells(&self) -> [&Bell; 3] {
        [self.room(), self.place(), self.end()]
    }

    /// Rung at the end only.
    pub(super) fn end(&self) -> &Bell {
        &self.theirs.end
    }

    #[inline]
    pub(super) fn taken(&self) -> u64 {
        // Acquire: nodes of elements that were taken are written again.
        self.ours.taken.load(Ordering::Acquire)
    }

    /// One more was taken. Only for the consumer.
    #[inline]
    pub(super) fn add_taken(&self) {
        // Relaxed: nobody else writes it.
        let taken = self.ours.taken.load(Ordering::Relaxed) + 1;
        // Release: after the node was emptied.
        self.ours.taken.store(taken, Ordering::Release);
    }

    /// So many were appended so far. Only for the producer.
    #[inline]
    pub(super) fn set_sent(&self, sent: u64) {
        // Relaxed: a number for those who ask.
        self.theirs.sent.store(sent, Ordering::Relaxed);
    }

    pub(super) fn queued(&self) -> u64 {
        // The order of these makes it too many rather than too few; neither is exact while others work.
        let taken = self.taken();
        let sent = self.theirs.sent.load(Ordering::Relaxed);
        sent.saturating_sub(taken)
    }

    // The ticket, under the lock of the line, which orders it; so relaxed.

    pub(super) fn ticket(&self) -> u64 {
        self.theirs.ticket.load(Ordering::Relaxed)
    }

    pub(super) fn set_ticket(&self, ticket: u64) {
        self.theirs.ticket.store(ticket, Ordering::Relaxed);
    }

    /// Gives it a place. Under the lock of the line.
    pub(super) fn grant(&self) {
        // Release: after whoever gave the place back.
        self.theirs.granted.store(true, Ordering::Release);
    }

    /// Whether it was granted a place, which is the caller's now. Only for the producer.
    #[inline]
    pub(super) fn take_grant(&self) -> bool {
        // Acquire: as above. Relaxed below: it is granted none as long as it has one.
        let granted = self.theirs.granted.load(Ordering::Acquire);
        if granted {
            self.theirs.granted.store(false, Ordering::Relaxed);
        }
        granted
    }
}
