//! The router: pending elements, the consumers' queues, and the choice of a consumer. Only a thread with
//! exclusive access uses it.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::consumers::Consumers;
use super::lane::Lane;
use super::options::{By, OnFull, OnLeave, Partitioner, Rules};
use crate::hand_over::chunks;

pub(super) struct Router<T> {
    rules: Rules,
    partitioner: Partitioner<T>,
    consumers: Consumers,
    /// The sending ends of the consumers' queues. The index of an entry is the consumer's *slot*.
    outlets: Vec<Option<Outlet<T>>>,
    free_slots: Vec<usize>,
    /// Elements without a chosen consumer.
    pending: VecDeque<T>,
    /// An element whose chosen consumer has a full queue. Later elements wait behind it.
    stuck: Option<Stuck<T>>,
    /// Whether `start_after` consumers have been subscribed at the same time.
    has_started: bool,
    /// Slots of consumers that have new elements and were not woken yet.
    unwoken: Vec<usize>,
}

/// The sending end of a consumer's queue.
struct Outlet<T> {
    lane: Arc<Lane>,
    sender: chunks::Sender<T>,
    /// Number of elements that the consumer has taken, as far as the router knows.
    taken: u64,
    is_unwoken: bool,
}

struct Stuck<T> {
    value: T,
    consumer: Target,
}

#[derive(Clone, Copy)]
enum Target {
    Slot(usize),
    /// Any consumer with room.
    Any,
}

/// The outcome of routing an element.
pub(super) enum Routed<T> {
    /// The element is in a consumer's queue.
    Queued,
    /// The element must be dropped.
    Dropped(T),
    /// The element waits for room, and later elements wait behind it.
    Stuck,
}

impl<T> Router<T> {
    pub(super) fn new(rules: Rules, partitioner: Partitioner<T>) -> Self {
        Self {
            rules,
            partitioner,
            consumers: Consumers::default(),
            outlets: Vec::new(),
            free_slots: Vec::new(),
            pending: VecDeque::new(),
            stuck: None,
            has_started: false,
            unwoken: Vec::new(),
        }
    }

    // ---- The set of consumers.

    pub(super) fn add(&mut self, lane: Arc<Lane>, sender: chunks::Sender<T>) {
        let outlet = Some(Outlet {
            lane: Arc::clone(&lane),
            sender,
            taken: 0,
            is_unwoken: false,
        });
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.outlets[slot] = outlet;
                slot
            }
            None => {
                self.outlets.push(outlet);
                self.outlets.len() - 1
            }
        };
        self.consumers.add(lane, slot);
        self.has_started |= self.consumers.len() >= self.rules.start_after.unwrap_or(1);
    }

    /// Starts routing to the current consumers, even if there are fewer of them than `start_after`.
    pub(super) fn start(&mut self) {
        self.has_started = true;
    }

    /// Removes a consumer. `queue` is the receiving end of the consumer's queue. Elements that must be
    /// dropped are moved to `lost`.
    pub(super) fn remove(&mut self, id: i64, mut queue: chunks::Receiver<T>, lost: &mut Vec<T>) {
        let Some(slot) = self.consumers.remove(id) else {
            return;
        };
        self.outlets[slot] = None;
        self.free_slots.push(slot);
        if let Some(stuck) = self.stuck.take_if(|stuck| stuck.is_for(slot)) {
            // This element was sent after those in the consumer's queue. The code below puts them in front of
            // it.
            self.pending.push_front(stuck.value);
        }
        let left = std::iter::from_fn(|| {
            if queue.available() > 0 {
                queue.pop()
            } else {
                None
            }
        });
        match self.rules.on_leave {
            OnLeave::Drop => lost.extend(left),
            OnLeave::Reroute => {
                let count = self.pending.len();
                self.pending.extend(left);
                self.pending.rotate_left(count);
            }
        }
    }

    // ---- Choosing.

    /// Returns whether a new element can be routed at once.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        self.pending.is_empty()
            && self.stuck.is_none()
            && self.has_started
            && !self.consumers.is_empty()
    }

    /// Returns whether no element waits for a consumer or for room.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.stuck.is_none()
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    pub(super) fn push_pending(&mut self, value: T) {
        self.pending.push_back(value);
    }

    /// Moves all elements that are not in a queue to `lost`.
    pub(super) fn drain_all(&mut self, lost: &mut Vec<T>) {
        lost.extend(self.stuck.take().map(|stuck| stuck.value));
        lost.extend(self.pending.drain(..));
    }

    /// Routes one waiting element, if that is possible now. `choosing` returns a guard, which is dropped only
    /// if the partitioner panics.
    pub(super) fn step<G>(&mut self, choosing: impl FnOnce() -> G) -> Option<Routed<T>> {
        if !self.has_started || self.consumers.is_empty() {
            return None;
        }
        if let Some(stuck) = &self.stuck {
            let consumer = stuck.consumer;
            let slot = match consumer {
                Target::Slot(slot) => Some(slot),
                Target::Any => self.least_loaded(),
            };
            let slot = slot.filter(|slot| self.has_room(*slot))?;
            let stuck = self.stuck.take()?;
            return Some(self.put(slot, stuck.value));
        }
        let value = self.pending.pop_front()?;
        let lost = choosing();
        let routed = self.route(value);
        let _ = ManuallyDrop::new(lost);
        Some(routed)
    }

    /// Routes an element to the consumer that the partitioner chooses.
    ///
    /// # Panics
    ///
    /// If the partitioner panics or chooses a consumer that does not exist. The element is lost then.
    #[inline]
    pub(super) fn route(&mut self, value: T) -> Routed<T> {
        let slot = match &mut self.partitioner.by {
            By::Index(choose) => {
                let lanes = self.consumers.lanes();
                let choice = choose(lanes.len(), &value);
                match usize::try_from(choice) {
                    Err(_) => None,
                    Ok(index) => match lanes.get(index) {
                        Some(lane) => self.consumers.slot(lane.id),
                        None => no_such_index(choice, lanes.len()),
                    },
                }
            }
            By::Id(choose) => match choose(&self.consumers, &value) {
                ..0 => None,
                id => Some(self.consumers.slot(id).unwrap_or_else(|| no_such_id(id))),
            },
        };
        match slot {
            None => Routed::Dropped(value),
            Some(slot) if self.has_room(slot) => self.put(slot, value),
            Some(slot) => self.handle_full_consumer(slot, value),
        }
    }

    #[inline]
    fn put(&mut self, slot: usize, value: T) -> Routed<T> {
        let Some(outlet) = &mut self.outlets[slot] else {
            return Routed::Dropped(value);
        };
        outlet.sender.write(value);
        outlet.sender.publish();
        outlet.lane.set_sent(outlet.sender.count());
        if !outlet.is_unwoken {
            outlet.is_unwoken = true;
            self.unwoken.push(slot);
        }
        Routed::Queued
    }

    #[cold]
    fn handle_full_consumer(&mut self, slot: usize, value: T) -> Routed<T> {
        let consumer = match self.rules.on_full {
            OnFull::DropNewest => return Routed::Dropped(value),
            OnFull::Wait => Target::Slot(slot),
            OnFull::Reroute => {
                if let Some(least) = self.least_loaded().filter(|least| self.has_room(*least)) {
                    return self.put(least, value);
                }
                Target::Any
            }
        };
        self.stuck = Some(Stuck { value, consumer });
        Routed::Stuck
    }

    #[inline]
    fn has_room(&mut self, slot: usize) -> bool {
        let (Some(most), Some(outlet)) = (self.rules.per_consumer, &mut self.outlets[slot]) else {
            return true;
        };
        let most = most as u64;
        let sent = outlet.sender.count();
        if sent - outlet.taken >= most {
            outlet.taken = outlet.lane.taken();
        }
        sent - outlet.taken < most
    }

    fn least_loaded(&self) -> Option<usize> {
        let lanes = self.consumers.lanes().iter();
        let least = lanes.min_by_key(|lane| lane.queued())?;
        self.consumers.slot(least.id)
    }

    // ---- Waking.

    /// Wakes the consumers that got elements since the last call. The caller has executed a full fence.
    #[inline]
    pub(super) fn wake_unwoken(&mut self) {
        let mut unwoken = Unwoken(self);
        while unwoken.wake_one() {}
    }

    #[inline]
    pub(super) fn has_unwoken(&self) -> bool {
        !self.unwoken.is_empty()
    }
}

/// A drop guard that wakes the remaining consumers. If one waker panics, the others are still woken.
struct Unwoken<'a, T>(&'a mut Router<T>);

impl<T> Unwoken<'_, T> {
    /// Wakes one consumer. Returns whether there was one.
    #[inline]
    fn wake_one(&mut self) -> bool {
        let Some(slot) = self.0.unwoken.pop() else {
            return false;
        };
        if let Some(outlet) = &mut self.0.outlets[slot] {
            outlet.is_unwoken = false;
            // The waker may run any code, because only this thread has access to the router.
            outlet.lane.waker_slot().wake();
        }
        true
    }
}

impl<T> Drop for Unwoken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        while !self.0.unwoken.is_empty() {
            // Runs only after a panic of another waker. A second panic would abort the process.
            let _ = catch_unwind(AssertUnwindSafe(|| self.wake_one()));
        }
    }
}

impl<T> Stuck<T> {
    fn is_for(&self, slot: usize) -> bool {
        matches!(self.consumer, Target::Slot(own) if own == slot)
    }
}

#[cold]
fn no_such_index(choice: i64, count: usize) -> ! {
    panic!("the partitioner chose consumer {choice} of {count}")
}

#[cold]
fn no_such_id(id: i64) -> ! {
    panic!("the partitioner chose consumer {id}, which does not exist")
}
