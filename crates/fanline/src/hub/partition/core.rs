//! Pending elements, the consumers' queues, and choosing between them.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use super::options::{
    By, Consumer, Consumers, FullConsumer, LeftElements, PartitionOptions, Partitioner,
};
use crate::hub::broadcast::Switch;
use crate::hub::{Closed, Ended};
use crate::sync::{Mutex, MutexGuard, lock};

pub(super) struct Shared<T, E> {
    options: PartitionOptions,
    core: Mutex<Core<T, E>>,
}

struct Core<T, E> {
    /// Nobody was chosen for these yet.
    pending: VecDeque<T>,
    /// Somebody was, and has no room; then nothing after it is looked at.
    stuck: Option<Stuck<T>>,
    /// Not there while somebody has it choose.
    partitioner: Option<Partitioner<T>>,
    /// In the order in which they came, which is that of their ids.
    lanes: Vec<Lane<T>>,
    /// Changes whenever somebody comes or goes: an answer about other consumers does not count.
    version: u64,
    /// Elements in the hub, wherever.
    total: usize,
    last_id: i64,
    handles: usize,
    started: bool,
    producer: Option<Waker>,
    end: Option<Ended<E>>,
}

struct Stuck<T> {
    value: T,
    /// `None`: whoever has room.
    consumer: Option<i64>,
}

struct Lane<T> {
    id: i64,
    queue: VecDeque<T>,
    waker: Option<Waker>,
}

/// What the partitioner said.
enum Choice {
    Nobody,
    Index(usize),
    Id(i64),
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(options: PartitionOptions, partitioner: Partitioner<T>) -> Self {
        Self {
            options,
            core: Mutex::new(Core {
                pending: VecDeque::new(),
                stuck: None,
                partitioner: Some(partitioner),
                lanes: Vec::new(),
                version: 0,
                total: 0,
                last_id: -1,
                handles: 1,
                started: false,
                producer: None,
                end: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core<T, E>> {
        lock(&self.core)
    }

    // ---- The producer.

    pub(super) fn poll_room(&self, waker: &mut Option<Waker>) -> Poll<Result<(), Closed>> {
        let mut core = self.lock();
        if core.end.is_some() {
            return Poll::Ready(Err(Closed));
        }
        if core.total < self.options.capacity {
            return Poll::Ready(Ok(()));
        }
        std::mem::swap(&mut core.producer, waker);
        Poll::Pending
    }

    /// Takes an element, for which there is room.
    pub(super) fn push(&self, value: T) -> Result<(), T> {
        let mut core = self.lock();
        if core.end.is_some() {
            return Err(value);
        }
        core.total += 1;
        core.pending.push_back(value);
        drop(core);
        self.route();
        Ok(())
    }

    // ---- Choosing.

    /// Has the partitioner choose for what is pending, unless somebody else does, who then does this
    /// too.
    fn route(&self) {
        let mut core = self.lock();
        if !core.has_work(&self.options) {
            return;
        }
        let Some(partitioner) = core.partitioner.take() else {
            return;
        };
        let mut routing = Routing {
            shared: self,
            partitioner: Some(partitioner),
            in_flight: false,
        };
        let mut seen = Consumers::default();
        while let Some((value, waker)) = core.next_to_route(&self.options) {
            let Some(value) = value else {
                // What was stuck is on its way; nobody had to choose.
                drop(core);
                wake(waker);
                core = self.lock();
                continue;
            };
            let (version, count) = (core.version, core.lanes.len());
            if routing.wants_details() {
                core.describe(&mut seen);
            }
            drop(core);
            routing.in_flight = true;
            let choice = routing.choose(&seen, count, &value);
            core = self.lock();
            routing.in_flight = false;
            let (waker, dropped) = core.place(value, choice, version, &self.options);
            let producer = if dropped.is_some() {
                core.take_back(1)
            } else {
                None
            };
            drop(core);
            drop(dropped);
            wake(waker);
            wake(producer);
            core = self.lock();
        }
        core.partitioner = routing.partitioner.take();
        let waiting = core.wakers_at_end();
        drop(core);
        waiting.into_iter().for_each(Waker::wake);
    }

    // ---- Consumers.

    pub(super) fn join(&self) -> i64 {
        let mut core = self.lock();
        core.last_id += 1;
        let id = core.last_id;
        core.lanes.push(Lane {
            id,
            queue: VecDeque::new(),
            waker: None,
        });
        core.version += 1;
        core.handles += 1;
        if core.lanes.len() >= self.options.start_after.unwrap_or(1) {
            core.started = true;
        }
        drop(core);
        self.route();
        id
    }

    pub(super) fn poll_next(&self, id: i64, waker: Option<&Waker>) -> Poll<Result<T, Ended<E>>> {
        let mut waker = waker.cloned();
        let mut core = self.lock();
        if let Some(end @ Ended::Error(_)) = &core.end {
            return Poll::Ready(Err(end.clone()));
        }
        let is_over = core.is_over();
        let Some(lane) = core.lane(id) else {
            return Poll::Ready(Err(Ended::Completed));
        };
        let Some(value) = lane.queue.pop_front() else {
            if is_over {
                // What others leave behind must not come here any more.
                core.remove(id);
                return Poll::Ready(Err(Ended::Completed));
            }
            std::mem::swap(&mut lane.waker, &mut waker);
            drop(core);
            return Poll::Pending;
        };
        let producer = core.take_back(1);
        let stuck = core.stuck.is_some();
        drop(core);
        wake(producer);
        if stuck {
            self.route();
        }
        Poll::Ready(Ok(value))
    }

    pub(super) fn leave(&self, id: i64) {
        let mut core = self.lock();
        let lane = core.remove(id);
        let mut producer = None;
        let mut lost = VecDeque::new();
        let mut waker = None;
        if let Some(mut lane) = lane {
            waker = lane.waker.take();
            match self.options.left_elements {
                LeftElements::Reroute => {
                    for value in lane.queue.into_iter().rev() {
                        core.pending.push_front(value);
                    }
                }
                LeftElements::Drop => {
                    producer = core.take_back(lane.queue.len());
                    lost = lane.queue;
                }
            }
        }
        core.handles -= 1;
        let closed = core.close_if_deserted();
        drop(core);
        drop((lost, waker));
        wake(producer);
        wake(closed);
        self.route();
        // The last thing that others waited for may have gone.
        let waiting = self.lock().wakers_at_end();
        waiting.into_iter().for_each(Waker::wake);
    }

    // ---- The end, and questions.

    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let mut core = self.lock();
        if core.end.is_some() {
            return false;
        }
        core.end = Some(end);
        let producer = core.producer.take();
        let wakers: Vec<Waker> = core
            .lanes
            .iter_mut()
            .filter_map(|lane| lane.waker.take())
            .collect();
        drop(core);
        wake(producer);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut core = self.lock();
        core.handles -= 1;
        let producer = core.close_if_deserted();
        drop(core);
        wake(producer);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().end.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().total
    }

    pub(super) fn queued(&self, id: i64) -> usize {
        self.lock().lane(id).map_or(0, |lane| lane.queue.len())
    }

    pub(super) fn consumers(&self) -> Consumers {
        let mut consumers = Consumers::default();
        self.lock().describe(&mut consumers);
        consumers
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
    fn has_work(&self, options: &PartitionOptions) -> bool {
        if !self.started || self.lanes.is_empty() {
            return false;
        }
        match &self.stuck {
            Some(stuck) => self.can_move(stuck, options),
            None => !self.pending.is_empty(),
        }
    }

    fn can_move(&self, stuck: &Stuck<T>, options: &PartitionOptions) -> bool {
        match stuck.consumer {
            Some(id) => match self.index(id) {
                Some(index) => self.has_room(index, options),
                // It is gone: another must be chosen.
                None => true,
            },
            None => (0..self.lanes.len()).any(|index| self.has_room(index, options)),
        }
    }

    fn has_room(&self, index: usize, options: &PartitionOptions) -> bool {
        let most = options.per_consumer.unwrap_or(usize::MAX);
        self.lanes[index].queue.len() < most
    }

    /// The next element to choose for; or none, when the one that was stuck could be moved without,
    /// and whom that wakes.
    fn next_to_route(&mut self, options: &PartitionOptions) -> Option<(Option<T>, Option<Waker>)> {
        if !self.has_work(options) {
            return None;
        }
        let Some(stuck) = self.stuck.take() else {
            return self.pending.pop_front().map(|value| (Some(value), None));
        };
        let index = match stuck.consumer {
            Some(id) => self.index(id),
            None => self.least_loaded(),
        };
        match index {
            Some(index) => Some((None, self.deliver(index, stuck.value))),
            None => Some((Some(stuck.value), None)),
        }
    }

    /// Does what the partitioner said: whom to wake, and the element if it is dropped.
    fn place(
        &mut self,
        value: T,
        choice: Choice,
        version: u64,
        options: &PartitionOptions,
    ) -> (Option<Waker>, Option<T>) {
        let index = match choice {
            Choice::Nobody => return (None, Some(value)),
            _ if version != self.version => None,
            Choice::Index(index) => Some(index),
            Choice::Id(id) => self.index(id),
        };
        let Some(index) = index else {
            // Somebody came or went meanwhile: the partitioner is asked again.
            self.pending.push_front(value);
            return (None, None);
        };
        if self.has_room(index, options) {
            return (self.deliver(index, value), None);
        }
        match options.full_consumer {
            FullConsumer::Drop => return (None, Some(value)),
            FullConsumer::Wait => {
                self.stuck = Some(Stuck {
                    value,
                    consumer: Some(self.lanes[index].id),
                });
            }
            FullConsumer::Reroute => {
                let least = self.least_loaded();
                if let Some(least) = least.filter(|least| self.has_room(*least, options)) {
                    return (self.deliver(least, value), None);
                }
                self.stuck = Some(Stuck {
                    value,
                    consumer: None,
                });
            }
        }
        (None, None)
    }

    fn deliver(&mut self, index: usize, value: T) -> Option<Waker> {
        let lane = &mut self.lanes[index];
        lane.queue.push_back(value);
        lane.waker.take()
    }

    fn least_loaded(&self) -> Option<usize> {
        (0..self.lanes.len()).min_by_key(|index| self.lanes[*index].queue.len())
    }

    fn describe(&self, consumers: &mut Consumers) {
        consumers.list.clear();
        consumers
            .list
            .extend(self.lanes.iter().map(|lane| Consumer {
                id: lane.id,
                queued: lane.queue.len(),
            }));
    }

    fn index(&self, id: i64) -> Option<usize> {
        self.lanes.binary_search_by_key(&id, |lane| lane.id).ok()
    }

    fn lane(&mut self, id: i64) -> Option<&mut Lane<T>> {
        let index = self.index(id)?;
        self.lanes.get_mut(index)
    }

    fn remove(&mut self, id: i64) -> Option<Lane<T>> {
        let index = self.index(id)?;
        self.version += 1;
        Some(self.lanes.remove(index))
    }

    /// So many elements are out of the hub: the producer may go on.
    fn take_back(&mut self, count: usize) -> Option<Waker> {
        self.total -= count;
        self.producer.take()
    }

    /// Whether consumers get nothing more than what they have.
    fn is_over(&self) -> bool {
        self.end.is_some()
            && self.pending.is_empty()
            && self.stuck.is_none()
            && self.partitioner.is_some()
    }

    fn wakers_at_end(&mut self) -> Vec<Waker> {
        if !self.is_over() {
            return Vec::new();
        }
        let wakers = self.lanes.iter_mut().filter_map(|lane| lane.waker.take());
        wakers.collect()
    }

    fn close_if_deserted(&mut self) -> Option<Waker> {
        if self.handles > 0 || self.end.is_some() {
            return None;
        }
        self.end = Some(Ended::Completed);
        self.producer.take()
    }
}

/// The partitioner, while it is out of the lock. It comes back even when it panics; the element that it
/// was asked about is lost then.
struct Routing<'a, T, E> {
    shared: &'a Shared<T, E>,
    partitioner: Option<Partitioner<T>>,
    in_flight: bool,
}

impl<T, E> Routing<'_, T, E> {
    fn wants_details(&self) -> bool {
        let by = self.partitioner.as_ref().map(|partitioner| &partitioner.by);
        matches!(by, Some(By::Id(_)))
    }

    fn choose(&mut self, consumers: &Consumers, count: usize, value: &T) -> Choice {
        let Some(partitioner) = &mut self.partitioner else {
            return Choice::Nobody;
        };
        match &mut partitioner.by {
            By::Index(choose) => {
                let choice = choose(count, value);
                match usize::try_from(choice) {
                    Err(_) => Choice::Nobody,
                    Ok(index) if index < count => Choice::Index(index),
                    Ok(_) => panic!("the partitioner chose consumer {choice} of {count}"),
                }
            }
            By::Id(choose) => match choose(consumers, value) {
                ..0 => Choice::Nobody,
                id if consumers.queued(id).is_some() => Choice::Id(id),
                id => panic!("the partitioner chose consumer {id}, whom there is not"),
            },
        }
    }
}

impl<T, E> Drop for Routing<'_, T, E> {
    fn drop(&mut self) {
        let Some(partitioner) = self.partitioner.take() else {
            return;
        };
        let mut core = self.shared.lock();
        core.partitioner = Some(partitioner);
        let producer = if self.in_flight {
            core.take_back(1)
        } else {
            None
        };
        drop(core);
        wake(producer);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
