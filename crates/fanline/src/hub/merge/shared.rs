//! What the ends of a merge hub share: the list, the places, and who is there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::MergeOptions;
use super::lane::Lane;
use super::list::{Found, Head, List, Spare};
use super::places::Places;
use crate::hub::bell::{Bell, both, fence_after_exchange, ring_all};
use crate::hub::broadcast::Switch;
use crate::hub::{Closed, Ended};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence, lock, thread};

pub(super) struct Shared<T, E> {
    per_producer: u64,
    list: List<T>,
    /// The consumer sleeps for want of elements.
    consumer: Bell,
    /// Nothing is received any more; what there is is dropped.
    has_failed: AtomicBool,
    /// Where there is a total.
    places: Option<Places>,
    core: Mutex<Core<T, E>>,
}

/// Who is there; nothing of it is touched for an element.
struct Core<T, E> {
    /// All that there ever were.
    lanes: Vec<Arc<Lane>>,
    /// Lanes whose producers have left: those without elements first, which the next to come take over,
    /// and then the longest ago first.
    free: VecDeque<Desk<T>>,
    producers: usize,
    handles: usize,
    is_draining: bool,
    end: Option<Ended<E>>,
    last_failure: Option<Arc<E>>,
}

/// What a producer has to itself.
pub(super) struct Desk<T> {
    lane: Arc<Lane>,
    spare: Spare<T>,
    sent: u64,
    /// How many of its elements were taken, as far as is known.
    taken: u64,
    /// There is room for its next element, and a place in the total.
    has_place: bool,
    /// It may stand in line.
    may_stand: bool,
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(options: &MergeOptions) -> (Self, Head<T>) {
        let (list, head) = List::new();
        let shared = Self {
            per_producer: options.per_producer as u64,
            list,
            consumer: Bell::new(),
            has_failed: AtomicBool::new(false),
            places: options.total.map(Places::new),
            core: Mutex::new(Core {
                lanes: Vec::new(),
                free: VecDeque::new(),
                producers: 0,
                handles: 1,
                is_draining: false,
                end: None,
                last_failure: None,
            }),
        };
        (shared, head)
    }

    fn lock(&self) -> MutexGuard<'_, Core<T, E>> {
        lock(&self.core)
    }

    // ---- Producers.

    /// A desk for a new producer, unless none is taken.
    pub(super) fn join(&self) -> Option<Desk<T>> {
        let mut core = self.lock();
        if core.end.is_some() || core.is_draining {
            return None;
        }
        core.producers += 1;
        // One that still has elements in the list has not all of its room.
        let is_free = |desk: &Desk<T>| desk.lane.taken() == desk.sent;
        if core.free.front().is_some_and(is_free) {
            return core.free.pop_front();
        }
        let lane = Arc::new(Lane::new());
        core.lanes.push(Arc::clone(&lane));
        Some(Desk {
            lane,
            spare: Spare::new(),
            sent: 0,
            taken: 0,
            has_place: false,
            may_stand: false,
        })
    }

    /// A place for the next element, which is then the producer's until it is used or given back.
    /// Without a waker nobody waits, or stands in line.
    pub(super) fn poll_place(
        &self,
        desk: &mut Desk<T>,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), Closed>> {
        if self.is_closed() {
            return Poll::Ready(Err(Closed));
        }
        desk.has_place =
            desk.has_place || self.wait_for_room(desk, waker) && self.wait_for_place(desk, waker);
        if desk.has_place {
            Poll::Ready(Ok(()))
        } else if waker.is_some() && self.is_closed() {
            // It has slept since the look above.
            Poll::Ready(Err(Closed))
        } else {
            Poll::Pending
        }
    }

    /// Whether there is room for its next element; if not, its bell is rung when one is taken.
    #[inline]
    fn wait_for_room(&self, desk: &mut Desk<T>, waker: Option<&Waker>) -> bool {
        if self.has_room(desk) {
            return true;
        }
        // What was fed and not flushed is what it waits for.
        self.flush();
        let Some(waker) = waker else { return false };
        desk.lane.room().lie_down(waker);
        let has_room = self.has_room(desk);
        if has_room {
            desk.lane.room().rise();
        }
        has_room
    }

    #[inline]
    fn has_room(&self, desk: &mut Desk<T>) -> bool {
        if desk.sent - desk.taken >= self.per_producer {
            desk.taken = desk.lane.taken();
        }
        desk.sent - desk.taken < self.per_producer
    }

    /// Whether it has a place in the total; if not, its bell is rung when it has.
    #[inline]
    fn wait_for_place(&self, desk: &mut Desk<T>, waker: Option<&Waker>) -> bool {
        let Some(places) = &self.places else {
            return true;
        };
        if places.take(&desk.lane) {
            return true;
        }
        self.flush();
        let Some(waker) = waker else { return false };
        desk.lane.place().lie_down(waker);
        desk.may_stand = true;
        let has_place = places.take_or_stand(&desk.lane);
        if has_place {
            desk.lane.place().rise();
        }
        has_place
    }

    /// Uses the place. The consumer is woken by the next `flush`.
    #[inline]
    pub(super) fn append(&self, desk: &mut Desk<T>, value: T) -> Result<(), T> {
        debug_assert!(desk.has_place);
        let number = desk.sent + 1;
        self.list
            .append(&mut desk.spare, &desk.lane, number, value)?;
        desk.has_place = false;
        desk.sent = number;
        desk.lane.set_sent(number);
        Ok(())
    }

    /// Wakes the consumer, if it sleeps. After an `append`, whose exchange is half of the fence.
    #[inline]
    pub(super) fn flush(&self) {
        fence_after_exchange();
        self.consumer.ring();
    }

    /// The producer does not wait any more, and does not use a place that it has.
    pub(super) fn give_back(&self, desk: &mut Desk<T>) {
        desk.lane.room().rise();
        desk.lane.place().rise();
        if let Some(places) = &self.places {
            if std::mem::take(&mut desk.may_stand) {
                places.withdraw(&desk.lane);
            }
            if desk.has_place {
                desk.has_place = false;
                places.give_back();
            }
        }
        desk.has_place = false;
    }

    /// Whether the hub has ended; if not, the waker is woken when it does.
    pub(super) fn poll_closed(&self, desk: &Desk<T>, waker: &Waker) -> Poll<()> {
        desk.lane.end().lie_down(waker);
        if self.is_closed() {
            desk.lane.end().rise();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// The producer leaves; its elements stay.
    pub(super) fn leave(&self, mut desk: Desk<T>, failure: Option<E>) {
        let failure = failure.map(Arc::new);
        self.give_back(&mut desk);
        desk.lane.end().rise();
        let mut core = self.lock();
        core.producers -= 1;
        if desk.lane.taken() == desk.sent {
            core.free.push_front(desk);
        } else {
            core.free.push_back(desk);
        }
        let before = match failure {
            Some(failure) => core.last_failure.replace(failure),
            None => None,
        };
        self.finish_if_over(core);
        drop(before);
        fence(Ordering::SeqCst);
        self.consumer.ring();
    }

    // ---- The consumer.

    /// The next element, or the end.
    pub(super) fn poll_next(
        &self,
        head: &mut Head<T>,
        waker: Option<&Waker>,
    ) -> Poll<Result<T, Ended<E>>> {
        if let Some(outcome) = self.try_next(head) {
            return Poll::Ready(outcome);
        }
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        self.consumer.lie_down(waker);
        match self.try_next(head) {
            None => Poll::Pending,
            Some(outcome) => {
                self.consumer.rise();
                Poll::Ready(outcome)
            }
        }
    }

    #[inline]
    fn try_next(&self, head: &mut Head<T>) -> Option<Result<T, Ended<E>>> {
        // Acquire: the end that was stored before.
        if self.has_failed.load(Ordering::Acquire) {
            return Some(Err(self.failed(head)));
        }
        loop {
            return match self.list.take(head) {
                Found::Value(value, lane) => {
                    self.took(lane);
                    Some(Ok(value))
                }
                Found::Nothing => None,
                Found::End => Some(Err(self.lock().end.clone().unwrap_or(Ended::Completed))),
                Found::Unlinked => {
                    thread::yield_now();
                    continue;
                }
            };
        }
    }

    #[inline]
    fn took(&self, lane: &Lane) {
        lane.add_taken();
        match &self.places {
            None => fence(Ordering::SeqCst),
            Some(places) => {
                // Its exchange is the fence.
                places.release();
                if places.are_awaited() {
                    return grant_and_ring(places, lane);
                }
            }
        }
        lane.room().ring();
    }

    /// What nobody receives is dropped.
    #[cold]
    fn failed(&self, head: &mut Head<T>) -> Ended<E> {
        self.drop_rest(head);
        let end = self.lock().end.clone();
        end.unwrap_or(Ended::Completed)
    }

    fn drop_rest(&self, head: &mut Head<T>) {
        // All of them, though the drop of one may panic.
        let mut rest = Vec::new();
        loop {
            match self.list.take(head) {
                Found::Value(value, lane) => {
                    lane.add_taken();
                    rest.push(value);
                }
                Found::Unlinked => thread::yield_now(),
                Found::Nothing | Found::End => return,
            }
        }
    }

    /// The consumer is gone: nothing is taken any more, and what there is is dropped.
    pub(super) fn desert(&self, head: &mut Head<T>) {
        self.end(Ended::Completed);
        self.consumer.rise();
        self.drop_rest(head);
    }

    // ---- The end, and questions.

    /// Whether this was the first end.
    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let core = self.lock();
        if core.end.is_some() {
            return false;
        }
        self.finish(core, end);
        true
    }

    /// Ends if no element can come any more.
    fn finish_if_over(&self, core: MutexGuard<'_, Core<T, E>>) {
        let none_can_come = core.is_draining || core.handles == 0;
        if core.producers == 0 && none_can_come && core.end.is_none() {
            self.finish(core, Ended::Completed);
        }
    }

    fn finish(&self, mut core: MutexGuard<'_, Core<T, E>>, end: Ended<E>) {
        // Release: the consumer sees the end that is stored, since it takes the lock for it.
        let has_failed = end.error().is_some();
        core.end = Some(end);
        self.has_failed.store(has_failed, Ordering::Release);
        self.list.close();
        let lanes = core.lanes.clone();
        drop(core);
        fence(Ordering::SeqCst);
        let producers = lanes.iter().flat_map(|lane| lane.bells());
        ring_all(std::iter::once(&self.consumer).chain(producers));
    }

    pub(super) fn drain(&self) {
        let mut core = self.lock();
        core.is_draining = true;
        self.finish_if_over(core);
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut core = self.lock();
        core.handles -= 1;
        self.finish_if_over(core);
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.list.is_closed()
    }

    pub(super) fn producers(&self) -> usize {
        self.lock().producers
    }

    pub(super) fn len(&self) -> usize {
        let queued: u64 = self.lock().lanes.iter().map(|lane| lane.queued()).sum();
        usize::try_from(queued).unwrap_or(usize::MAX)
    }

    pub(super) fn last_failure(&self) -> Option<Arc<E>> {
        self.lock().last_failure.clone()
    }
}

/// The one that stands first, and the producer of the element, though a waker may panic.
#[cold]
fn grant_and_ring(places: &Places, lane: &Lane) {
    both(|| places.grant(), || lane.room().ring());
}

impl<T: Send, E: Send + Sync> Switch<E> for Shared<T, E> {
    fn end(&self, end: Ended<E>) -> bool {
        Self::end(self, end)
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

#[cfg(test)]
#[cfg(not(fanline_loom))]
mod tests {
    use super::*;
    use crate::hub::BoxError;

    /// However many come and go, while one that has left is not received to the end.
    #[test]
    fn producers_that_send_nothing_leave_nothing() {
        let (shared, _head) = Shared::<u64, BoxError>::new(&MergeOptions::default());
        let mut desk = shared.join().unwrap();
        assert!(shared.poll_place(&mut desk, None).is_ready());
        shared.append(&mut desk, 1).unwrap();
        shared.leave(desk, None);
        for _ in 0..100 {
            let desk = shared.join().unwrap();
            shared.leave(desk, None);
        }
        assert_eq!(shared.lock().lanes.len(), 2);
    }
}
