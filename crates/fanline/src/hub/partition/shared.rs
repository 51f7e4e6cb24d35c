//! The state that the ends of a partition hub share: the router behind its combiner, recorded changes, and
//! counters.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::combiner::{Access, Combiner};
use super::consumers::Consumers;
use super::lane::Lane;
use super::options::{Partitioner, Rules};
use super::router::{Routed, Router};
use crate::hand_over::chunks;
use crate::hub::broadcast::Switch;
use crate::hub::timer::Timer;
use crate::hub::waker_slot::{WakerSlot, both, fence_after_exchange, wake_all};
use crate::hub::{Ended, HubClosed};
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock};

pub(super) struct Shared<T, E> {
    capacity: u64,
    timer: Timer,
    /// Largest number of elements in one queue.
    queue_max: usize,
    combiner: Combiner<Router<T>>,
    changes: Changes<T>,
    removed: Removed,
    flags: Flags,
    sent: Sent,
    core: Mutex<Core<E>>,
}

/// Changes that the thread with access to the router has to apply, in order.
struct Changes<T> {
    /// Whether there are changes; readable without the lock.
    any: AtomicBool,
    list: Mutex<Vec<Change<T>>>,
}

enum Change<T> {
    Value(T),
    Joined(Arc<Lane>, chunks::Sender<T>),
    /// A consumer has left. Contains its id and the receiving end of its queue.
    Left(i64, chunks::Receiver<T>),
    /// The last handle that could create consumers was dropped.
    NoMoreConsumers,
}

/// Words with a cache line of their own, because consumers write to them for each element.
#[repr(align(64))]
struct Removed {
    /// Number of elements that have left the hub.
    count: AtomicU64,
    /// Wakes the producer when there is room.
    producer: WakerSlot,
}

/// Words with a cache line of their own, because they are read for each element and rarely written.
#[repr(align(64))]
struct Flags {
    /// Whether the hub accepts no more elements. Written under the lock of the changes.
    is_closed: AtomicBool,
    /// Whether the hub has failed. Then no element is received any more, and queued elements are dropped.
    has_failed: AtomicBool,
    /// Whether no more elements will be routed: the hub is closed, and every element is in a consumer's
    /// queue. Cleared under the lock of the changes, with the changes.
    is_over: AtomicBool,
    /// Whether an element waits for room in a consumer's queue.
    is_stuck: AtomicBool,
    /// Wakes the producer when the hub ends, while the producer waits for the stream that is attached to it.
    end: WakerSlot,
}

/// Number of elements accepted from the producer. It has a cache line of its own, because the producer writes
/// it for each element.
#[repr(align(64))]
struct Sent(AtomicU64);

struct Core<E> {
    /// Lanes of the consumers, in the order of subscription.
    lanes: Vec<Arc<Lane>>,
    last_id: i64,
    /// Number of handles that can create consumers.
    handles: usize,
    receivers: usize,
    end: Option<Ended<E>>,
}

/// The private state of the producer.
#[derive(Default)]
pub(super) struct SenderState {
    sent: u64,
    /// Number of elements that have left the hub, as far as the producer knows.
    removed: u64,
}

/// The private state of a consumer.
pub(super) struct ReceiverState<T> {
    lane: Arc<Lane>,
    /// `None` after the consumer has left.
    queue: Option<chunks::Receiver<T>>,
}

impl<T> ReceiverState<T> {
    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(rules: Rules, partitioner: Partitioner<T>) -> Self {
        Self {
            capacity: rules.capacity as u64,
            timer: rules.timer.clone(),
            queue_max: rules
                .per_consumer
                .map_or(rules.capacity, |most| most.min(rules.capacity)),
            combiner: Combiner::new(Router::new(rules, partitioner)),
            changes: Changes {
                any: AtomicBool::new(false),
                list: Mutex::new(Vec::new()),
            },
            removed: Removed {
                count: AtomicU64::new(0),
                producer: WakerSlot::new(),
            },
            flags: Flags {
                is_closed: AtomicBool::new(false),
                has_failed: AtomicBool::new(false),
                is_over: AtomicBool::new(false),
                is_stuck: AtomicBool::new(false),
                end: WakerSlot::new(),
            },
            sent: Sent(AtomicU64::new(0)),
            core: Mutex::new(Core {
                lanes: Vec::new(),
                last_id: -1,
                handles: 1,
                receivers: 0,
                end: None,
            }),
        }
    }

    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    fn lock(&self) -> MutexGuard<'_, Core<E>> {
        lock(&self.core)
    }

    // ---- The producer.

    /// Returns ready if there is room for an element, or if the hub is closed. If there is no room, registers
    /// `waker`, if there is one.
    #[inline]
    pub(super) fn poll_room(
        &self,
        state: &mut SenderState,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), HubClosed>> {
        if self.is_closed() {
            return Poll::Ready(Err(HubClosed));
        }
        if self.has_room(state) {
            return Poll::Ready(Ok(()));
        }
        self.poll_more_room(state, waker)
    }

    #[cold]
    fn poll_more_room(
        &self,
        state: &mut SenderState,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), HubClosed>> {
        // Consumers may be asleep, because elements were fed and not flushed. The producer waits until the
        // consumers take them, so flush them.
        self.flush();
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        self.removed.producer.register(waker);
        if !self.is_closed() && !self.has_room(state) {
            return Poll::Pending;
        }
        self.removed.producer.clear();
        self.poll_room(state, None)
    }

    #[inline]
    fn has_room(&self, state: &mut SenderState) -> bool {
        if state.sent - state.removed >= self.capacity {
            // Acquire: pairs with the release that counts removed elements, so the use of these elements is
            // complete. The elements themselves do not need it, because the queues pass them from thread to
            // thread.
            state.removed = self.removed.count.load(Ordering::Acquire);
        }
        state.sent - state.removed < self.capacity
    }

    /// Accepts an element. The caller has checked that there is room. If `flushes` is set, the element's
    /// consumer is woken now, otherwise by the next `flush`.
    #[inline]
    pub(super) fn push(&self, state: &mut SenderState, value: T, flushes: bool) -> Result<(), T> {
        debug_assert!(state.sent - state.removed < self.capacity);
        let Some(mut access) = self.combiner.take() else {
            return self.push_as_change(state, value);
        };
        // Check while this thread has access: a thread that closes the hub sets the flag first, and then
        // requests access. So either this check sees the flag, or `release` sees the request.
        if self.is_closed() {
            self.work(access, None);
            return Err(value);
        }
        self.count_sent(state);
        // Relaxed: if this load misses a change that another thread records at this moment, that thread then
        // requests access, and `release` sees the request.
        if !access.is_clear() || self.changes.any.load(Ordering::Relaxed) {
            self.work(access, Some(value));
            return Ok(());
        }
        let lost = Lost(self);
        let routed = access.route(value);
        let _ = ManuallyDrop::new(lost);
        let dropped = match routed {
            Routed::Queued if flushes => {
                self.wake_consumers(access);
                return Ok(());
            }
            Routed::Queued => None,
            Routed::Dropped(value) => {
                self.count_removed(1);
                Some(value)
            }
            Routed::Stuck => {
                self.work(access, None);
                return Ok(());
            }
        };
        if let Some(access) = access.release() {
            self.work(access, None);
        }
        drop(dropped);
        Ok(())
    }

    #[cold]
    fn push_as_change(&self, state: &mut SenderState, value: T) -> Result<(), T> {
        let mut list = lock(&self.changes.list);
        // Relaxed: the flag is changed under this lock.
        if self.flags.is_closed.load(Ordering::Relaxed) {
            return Err(value);
        }
        self.count_sent(state);
        list.push(Change::Value(value));
        self.announce(list);
        self.route();
        Ok(())
    }

    #[inline]
    fn count_sent(&self, state: &mut SenderState) {
        state.sent += 1;
        // Relaxed: only for length queries.
        self.sent.0.store(state.sent, Ordering::Relaxed);
    }

    /// Wakes waiting consumers that have new elements.
    #[inline]
    pub(super) fn flush(&self) {
        if let Some(access) = self.combiner.take() {
            if access.has_unwoken() {
                self.wake_consumers(access);
            } else if let Some(access) = access.release() {
                self.work(access, None);
            }
        }
        // Otherwise the thread with access wakes the consumers.
    }

    #[inline]
    fn wake_consumers(&self, mut access: Access<'_, Router<T>>) {
        fence(Ordering::SeqCst);
        access.wake_unwoken();
        if let Some(access) = access.release() {
            self.work(access, None);
        }
    }

    /// Returns ready if the hub has ended. Otherwise registers the waker, to be woken when the hub ends.
    pub(super) fn poll_closed(&self, waker: &Waker) -> Poll<()> {
        self.flags.end.register(waker);
        if self.is_closed() {
            self.flags.end.clear();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Removes the producer's wakers.
    pub(super) fn stop_waiting(&self) {
        self.removed.producer.clear();
        self.flags.end.clear();
    }

    // ---- Routing.

    /// Applies recorded changes if this thread gets access. Otherwise the thread that has access applies
    /// them.
    pub(super) fn route(&self) {
        if let Some(access) = self.combiner.take_or_notify() {
            self.work(access, None);
        }
    }

    fn announce(&self, list: MutexGuard<'_, Vec<Change<T>>>) {
        // Relaxed: the lock and the combiner order the store.
        self.changes.any.store(true, Ordering::Relaxed);
        drop(list);
    }

    /// Applies all recorded changes, and then routes as many waiting elements as it can. `value`, if there is
    /// one, is routed last.
    #[cold]
    fn work(&self, access: Access<'_, Router<T>>, mut value: Option<T>) {
        // `lost` is dropped after the access is released, because dropping elements is user code, which may
        // panic.
        let mut lost = Vec::new();
        let mut counted = 0;
        let mut next = Some(access);
        while let Some(mut access) = next {
            self.apply_changes(&mut access, &mut lost);
            if let Some(value) = value.take() {
                access.push_pending(value);
            }
            // Relaxed: a thread that fails the hub sets the flag and then requests access. So if this load
            // misses the flag, `release` sees the request.
            if self.flags.has_failed.load(Ordering::Relaxed) {
                access.drain_all(&mut lost);
            }
            self.place_all(&mut access, &mut lost);
            if lost.len() > counted {
                self.count_removed((lost.len() - counted) as u64);
                counted = lost.len();
            }
            self.update_is_over(&access);
            fence(Ordering::SeqCst);
            access.wake_unwoken();
            next = access.release();
        }
    }

    fn place_all(&self, access: &mut Access<'_, Router<T>>, lost: &mut Vec<T>) {
        loop {
            while let Some(routed) = access.step(|| Lost(self)) {
                if let Routed::Dropped(value) = routed {
                    lost.push(value);
                }
            }
            let was_stuck = self.flags.is_stuck.load(Ordering::Relaxed);
            if was_stuck == access.is_stuck() {
                return;
            }
            // Relaxed: the fence orders the store before the next check for room.
            self.flags
                .is_stuck
                .store(access.is_stuck(), Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    fn apply_changes(&self, access: &mut Access<'_, Router<T>>, lost: &mut Vec<T>) {
        // Relaxed: if a change's access was requested before this access, the combiner orders the change
        // before this load. `release` sees later requests.
        if !self.changes.any.load(Ordering::Relaxed) {
            return;
        }
        let changes = {
            let mut list = lock(&self.changes.list);
            self.changes.any.store(false, Ordering::Relaxed);
            // Relaxed: the lock orders both for a consumer that leaves at the end. The changes may route
            // elements to it.
            if self.flags.is_over.load(Ordering::Relaxed) {
                self.flags.is_over.store(false, Ordering::Relaxed);
            }
            std::mem::take(&mut *list)
        };
        for change in changes {
            match change {
                Change::Value(value) => access.push_pending(value),
                Change::Joined(lane, sender) => access.add(lane, sender),
                Change::Left(id, queue) => access.remove(id, queue, lost),
                Change::NoMoreConsumers => access.start(),
            }
        }
    }

    /// Sets `is_over` and wakes all consumers, if no element will follow. The next change clears it again,
    /// because a consumer that leaves may have elements for the others.
    fn update_is_over(&self, access: &Access<'_, Router<T>>) {
        let is_over =
            self.is_closed() && access.is_empty() && !self.changes.any.load(Ordering::Relaxed);
        // Relaxed: only a thread with access changes the flag.
        if !is_over || self.flags.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Release: a consumer that sees the flag also sees all elements in its queue.
        self.flags.is_over.store(true, Ordering::Release);
        let lanes = self.lock().lanes.clone();
        fence(Ordering::SeqCst);
        wake_all(lanes.iter().map(|lane| lane.waker_slot()));
    }

    /// Counts elements that have left the hub, and wakes the producer.
    #[inline]
    fn count_removed(&self, count: u64) {
        // Release: a thread that sees the new count knows that the use of the elements is complete.
        self.removed.count.fetch_add(count, Ordering::AcqRel);
        fence_after_exchange();
        self.removed.producer.wake();
    }

    // ---- Consumers.

    /// Adds a consumer. The caller then calls [`route`](Self::route) to apply the change.
    pub(super) fn join(&self) -> ReceiverState<T> {
        let (sender, receiver) = chunks::channel_for(self.queue_max);
        let mut core = self.lock();
        core.last_id += 1;
        core.receivers += 1;
        let lane = Arc::new(Lane::new(core.last_id));
        core.lanes.push(Arc::clone(&lane));
        // Recorded under the hub's lock, so that the changes have the order of the ids.
        let mut list = lock(&self.changes.list);
        list.push(Change::Joined(Arc::clone(&lane), sender));
        self.announce(list);
        drop(core);
        ReceiverState {
            lane,
            queue: Some(receiver),
        }
    }

    /// Polls for the next element, or the end of the hub.
    pub(super) fn poll_next(
        &self,
        state: &mut ReceiverState<T>,
        waker: Option<&Waker>,
    ) -> Poll<Result<T, Ended<E>>> {
        if let Some(outcome) = self.try_next(state) {
            return Poll::Ready(outcome);
        }
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        state.lane.waker_slot().register(waker);
        match self.try_next(state) {
            None => Poll::Pending,
            Some(outcome) => {
                state.lane.waker_slot().clear();
                Poll::Ready(outcome)
            }
        }
    }

    #[inline]
    fn try_next(&self, state: &mut ReceiverState<T>) -> Option<Result<T, Ended<E>>> {
        // Acquire: sees the end of the hub, which was stored before the flag.
        if self.flags.has_failed.load(Ordering::Acquire) {
            return Some(Err(self.leave_after_failure(state)));
        }
        // Acquire, and loaded before the queue is read: if the flag is set, this consumer sees all its
        // elements in the queue.
        let is_over = self.flags.is_over.load(Ordering::Acquire);
        let Some(queue) = &mut state.queue else {
            return Some(Err(self.ended()));
        };
        if queue.available() > 0
            && let Some(value) = queue.pop()
        {
            state.lane.add_taken();
            self.count_removed(1);
            // Relaxed: the fence in `count_removed` orders the load.
            if self.flags.is_stuck.load(Ordering::Relaxed) {
                self.route();
            }
            return Some(Ok(value));
        }
        if is_over {
            self.leave_at_end(state)
        } else {
            None
        }
    }

    /// Leaves and returns the end of the hub, unless elements may still arrive here: the queue got elements, or
    /// another consumer has left and its elements are not routed yet. The thread that routes them wakes this
    /// consumer, with elements or because the hub is over again.
    #[cold]
    fn leave_at_end(&self, state: &mut ReceiverState<T>) -> Option<Result<T, Ended<E>>> {
        let core = self.lock();
        let list = lock(&self.changes.list);
        // Under the lock: while there are no changes and the hub is over, no element is routed. Consumers that
        // leave later route their elements without this one. Acquire: as in `try_next`.
        if !list.is_empty() || !self.flags.is_over.load(Ordering::Acquire) {
            return None;
        }
        if state.queue.as_mut().is_some_and(|it| it.available() > 0) {
            drop(list);
            drop(core);
            return self.try_next(state);
        }
        self.leave(state, core, list);
        Some(Err(self.ended()))
    }

    #[cold]
    fn leave_after_failure(&self, state: &mut ReceiverState<T>) -> Ended<E> {
        self.leave(state, self.lock(), lock(&self.changes.list));
        self.ended()
    }

    fn ended(&self) -> Ended<E> {
        let end = self.lock().end.clone();
        end.unwrap_or(Ended::Completed)
    }

    /// Removes a consumer from routing. Its receiver may still exist.
    fn leave(
        &self,
        state: &mut ReceiverState<T>,
        mut core: MutexGuard<'_, Core<E>>,
        mut list: MutexGuard<'_, Vec<Change<T>>>,
    ) {
        let Some(queue) = state.queue.take() else {
            return;
        };
        let index = core
            .lanes
            .binary_search_by_key(&state.lane.id, |lane| lane.id);
        if let Ok(index) = index {
            core.lanes.remove(index);
        }
        list.push(Change::Left(state.lane.id, queue));
        self.announce(list);
        drop(core);
        state.lane.waker_slot().clear();
        // A panic of the partitioner loses one element. The others are still routed, because consumers wait
        // until they are.
        if let Err(panic) = self.try_route() {
            while self.try_route().is_err() {}
            resume_unwind(panic);
        }
    }

    fn try_route(&self) -> std::thread::Result<()> {
        catch_unwind(AssertUnwindSafe(|| self.route()))
    }

    pub(super) fn drop_receiver(&self, state: &mut ReceiverState<T>) {
        // The partitioner may panic. Then resume the panic, unless this thread is already panicking.
        let left = catch_unwind(AssertUnwindSafe(|| {
            self.leave(state, self.lock(), lock(&self.changes.list));
        }));
        let mut core = self.lock();
        core.receivers -= 1;
        self.close_if_unused(core);
        if let Err(panic) = left
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }

    // ---- The end, and queries.

    /// Ends the hub. Returns whether this call ended it.
    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let mut core = self.lock();
        if core.end.is_some() {
            return false;
        }
        let has_failed = end.error().is_some();
        core.end = Some(end);
        self.close(core, has_failed);
        true
    }

    fn close(&self, core: MutexGuard<'_, Core<E>>, drops: bool) {
        let list = lock(&self.changes.list);
        // Release: a thread that sees the flags also sees the stored end of the hub.
        self.flags.has_failed.store(drops, Ordering::Release);
        self.flags.is_closed.store(true, Ordering::Release);
        drop(list);
        let lanes = core.lanes.clone();
        drop(core);
        fence(Ordering::SeqCst);
        let consumers = lanes.iter().map(|lane| lane.waker_slot());
        let producer = [&self.removed.producer, &self.flags.end];
        let notify = || {
            if drops {
                wake_all(consumers.chain(producer));
            } else {
                // Consumers are woken when every element is in a queue.
                wake_all(producer.into_iter());
            }
        };
        both(notify, || self.route());
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut core = self.lock();
        core.handles -= 1;
        if core.handles == 0 {
            let mut list = lock(&self.changes.list);
            list.push(Change::NoMoreConsumers);
            self.announce(list);
        }
        self.close_if_unused(core);
        self.route();
    }

    /// Closes the hub and drops its elements, if the hub has no consumer and can get none.
    fn close_if_unused(&self, mut core: MutexGuard<'_, Core<E>>) {
        if core.handles == 0 && core.receivers == 0 {
            core.end.get_or_insert(Ended::Completed);
            self.close(core, true);
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: sees what the closing thread did before.
        self.flags.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> usize {
        // `removed` is loaded before `sent`, so that the difference is not negative.
        let removed = self.removed.count.load(Ordering::Acquire);
        let sent = self.sent.0.load(Ordering::Relaxed);
        usize::try_from(sent.saturating_sub(removed)).unwrap_or(usize::MAX)
    }

    pub(super) fn receivers(&self) -> usize {
        self.lock().lanes.len()
    }

    pub(super) fn consumers(&self) -> Consumers {
        let lanes = self.lock().lanes.clone();
        let mut consumers = Consumers::default();
        for (slot, lane) in lanes.into_iter().enumerate() {
            consumers.add(lane, slot);
        }
        consumers
    }
}

/// A drop guard that counts an element as removed if the partitioner panics, because the element is lost
/// then.
struct Lost<'a, T, E>(&'a Shared<T, E>);

impl<T, E> Drop for Lost<'_, T, E> {
    fn drop(&mut self) {
        self.0.count_removed(1);
    }
}

impl<T: Send, E: Send + Sync> Switch<E> for Shared<T, E> {
    fn end(&self, end: Ended<E>) -> bool {
        Self::end(self, end)
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}
