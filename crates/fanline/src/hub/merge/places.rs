//! The total: places that all producers share, and the line of those who wait for one.
//!
//! A place that becomes free goes to whoever stands first, and to nobody else; only when nobody stands
//! in line may it be taken in passing. Freeing and standing in line are store-then-load on both sides
//! (hazard 3): `free`, fence, `is_awaited`; and `is_awaited`, fence, `free`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::lane::Lane;
use crate::hub::bell::fence_after_exchange;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, fence, lock};

pub(super) struct Places {
    free: AtomicUsize,
    /// Somebody stands in line.
    is_awaited: AtomicBool,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// First come, first; those whose ticket is not their lane's any more have gone.
    lanes: VecDeque<(u64, Arc<Lane>)>,
    gone: usize,
    last_ticket: u64,
}

impl Places {
    pub(super) fn new(total: usize) -> Self {
        Self {
            free: AtomicUsize::new(total),
            is_awaited: AtomicBool::new(false),
            line: Mutex::new(Line::default()),
        }
    }

    /// Takes a place, if there is one and nobody has come before, or one that the lane was granted.
    #[inline]
    pub(super) fn take(&self, lane: &Lane) -> bool {
        // Relaxed: who stands in line just now may be passed by.
        lane.take_grant() || (!self.is_awaited.load(Ordering::Relaxed) && self.take_free())
    }

    /// As [`take`](Self::take), and stands in line if there is none. The lane's bell for places is rung when it
    /// has one, so the caller sleeps already.
    pub(super) fn take_or_stand(&self, lane: &Arc<Lane>) -> bool {
        if self.take(lane) {
            return true;
        }
        let mut line = lock(&self.line);
        line.skip_gone();
        if lane.ticket() == 0 {
            // It may have been granted one since, in this lock.
            if lane.take_grant() {
                return true;
            }
            line.stand(lane);
        }
        // Relaxed: the fence orders it before the look at what is free.
        self.is_awaited.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Relaxed: what was freed before the fence; what is freed after it finds this lane in line.
        let is_missed = self.free.load(Ordering::Relaxed) > 0;
        drop(line);
        if is_missed {
            self.grant();
        }
        lane.take_grant()
    }

    /// Gives a place back, and makes a full fence. If places [are awaited](Self::are_awaited) then, the
    /// caller [grants](Self::grant) it.
    #[inline]
    pub(super) fn release(&self) {
        // Release: whoever takes it comes after.
        self.free.fetch_add(1, Ordering::AcqRel);
        fence_after_exchange();
    }

    #[inline]
    pub(super) fn are_awaited(&self) -> bool {
        // Relaxed: the fence of `release` orders it.
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// A producer does not use the place that it has.
    pub(super) fn give_back(&self) {
        self.release();
        if self.are_awaited() {
            self.grant();
        }
    }

    /// The lane does not want a place any more, nor one that it was granted.
    pub(super) fn withdraw(&self, lane: &Lane) {
        let mut line = lock(&self.line);
        if lane.ticket() != 0 {
            lane.set_ticket(0);
            line.gone += 1;
            line.tidy();
            self.note_empty(&mut line);
        }
        drop(line);
        if lane.take_grant() {
            self.give_back();
        }
    }

    /// Gives what is free to those who stand in line. A waker that panics is passed on after all of them.
    #[cold]
    pub(super) fn grant(&self) {
        let mut panicked = None;
        let mut goes_on = true;
        while goes_on {
            let next;
            (next, goes_on) = self.grant_one();
            if let Some(lane) = next {
                // The lane's producer has lain down before it stood in line, under the lock: that is
                // the fence.
                let rung = catch_unwind(AssertUnwindSafe(|| lane.place().ring()));
                panicked = panicked.or_else(|| rung.err());
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Whom to wake, and whether there may be more.
    fn grant_one(&self) -> (Option<Arc<Lane>>, bool) {
        let mut line = lock(&self.line);
        line.skip_gone();
        if line.lanes.is_empty() || !self.take_free() {
            self.note_empty(&mut line);
            return (None, false);
        }
        let next = line.lanes.pop_front().map(|(_, lane)| lane);
        if let Some(lane) = &next {
            lane.set_ticket(0);
            lane.grant();
        }
        // Relaxed: as in `take_or_stand`, in the same lock.
        let goes_on = self.note_empty(&mut line) && self.free.load(Ordering::Relaxed) > 0;
        (next, goes_on)
    }

    /// Whether somebody stands in line still.
    fn note_empty(&self, line: &mut Line) -> bool {
        line.skip_gone();
        let is_awaited = !line.lanes.is_empty();
        // Relaxed: raised in the same lock.
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
        is_awaited
    }

    #[inline]
    fn take_free(&self) -> bool {
        // Acquire: after whoever gave it back.
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |free| {
                free.checked_sub(1)
            })
            .is_ok()
    }
}

impl Line {
    fn stand(&mut self, lane: &Arc<Lane>) {
        self.last_ticket += 1;
        lane.set_ticket(self.last_ticket);
        self.lanes.push_back((self.last_ticket, Arc::clone(lane)));
    }

    fn skip_gone(&mut self) {
        while let Some((ticket, lane)) = self.lanes.front()
            && lane.ticket() != *ticket
        {
            self.lanes.pop_front();
            self.gone -= 1;
        }
    }

    /// Those who have gone are never more than those who stand, but for a few: a change of mind costs
    /// the same however long the line is.
    fn tidy(&mut self) {
        if self.gone > 16 + self.lanes.len() / 2 {
            self.lanes.retain(|(ticket, lane)| lane.ticket() == *ticket);
            self.gone = 0;
        }
    }
}
