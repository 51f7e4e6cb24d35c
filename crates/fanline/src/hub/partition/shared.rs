//! What the ends of a partition hub share: the turn to route, what is to be done in it, and the counts.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::consumers::Consumers;
use super::lane::Lane;
use super::options::{PartitionOptions, Partitioner};
use super::router::{Placed, Router};
use super::turn::{Turn, Turns};
use crate::hand_over::chunks;
use crate::hub::bell::{Bell, both, fence_after_exchange, ring_all};
use crate::hub::broadcast::Switch;
use crate::hub::{Closed, Ended};
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock};

pub(super) struct Shared<T, E> {
    capacity: u64,
    /// Values that one queue can come to hold.
    queue_max: usize,
    turns: Turns<Router<T>>,
    news: News<T>,
    gone: Gone,
    signs: Signs,
    sent: Sent,
    core: Mutex<Core<E>>,
}

/// What is to be done by whoever has the turn, in the order in which it came.
struct News<T> {
    /// A look without the lock.
    are_there: AtomicBool,
    list: Mutex<Vec<Change<T>>>,
}

enum Change<T> {
    Value(T),
    Joined(Arc<Lane>, chunks::Sender<T>),
    /// With the other end of its queue.
    Left(i64, chunks::Receiver<T>),
    /// The last handle from which consumers could come is gone.
    NobodyCanCome,
}

/// On a cache line of its own: consumers write it for each element.
#[repr(align(64))]
struct Gone {
    /// How many elements have left the hub.
    count: AtomicU64,
    /// The producer sleeps for want of room.
    producer: Bell,
}

/// On a cache line of its own: read for each element, and hardly ever written.
#[repr(align(64))]
struct Signs {
    /// Nothing is taken any more. Changed in the lock of the news.
    is_closed: AtomicBool,
    /// Nothing is received any more, and what there is is dropped.
    has_failed: AtomicBool,
    /// Nothing comes to anybody any more: closed, and everything has found its consumer.
    is_over: AtomicBool,
    /// An element waits for room with a consumer.
    is_stuck: AtomicBool,
    /// The producer is attached to something that may be silent while the hub ends.
    end: Bell,
}

/// How many elements were taken from the producer, who alone writes it, on a cache line of its own.
#[repr(align(64))]
struct Sent(AtomicU64);

struct Core<E> {
    /// In the order in which they came.
    lanes: Vec<Arc<Lane>>,
    last_id: i64,
    /// From which consumers can come.
    hubs: usize,
    receivers: usize,
    end: Option<Ended<E>>,
}

/// What the producer has to itself.
#[derive(Default)]
pub(super) struct Desk {
    sent: u64,
    /// How many elements have left, as far as is known.
    gone: u64,
}

/// What a consumer has to itself.
pub(super) struct Seat<T> {
    lane: Arc<Lane>,
    /// Nothing once it has left.
    queue: Option<chunks::Receiver<T>>,
}

impl<T> Seat<T> {
    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(options: PartitionOptions, partitioner: Partitioner<T>) -> Self {
        Self {
            capacity: options.capacity as u64,
            queue_max: options
                .per_consumer
                .map_or(options.capacity, |most| most.min(options.capacity)),
            turns: Turns::new(Router::new(options, partitioner)),
            news: News {
                are_there: AtomicBool::new(false),
                list: Mutex::new(Vec::new()),
            },
            gone: Gone {
                count: AtomicU64::new(0),
                producer: Bell::new(),
            },
            signs: Signs {
                is_closed: AtomicBool::new(false),
                has_failed: AtomicBool::new(false),
                is_over: AtomicBool::new(false),
                is_stuck: AtomicBool::new(false),
                end: Bell::new(),
            },
            sent: Sent(AtomicU64::new(0)),
            core: Mutex::new(Core {
                lanes: Vec::new(),
                last_id: -1,
                hubs: 1,
                receivers: 0,
                end: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core<E>> {
        lock(&self.core)
    }

    // ---- The producer.

    /// Room for one more element, or the end. Without a waker nobody waits.
    #[inline]
    pub(super) fn poll_room(
        &self,
        desk: &mut Desk,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), Closed>> {
        if self.is_closed() {
            return Poll::Ready(Err(Closed));
        }
        if self.has_room(desk) {
            return Poll::Ready(Ok(()));
        }
        self.poll_more_room(desk, waker)
    }

    #[cold]
    fn poll_more_room(&self, desk: &mut Desk, waker: Option<&Waker>) -> Poll<Result<(), Closed>> {
        // What was fed and not flushed is what it waits for.
        self.flush();
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        self.gone.producer.lie_down(waker);
        if !self.is_closed() && !self.has_room(desk) {
            return Poll::Pending;
        }
        self.gone.producer.rise();
        self.poll_room(desk, None)
    }

    #[inline]
    fn has_room(&self, desk: &mut Desk) -> bool {
        if desk.sent - desk.gone >= self.capacity {
            // Acquire: not needed for the elements, which their queues hand over.
            desk.gone = self.gone.count.load(Ordering::Acquire);
        }
        desk.sent - desk.gone < self.capacity
    }

    /// Takes an element, for which there is room. Its consumer is woken now or by the next `flush`.
    #[inline]
    pub(super) fn push(&self, desk: &mut Desk, value: T, flushes: bool) -> Result<(), T> {
        debug_assert!(desk.sent - desk.gone < self.capacity);
        let Some(mut turn) = self.turns.take() else {
            return self.push_as_news(desk, value);
        };
        // In the turn: whoever closes takes the turn after it has said so.
        if self.is_closed() {
            self.work(turn, None);
            return Err(value);
        }
        self.count_sent(desk);
        // Relaxed: who comes or goes just now asks for the turn, which is then found at its end.
        if !turn.is_clear() || self.news.are_there.load(Ordering::Relaxed) {
            self.work(turn, Some(value));
            return Ok(());
        }
        let lost = Lost(self);
        let placed = turn.place(value);
        let _ = ManuallyDrop::new(lost);
        let dropped = match placed {
            Placed::In if flushes => {
                self.wake(turn);
                return Ok(());
            }
            Placed::In => None,
            Placed::Dropped(value) => {
                self.count_gone(1);
                Some(value)
            }
            Placed::Stuck => {
                self.work(turn, None);
                return Ok(());
            }
        };
        if let Some(turn) = turn.end() {
            self.work(turn, None);
        }
        drop(dropped);
        Ok(())
    }

    #[cold]
    fn push_as_news(&self, desk: &mut Desk, value: T) -> Result<(), T> {
        let mut list = lock(&self.news.list);
        // Relaxed: changed in this lock.
        if self.signs.is_closed.load(Ordering::Relaxed) {
            return Err(value);
        }
        self.count_sent(desk);
        list.push(Change::Value(value));
        self.announce(list);
        self.route();
        Ok(())
    }

    #[inline]
    fn count_sent(&self, desk: &mut Desk) {
        desk.sent += 1;
        // Relaxed: a number for those who ask.
        self.sent.0.store(desk.sent, Ordering::Relaxed);
    }

    /// Wakes consumers who were sent something and sleep.
    #[inline]
    pub(super) fn flush(&self) {
        if let Some(turn) = self.turns.take() {
            if turn.has_unwoken() {
                self.wake(turn);
            } else if let Some(turn) = turn.end() {
                self.work(turn, None);
            }
        }
        // Else the one who has the turn wakes them.
    }

    #[inline]
    fn wake(&self, mut turn: Turn<'_, Router<T>>) {
        fence(Ordering::SeqCst);
        turn.ring_unwoken();
        if let Some(turn) = turn.end() {
            self.work(turn, None);
        }
    }

    /// Whether the hub has ended; if not, the waker is woken when it does.
    pub(super) fn poll_closed(&self, waker: &Waker) -> Poll<()> {
        self.signs.end.lie_down(waker);
        if self.is_closed() {
            self.signs.end.rise();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Nobody waits for room or for the end any more.
    pub(super) fn stop_waiting(&self) {
        self.gone.producer.rise();
        self.signs.end.rise();
    }

    // ---- Routing.

    /// After something was written down: has it done, by whoever has the turn.
    pub(super) fn route(&self) {
        if let Some(turn) = self.turns.ask() {
            self.work(turn, None);
        }
    }

    fn announce(&self, list: MutexGuard<'_, Vec<Change<T>>>) {
        // Relaxed: the lock and the turn order it.
        self.news.are_there.store(true, Ordering::Relaxed);
        drop(list);
    }

    /// Does everything that there is to do; then looks at one more element.
    #[cold]
    fn work(&self, turn: Turn<'_, Router<T>>, mut value: Option<T>) {
        // Dropped when the turn is over: users' code may panic in it.
        let mut lost = Vec::new();
        let mut counted = 0;
        let mut next = Some(turn);
        while let Some(mut turn) = next {
            self.take_news(&mut turn, &mut lost);
            if let Some(value) = value.take() {
                turn.keep(value);
            }
            // Relaxed: whoever has failed it asks for the turn afterwards.
            if self.signs.has_failed.load(Ordering::Relaxed) {
                turn.give_up(&mut lost);
            }
            self.place_all(&mut turn, &mut lost);
            if lost.len() > counted {
                self.count_gone((lost.len() - counted) as u64);
                counted = lost.len();
            }
            self.note_over(&turn);
            fence(Ordering::SeqCst);
            turn.ring_unwoken();
            next = turn.end();
        }
    }

    fn place_all(&self, turn: &mut Turn<'_, Router<T>>, lost: &mut Vec<T>) {
        loop {
            while let Some(placed) = turn.step(|| Lost(self)) {
                if let Placed::Dropped(value) = placed {
                    lost.push(value);
                }
            }
            let was_stuck = self.signs.is_stuck.load(Ordering::Relaxed);
            if was_stuck == turn.is_stuck() {
                return;
            }
            // Relaxed: the fence orders it before another look at the room.
            self.signs
                .is_stuck
                .store(turn.is_stuck(), Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    fn take_news(&self, turn: &mut Turn<'_, Router<T>>, lost: &mut Vec<T>) {
        // Relaxed: the turn orders what was asked for; the rest is found at its end.
        if !self.news.are_there.load(Ordering::Relaxed) {
            return;
        }
        let news = {
            let mut list = lock(&self.news.list);
            self.news.are_there.store(false, Ordering::Relaxed);
            std::mem::take(&mut *list)
        };
        for change in news {
            match change {
                Change::Value(value) => turn.keep(value),
                Change::Joined(lane, sender) => turn.add(lane, sender),
                Change::Left(id, queue) => turn.remove(id, queue, lost),
                Change::NobodyCanCome => turn.start(),
            }
        }
    }

    /// Tells consumers if nothing comes any more, or something after all.
    fn note_over(&self, turn: &Turn<'_, Router<T>>) {
        let is_over =
            self.is_closed() && turn.is_empty() && !self.news.are_there.load(Ordering::Relaxed);
        // Relaxed: only changed in the turn.
        if is_over == self.signs.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Release: everything was put in its queue before.
        self.signs.is_over.store(is_over, Ordering::Release);
        if is_over {
            let lanes = self.lock().lanes.clone();
            fence(Ordering::SeqCst);
            ring_all(lanes.iter().map(|lane| lane.bell()));
        }
    }

    /// So many elements are out of the hub.
    #[inline]
    fn count_gone(&self, count: u64) {
        // Release: after what was made of them.
        self.gone.count.fetch_add(count, Ordering::AcqRel);
        fence_after_exchange();
        self.gone.producer.ring();
    }

    // ---- Consumers.

    /// A seat for a new consumer, which [`route`](Self::route) is to make known.
    pub(super) fn join(&self) -> Seat<T> {
        let (sender, receiver) = chunks::channel_for(self.queue_max);
        let mut core = self.lock();
        core.last_id += 1;
        core.receivers += 1;
        let lane = Arc::new(Lane::new(core.last_id));
        core.lanes.push(Arc::clone(&lane));
        // Under the lock: in the order of the ids.
        let mut list = lock(&self.news.list);
        list.push(Change::Joined(Arc::clone(&lane), sender));
        self.announce(list);
        drop(core);
        Seat {
            lane,
            queue: Some(receiver),
        }
    }

    /// The next element, or the end.
    pub(super) fn poll_next(
        &self,
        seat: &mut Seat<T>,
        waker: Option<&Waker>,
    ) -> Poll<Result<T, Ended<E>>> {
        if let Some(outcome) = self.try_next(seat) {
            return Poll::Ready(outcome);
        }
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        seat.lane.bell().lie_down(waker);
        match self.try_next(seat) {
            None => Poll::Pending,
            Some(outcome) => {
                seat.lane.bell().rise();
                Poll::Ready(outcome)
            }
        }
    }

    #[inline]
    fn try_next(&self, seat: &mut Seat<T>) -> Option<Result<T, Ended<E>>> {
        // Acquire: the end that was stored before.
        if self.signs.has_failed.load(Ordering::Acquire) {
            return Some(Err(self.leave_at_end(seat)));
        }
        // Acquire, and before the queue is looked at: all that comes is in it then.
        let is_over = self.signs.is_over.load(Ordering::Acquire);
        let Some(queue) = &mut seat.queue else {
            return Some(Err(self.leave_at_end(seat)));
        };
        if queue.available() > 0
            && let Some(value) = queue.pop()
        {
            seat.lane.add_taken();
            self.count_gone(1);
            // Relaxed: the fence of the count orders it.
            if self.signs.is_stuck.load(Ordering::Relaxed) {
                self.route();
            }
            return Some(Ok(value));
        }
        is_over.then(|| Err(self.leave_at_end(seat)))
    }

    /// What others leave behind must not come here any more.
    #[cold]
    fn leave_at_end(&self, seat: &mut Seat<T>) -> Ended<E> {
        self.leave(seat);
        let end = self.lock().end.clone();
        end.unwrap_or(Ended::Completed)
    }

    /// The consumer gets nothing more. It keeps its handle.
    fn leave(&self, seat: &mut Seat<T>) {
        let Some(queue) = seat.queue.take() else {
            return;
        };
        seat.lane.bell().rise();
        let mut core = self.lock();
        let index = core
            .lanes
            .binary_search_by_key(&seat.lane.id, |lane| lane.id);
        if let Ok(index) = index {
            core.lanes.remove(index);
        }
        drop(core);
        let mut list = lock(&self.news.list);
        list.push(Change::Left(seat.lane.id, queue));
        self.announce(list);
        self.route();
    }

    pub(super) fn drop_seat(&self, seat: &mut Seat<T>) {
        // The partitioner may panic, which is passed on: unless the thread does so already.
        let left = catch_unwind(AssertUnwindSafe(|| self.leave(seat)));
        let mut core = self.lock();
        core.receivers -= 1;
        self.close_if_deserted(core);
        if let Err(panic) = left
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }

    // ---- The end, and questions.

    /// Whether this was the first end.
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
        let list = lock(&self.news.list);
        // Release: the end, for who reads it by this.
        self.signs.has_failed.store(drops, Ordering::Release);
        self.signs.is_closed.store(true, Ordering::Release);
        drop(list);
        let lanes = core.lanes.clone();
        drop(core);
        fence(Ordering::SeqCst);
        let consumers = lanes.iter().map(|lane| lane.bell());
        let producer = [&self.gone.producer, &self.signs.end];
        let tell = || {
            if drops {
                ring_all(consumers.chain(producer));
            } else {
                // Consumers are told when everything has found its consumer.
                ring_all(producer.into_iter());
            }
        };
        both(tell, || self.route());
    }

    pub(super) fn add_hub(&self) {
        self.lock().hubs += 1;
    }

    pub(super) fn remove_hub(&self) {
        let mut core = self.lock();
        core.hubs -= 1;
        if core.hubs == 0 {
            let mut list = lock(&self.news.list);
            list.push(Change::NobodyCanCome);
            self.announce(list);
        }
        self.close_if_deserted(core);
        self.route();
    }

    /// When nobody is there and nobody can come, the hub is closed, and drops what it has.
    fn close_if_deserted(&self, mut core: MutexGuard<'_, Core<E>>) {
        if core.hubs == 0 && core.receivers == 0 {
            core.end.get_or_insert(Ended::Completed);
            self.close(core, true);
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: what the one who closed has done before.
        self.signs.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> usize {
        // In this order, so that it is not negative.
        let gone = self.gone.count.load(Ordering::Acquire);
        let sent = self.sent.0.load(Ordering::Relaxed);
        usize::try_from(sent.saturating_sub(gone)).unwrap_or(usize::MAX)
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

/// An element that is lost when this is dropped, by a panic of the partitioner.
struct Lost<'a, T, E>(&'a Shared<T, E>);

impl<T, E> Drop for Lost<'_, T, E> {
    fn drop(&mut self) {
        self.0.count_gone(1);
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
