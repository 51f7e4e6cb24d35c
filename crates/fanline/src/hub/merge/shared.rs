//! The state that the ends of a merge hub share: the list, the permits, and the set of producers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::lane::Lane;
use super::list::{Found, Head, List, Spare};
use super::options::Rules;
use super::permits::Permits;
use crate::hub::broadcast::Switch;
use crate::hub::timer::Timer;
use crate::hub::waker_slot::{WakerSlot, both, fence_after_exchange, wake_all};
use crate::hub::{Ended, HubClosed};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence, lock, thread};

pub(super) struct Shared<T, E> {
    per_producer: u64,
    timer: Timer,
    list: List<T>,
    /// Wakes the consumer when there are elements.
    consumer: WakerSlot,
    /// Whether the hub has failed. Then no element is received any more, and queued elements are dropped.
    has_failed: AtomicBool,
    /// The permits, if the options set a total.
    permits: Option<Permits>,
    core: Mutex<Core<T, E>>,
}

/// The set of producers and the end of the hub. Sending and receiving do not use it.
struct Core<T, E> {
    /// All lanes that were ever created.
    lanes: Vec<Arc<Lane>>,
    /// The lanes of producers that have left. Lanes without queued elements come first, and new producers
    /// reuse them. The others follow in the order in which their producers left.
    free: VecDeque<SenderState<T>>,
    producers: usize,
    handles: usize,
    is_draining: bool,
    end: Option<Ended<E>>,
    last_failure: Option<Arc<E>>,
}

/// The private state of a producer.
pub(super) struct SenderState<T> {
    lane: Arc<Lane>,
    spare: Spare<T>,
    sent: u64,
    /// Number of the producer's elements that were taken, as far as the producer knows.
    taken: u64,
    /// Whether the producer has room for its next element, and a permit if the options set a total.
    has_permit: bool,
    /// Whether the producer may be in the wait queue.
    may_be_queued: bool,
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(rules: &Rules) -> (Self, Head<T>) {
        let (list, head) = List::new();
        let shared = Self {
            per_producer: rules.per_producer as u64,
            timer: rules.timer.clone(),
            list,
            consumer: WakerSlot::new(),
            has_failed: AtomicBool::new(false),
            permits: rules.total.map(Permits::new),
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

    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    fn lock(&self) -> MutexGuard<'_, Core<T, E>> {
        lock(&self.core)
    }

    // ---- Producers.

    /// Returns the state for a new producer, or `None` if the hub accepts no new producer.
    pub(super) fn join(&self) -> Option<SenderState<T>> {
        let mut core = self.lock();
        if core.end.is_some() || core.is_draining {
            return None;
        }
        core.producers += 1;
        // If elements of a lane are still queued, part of the lane's room is in use, so a new producer cannot
        // have the lane.
        let is_free = |state: &SenderState<T>| state.lane.taken() == state.sent;
        if core.free.front().is_some_and(is_free) {
            return core.free.pop_front();
        }
        let lane = Arc::new(Lane::new());
        core.lanes.push(Arc::clone(&lane));
        Some(SenderState {
            lane,
            spare: Spare::new(),
            sent: 0,
            taken: 0,
            has_permit: false,
            may_be_queued: false,
        })
    }

    /// Acquires room and a permit for the next element. The producer holds them until it uses or releases
    /// them. Without a waker, the producer neither waits nor joins the wait queue.
    pub(super) fn poll_permit(
        &self,
        state: &mut SenderState<T>,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), HubClosed>> {
        if self.is_closed() {
            return Poll::Ready(Err(HubClosed));
        }
        state.has_permit = state.has_permit
            || self.wait_for_room(state, waker) && self.wait_for_permit(state, waker);
        if state.has_permit {
            Poll::Ready(Ok(()))
        } else if waker.is_some() && self.is_closed() {
            // The hub may have been closed after the first check.
            Poll::Ready(Err(HubClosed))
        } else {
            Poll::Pending
        }
    }

    /// Returns whether there is room for the producer's next element. If not, registers the waker.
    #[inline]
    fn wait_for_room(&self, state: &mut SenderState<T>, waker: Option<&Waker>) -> bool {
        if self.has_room(state) {
            return true;
        }
        // The consumer may be asleep, because elements were fed and not flushed. The producer waits until the
        // consumer takes them, so flush them.
        self.flush();
        let Some(waker) = waker else { return false };
        state.lane.room().register(waker);
        let has_room = self.has_room(state);
        if has_room {
            state.lane.room().clear();
        }
        has_room
    }

    #[inline]
    fn has_room(&self, state: &mut SenderState<T>) -> bool {
        if state.sent - state.taken >= self.per_producer {
            state.taken = state.lane.taken();
        }
        state.sent - state.taken < self.per_producer
    }

    /// Returns whether the producer has a permit. If not, queues the producer and registers the waker. Always
    /// returns `true` if the options set no total.
    #[inline]
    fn wait_for_permit(&self, state: &mut SenderState<T>, waker: Option<&Waker>) -> bool {
        let Some(permits) = &self.permits else {
            return true;
        };
        if permits.take(&state.lane) {
            return true;
        }
        self.flush();
        let Some(waker) = waker else { return false };
        state.lane.permit().register(waker);
        state.may_be_queued = true;
        let has_permit = permits.take_or_queue(&state.lane);
        if has_permit {
            state.lane.permit().clear();
        }
        has_permit
    }

    /// Appends an element, and uses the permit. The next `flush` wakes the consumer.
    #[inline]
    pub(super) fn append(&self, state: &mut SenderState<T>, value: T) -> Result<(), T> {
        debug_assert!(state.has_permit);
        let number = state.sent + 1;
        self.list
            .append(&mut state.spare, &state.lane, number, value)?;
        state.has_permit = false;
        state.sent = number;
        state.lane.set_sent(number);
        Ok(())
    }

    /// Wakes the consumer, if it sleeps. The exchange in the last `append` and `fence_after_exchange`
    /// together are the full fence that `wake` requires.
    #[inline]
    pub(super) fn flush(&self) {
        fence_after_exchange();
        self.consumer.wake();
    }

    /// Stops waiting, and releases an unused permit.
    pub(super) fn give_back(&self, state: &mut SenderState<T>) {
        state.lane.room().clear();
        state.lane.permit().clear();
        if let Some(permits) = &self.permits {
            if std::mem::take(&mut state.may_be_queued) {
                permits.withdraw(&state.lane);
            }
            if state.has_permit {
                state.has_permit = false;
                permits.give_back();
            }
        }
        state.has_permit = false;
    }

    /// Returns ready if the hub has ended. Otherwise registers the waker, to be woken when the hub ends.
    pub(super) fn poll_closed(&self, state: &SenderState<T>, waker: &Waker) -> Poll<()> {
        state.lane.end().register(waker);
        if self.is_closed() {
            state.lane.end().clear();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Removes a producer. Its elements stay queued.
    pub(super) fn leave(&self, mut state: SenderState<T>, failure: Option<E>) {
        let failure = failure.map(Arc::new);
        self.give_back(&mut state);
        state.lane.end().clear();
        let mut core = self.lock();
        core.producers -= 1;
        if state.lane.taken() == state.sent {
            core.free.push_front(state);
        } else {
            core.free.push_back(state);
        }
        let before = match failure {
            Some(failure) => core.last_failure.replace(failure),
            None => None,
        };
        self.finish_if_over(core);
        drop(before);
        fence(Ordering::SeqCst);
        self.consumer.wake();
    }

    // ---- The consumer.

    /// Polls for the next element, or the end of the hub.
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
        self.consumer.register(waker);
        match self.try_next(head) {
            None => Poll::Pending,
            Some(outcome) => {
                self.consumer.clear();
                Poll::Ready(outcome)
            }
        }
    }

    #[inline]
    fn try_next(&self, head: &mut Head<T>) -> Option<Result<T, Ended<E>>> {
        // Acquire: sees the end of the hub, which was stored before the flag.
        if self.has_failed.load(Ordering::Acquire) {
            return Some(Err(self.failed(head)));
        }
        loop {
            return match self.list.take(head) {
                Found::Value(value, lane) => {
                    self.count_taken(lane);
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
    fn count_taken(&self, lane: &Lane) {
        lane.add_taken();
        match &self.permits {
            None => fence(Ordering::SeqCst),
            Some(permits) => {
                // `release` also executes the fence that `wake` requires.
                permits.release();
                if permits.has_waiters() {
                    return grant_and_wake(permits, lane);
                }
            }
        }
        lane.room().wake();
    }

    /// Drops the remaining elements after the hub has failed, and returns the error as the end of the hub.
    #[cold]
    fn failed(&self, head: &mut Head<T>) -> Ended<E> {
        self.drop_rest(head);
        let end = self.lock().end.clone();
        end.unwrap_or(Ended::Completed)
    }

    fn drop_rest(&self, head: &mut Head<T>) {
        // Collects the elements first, so that all of them are dropped even if one drop panics.
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

    /// Closes the hub because the receiver is dropped, and drops the queued elements.
    pub(super) fn drop_receiver(&self, head: &mut Head<T>) {
        self.end(Ended::Completed);
        self.consumer.clear();
        self.drop_rest(head);
    }

    // ---- The end, and queries.

    /// Ends the hub. Returns whether this call ended it: `false` if the hub had ended before.
    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let core = self.lock();
        if core.end.is_some() {
            return false;
        }
        self.finish(core, end);
        true
    }

    /// Ends the hub if there are no producers and no new ones can join.
    fn finish_if_over(&self, core: MutexGuard<'_, Core<T, E>>) {
        let none_can_come = core.is_draining || core.handles == 0;
        if core.producers == 0 && none_can_come && core.end.is_none() {
            self.finish(core, Ended::Completed);
        }
    }

    fn finish(&self, mut core: MutexGuard<'_, Core<T, E>>, end: Ended<E>) {
        // Release (in the store below): a consumer that sees the flag then takes the lock and sees the stored
        // end.
        let has_failed = end.error().is_some();
        core.end = Some(end);
        self.has_failed.store(has_failed, Ordering::Release);
        self.list.close();
        let lanes = core.lanes.clone();
        drop(core);
        fence(Ordering::SeqCst);
        let producers = lanes.iter().flat_map(|lane| lane.waker_slots());
        wake_all(std::iter::once(&self.consumer).chain(producers));
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

/// Grants permits to queued producers and wakes the producer of the taken element, even if a waker panics.
#[cold]
fn grant_and_wake(permits: &Permits, lane: &Lane) {
    both(|| permits.grant(), || lane.room().wake());
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

    /// Producers that come and go reuse one lane, even while elements of another producer that left are still
    /// queued.
    #[test]
    fn idle_producers_reuse_one_lane() {
        let rules = Rules {
            per_producer: 16,
            total: None,
            timer: Timer::default(),
        };
        let (shared, _head) = Shared::<u64, BoxError>::new(&rules);
        let mut state = shared.join().unwrap();
        assert!(shared.poll_permit(&mut state, None).is_ready());
        shared.append(&mut state, 1).unwrap();
        shared.leave(state, None);
        for _ in 0..100 {
            let state = shared.join().unwrap();
            shared.leave(state, None);
        }
        assert_eq!(shared.lock().lanes.len(), 2);
    }
}
