//! The bound on the elements of all producers: permits that they share, and the queue of producers that wait
//! for a permit.
//!
//! A free permit goes to the first producer in the queue. Only while the queue is empty may a producer take
//! one directly. A thread that releases a permit writes `free`, executes a full fence, and reads
//! `has_waiters`. A producer that queues writes `has_waiters`, executes a full fence, and reads `free`. So at
//! least one of them sees the other's write.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::lane::Lane;
use crate::hub::waker_slot::fence_after_exchange;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, fence, lock};

pub(super) struct Permits {
    free: AtomicUsize,
    /// Whether a producer is queued.
    has_waiters: AtomicBool,
    queue: Mutex<WaitQueue>,
}

#[derive(Default)]
struct WaitQueue {
    /// The queued lanes and their tickets, in the order of the requests. An entry was withdrawn if its ticket
    /// is not the current ticket of its lane.
    lanes: VecDeque<(u64, Arc<Lane>)>,
    withdrawn: usize,
    last_ticket: u64,
}

impl Permits {
    pub(super) fn new(total: usize) -> Self {
        Self {
            free: AtomicUsize::new(total),
            has_waiters: AtomicBool::new(false),
            queue: Mutex::new(WaitQueue::default()),
        }
    }

    /// Takes a permit if one was granted to the lane, or if one is free and no producer is queued. Returns
    /// whether it took one.
    #[inline]
    pub(super) fn take(&self, lane: &Lane) -> bool {
        // Relaxed: the load may miss a producer that queues at this moment; that producer is then overtaken.
        lane.take_grant() || (!self.has_waiters.load(Ordering::Relaxed) && self.take_free())
    }

    /// Does the same as [`take`](Self::take), but queues the lane if no permit is free. When a permit is
    /// granted, the lane's permit slot is woken. So the caller registers its waker there before this call.
    pub(super) fn take_or_queue(&self, lane: &Arc<Lane>) -> bool {
        if self.take(lane) {
            return true;
        }
        let mut queue = lock(&self.queue);
        queue.skip_withdrawn();
        if lane.ticket() == 0 {
            // Another thread may have granted a permit in the meantime, under this lock.
            if lane.take_grant() {
                return true;
            }
            queue.push(lane);
        }
        // Relaxed: the fence orders the store before the check of `free`.
        self.has_waiters.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Relaxed: the load sees permits that were released before the fence. A thread that releases a permit
        // after the fence sees that a lane is queued.
        let is_missed = self.free.load(Ordering::Relaxed) > 0;
        drop(queue);
        if is_missed {
            self.grant();
        }
        lane.take_grant()
    }

    /// Releases a permit and executes a full fence. If there are [waiters](Self::has_waiters) after that, the
    /// caller must [grant](Self::grant) the permit.
    #[inline]
    pub(super) fn release(&self) {
        // Release: orders the thread that takes the permit after this one.
        self.free.fetch_add(1, Ordering::AcqRel);
        fence_after_exchange();
    }

    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        // Relaxed: the fence of `release` orders the load.
        self.has_waiters.load(Ordering::Relaxed)
    }

    /// Takes back a permit that a producer does not use.
    pub(super) fn give_back(&self) {
        self.release();
        if self.has_waiters() {
            self.grant();
        }
    }

    /// Withdraws the lane from the queue, and releases a permit that the lane was granted and has not used.
    pub(super) fn withdraw(&self, lane: &Lane) {
        let mut queue = lock(&self.queue);
        if lane.ticket() != 0 {
            lane.set_ticket(0);
            queue.withdrawn += 1;
            queue.compact();
            self.update_has_waiters(&mut queue);
        }
        drop(queue);
        if lane.take_grant() {
            self.give_back();
        }
    }

    /// Grants free permits to queued producers. If wakers panic, the first panic resumes after all wakers
    /// have run.
    #[cold]
    pub(super) fn grant(&self) {
        let mut panicked = None;
        let mut may_be_more = true;
        while may_be_more {
            let next;
            (next, may_be_more) = self.grant_one();
            if let Some(lane) = next {
                // The producer registered its waker before it queued under the lock. That lock serves as the
                // fence that `wake` requires.
                let woken = catch_unwind(AssertUnwindSafe(|| lane.permit().wake()));
                panicked = panicked.or_else(|| woken.err());
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Grants one permit. Returns the lane to wake, and whether another permit may be granted.
    fn grant_one(&self) -> (Option<Arc<Lane>>, bool) {
        let mut queue = lock(&self.queue);
        queue.skip_withdrawn();
        if queue.lanes.is_empty() || !self.take_free() {
            self.update_has_waiters(&mut queue);
            return (None, false);
        }
        let next = queue.lanes.pop_front().map(|(_, lane)| lane);
        if let Some(lane) = &next {
            lane.set_ticket(0);
            lane.grant();
        }
        // Relaxed: as in `take_or_queue`, under the same lock.
        let may_be_more =
            self.update_has_waiters(&mut queue) && self.free.load(Ordering::Relaxed) > 0;
        (next, may_be_more)
    }

    /// Stores in `has_waiters` whether a producer is queued, and returns it.
    fn update_has_waiters(&self, queue: &mut WaitQueue) -> bool {
        queue.skip_withdrawn();
        let has_waiters = !queue.lanes.is_empty();
        // Relaxed: set under the same lock.
        self.has_waiters.store(has_waiters, Ordering::Relaxed);
        has_waiters
    }

    #[inline]
    fn take_free(&self) -> bool {
        // Acquire: orders this thread after the one that released the permit.
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |free| {
                free.checked_sub(1)
            })
            .is_ok()
    }
}

impl WaitQueue {
    fn push(&mut self, lane: &Arc<Lane>) {
        self.last_ticket += 1;
        lane.set_ticket(self.last_ticket);
        self.lanes.push_back((self.last_ticket, Arc::clone(lane)));
    }

    fn skip_withdrawn(&mut self) {
        while let Some((ticket, lane)) = self.lanes.front()
            && lane.ticket() != *ticket
        {
            self.lanes.pop_front();
            self.withdrawn -= 1;
        }
    }

    /// Removes withdrawn entries if more than about half of the queue is withdrawn. So a withdrawal has
    /// constant amortized cost.
    fn compact(&mut self) {
        if self.withdrawn > 16 + self.lanes.len() / 2 {
            self.lanes.retain(|(ticket, lane)| lane.ticket() == *ticket);
            self.withdrawn = 0;
        }
    }
}
