//! The queue, the lanes and who waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::MergeOptions;
use crate::hub::broadcast::Switch;
use crate::hub::{Closed, Ended};
use crate::sync::{Mutex, MutexGuard, lock};

pub(super) struct Shared<T, E> {
    options: MergeOptions,
    core: Mutex<Core<T, E>>,
}

struct Core<T, E> {
    /// In order of arrival, each with its lane.
    queue: VecDeque<(usize, T)>,
    lanes: Vec<Lane>,
    /// Lanes that are free for new producers.
    free: Vec<usize>,
    /// Places that producers were granted and have not used.
    granted: usize,
    /// Lanes whose producers wait for a place in the total.
    line: VecDeque<usize>,
    consumer: Option<Waker>,
    producers: usize,
    handles: usize,
    draining: bool,
    /// The receiver is gone.
    deserted: bool,
    end: Option<Ended<E>>,
    last_failure: Option<Arc<E>>,
}

/// One producer.
#[derive(Default)]
struct Lane {
    /// Its elements in the queue.
    queued: usize,
    waker: Option<Waker>,
    /// It is in the line.
    in_line: bool,
    /// It has a place for its next element.
    granted: bool,
    /// Its producer is gone; free when nothing of it is queued.
    left: bool,
}

/// Who is to be woken when the lock is released.
#[derive(Default)]
struct Wakers(Option<Waker>, Option<Waker>);

impl Wakers {
    fn wake(self) {
        // One after the other, though the first may panic.
        let second = WakeOnDrop(self.1);
        if let Some(waker) = self.0 {
            waker.wake();
        }
        drop(second);
    }
}

struct WakeOnDrop(Option<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(options: MergeOptions) -> Self {
        Self {
            options,
            core: Mutex::new(Core {
                queue: VecDeque::new(),
                lanes: Vec::new(),
                free: Vec::new(),
                granted: 0,
                line: VecDeque::new(),
                consumer: None,
                producers: 0,
                handles: 1,
                draining: false,
                deserted: false,
                end: None,
                last_failure: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core<T, E>> {
        lock(&self.core)
    }

    fn total(&self) -> usize {
        self.options.total.unwrap_or(usize::MAX)
    }

    // ---- Producers.

    /// A lane for a new producer, unless none is taken.
    pub(super) fn join(&self) -> Option<usize> {
        let mut core = self.lock();
        if core.is_closed() || core.draining {
            return None;
        }
        core.producers += 1;
        Some(match core.free.pop() {
            Some(lane) => lane,
            None => {
                core.lanes.push(Lane::default());
                core.lanes.len() - 1
            }
        })
    }

    /// A place for the lane's next element, which is then its own until it is used or given back.
    pub(super) fn poll_place(
        &self,
        lane: usize,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<(), Closed>> {
        let mut core = self.lock();
        if core.is_closed() {
            return Poll::Ready(Err(Closed));
        }
        if core.lanes[lane].granted {
            return Poll::Ready(Ok(()));
        }
        if core.lanes[lane].queued >= self.options.per_producer {
            std::mem::swap(&mut core.lanes[lane].waker, waker);
            return Poll::Pending;
        }
        let in_line = core.lanes[lane].in_line;
        if !in_line && core.line.is_empty() && core.used() < self.total() {
            core.grant(lane);
            return Poll::Ready(Ok(()));
        }
        if !in_line {
            core.lanes[lane].in_line = true;
            core.line.push_back(lane);
        }
        std::mem::swap(&mut core.lanes[lane].waker, waker);
        Poll::Pending
    }

    /// Uses the place that was granted.
    pub(super) fn push(&self, lane: usize, value: T) -> Result<(), T> {
        let mut core = self.lock();
        if core.is_closed() {
            return Err(value);
        }
        let own = &mut core.lanes[lane];
        debug_assert!(own.granted);
        own.granted = false;
        own.queued += 1;
        core.granted -= 1;
        core.queue.push_back((lane, value));
        let consumer = core.consumer.take();
        drop(core);
        Wakers(consumer, None).wake();
        Ok(())
    }

    /// The producer does not wait any more, and does not use a place that it was granted.
    pub(super) fn give_back(&self, lane: usize) {
        let mut core = self.lock();
        let waker = core.lanes[lane].waker.take();
        let next = core.withdraw(lane, self.total());
        drop(core);
        drop(waker);
        Wakers(next, None).wake();
    }

    /// The producer leaves; its elements stay.
    pub(super) fn leave(&self, lane: usize, failure: Option<E>) {
        let failure = failure.map(Arc::new);
        let mut core = self.lock();
        let waker = core.lanes[lane].waker.take();
        let next = core.withdraw(lane, self.total());
        core.producers -= 1;
        core.lanes[lane].left = true;
        core.free_if_done(lane);
        let before = match failure {
            Some(failure) => core.last_failure.replace(failure),
            None => None,
        };
        let consumer = core.consumer_if_over();
        drop(core);
        drop((waker, before));
        Wakers(next, consumer).wake();
    }

    // ---- The consumer.

    /// The next element, or the end.
    pub(super) fn poll_next(&self, waker: Option<&Waker>) -> Poll<Result<T, Ended<E>>> {
        // The waker's own code runs before the lock is taken.
        let mut waker = waker.cloned();
        let mut core = self.lock();
        if let Some(end) = &core.end
            && !matches!(end, Ended::Completed)
        {
            return Poll::Ready(Err(end.clone()));
        }
        let Some((lane, value)) = core.queue.pop_front() else {
            if core.is_over() {
                return Poll::Ready(Err(Ended::Completed));
            }
            std::mem::swap(&mut core.consumer, &mut waker);
            drop(core);
            return Poll::Pending;
        };
        core.lanes[lane].queued -= 1;
        core.free_if_done(lane);
        let own = if core.lanes[lane].in_line {
            None
        } else {
            core.lanes[lane].waker.take()
        };
        let next = core.grant_next(self.total());
        drop(core);
        Wakers(own, next).wake();
        Poll::Ready(Ok(value))
    }

    pub(super) fn desert(&self) {
        self.close(|core| core.deserted = true);
    }

    // ---- The end, and questions.

    /// Changes something that closes the hub: producers that wait are woken, and what nobody gets any
    /// more is dropped.
    fn close(&self, change: impl FnOnce(&mut Core<T, E>)) {
        let mut core = self.lock();
        change(&mut core);
        let failed = matches!(core.end, Some(Ended::Error(_)));
        let lost = if core.deserted || failed {
            for lane in &mut core.lanes {
                lane.queued = 0;
            }
            std::mem::take(&mut core.queue)
        } else {
            VecDeque::new()
        };
        core.line.clear();
        let wakers: Vec<Waker> = core
            .lanes
            .iter_mut()
            .filter_map(|lane| lane.waker.take())
            .collect();
        let consumer = core.consumer.take();
        drop(core);
        for waker in wakers.into_iter().chain(consumer) {
            waker.wake();
        }
        drop(lost);
    }

    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let mut first = false;
        self.close(|core| {
            first = core.end.is_none();
            if first {
                core.end = Some(end);
            }
        });
        first
    }

    pub(super) fn drain(&self) {
        let mut core = self.lock();
        core.draining = true;
        let consumer = core.consumer_if_over();
        drop(core);
        Wakers(consumer, None).wake();
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut core = self.lock();
        core.handles -= 1;
        let consumer = core.consumer_if_over();
        drop(core);
        Wakers(consumer, None).wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed()
    }

    pub(super) fn producers(&self) -> usize {
        self.lock().producers
    }

    pub(super) fn len(&self) -> usize {
        self.lock().queue.len()
    }

    pub(super) fn last_failure(&self) -> Option<Arc<E>> {
        self.lock().last_failure.clone()
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

impl<T, E> Core<T, E> {
    fn is_closed(&self) -> bool {
        self.deserted || self.end.is_some()
    }

    /// Whether no element can come any more.
    fn is_over(&self) -> bool {
        self.end.is_some() || (self.producers == 0 && (self.draining || self.handles == 0))
    }

    fn consumer_if_over(&mut self) -> Option<Waker> {
        if self.is_over() {
            self.consumer.take()
        } else {
            None
        }
    }

    fn used(&self) -> usize {
        self.queue.len() + self.granted
    }

    fn grant(&mut self, lane: usize) {
        self.lanes[lane].granted = true;
        self.granted += 1;
    }

    /// Grants a free place to the next in line, who is to be woken.
    fn grant_next(&mut self, total: usize) -> Option<Waker> {
        if self.used() >= total {
            return None;
        }
        let lane = self.line.pop_front()?;
        self.lanes[lane].in_line = false;
        self.grant(lane);
        self.lanes[lane].waker.take()
    }

    /// Takes the lane out of the line, and gives its place to the next.
    fn withdraw(&mut self, lane: usize, total: usize) -> Option<Waker> {
        if std::mem::take(&mut self.lanes[lane].in_line) {
            self.line.retain(|waiting| *waiting != lane);
        }
        if std::mem::take(&mut self.lanes[lane].granted) {
            self.granted -= 1;
            return self.grant_next(total);
        }
        None
    }

    fn free_if_done(&mut self, lane: usize) {
        let own = &mut self.lanes[lane];
        if own.left && own.queued == 0 {
            *own = Lane::default();
            self.free.push(lane);
        }
    }
}
