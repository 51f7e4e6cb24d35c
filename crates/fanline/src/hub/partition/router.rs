//! What was not chosen for yet, the consumers' queues, and choosing between them. Whoever has the turn
//! has all of it.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::consumers::Consumers;
use super::lane::Lane;
use super::options::{By, FullConsumer, LeftElements, PartitionOptions, Partitioner};
use crate::hand_over::chunks;

pub(super) struct Router<T> {
    options: PartitionOptions,
    partitioner: Partitioner<T>,
    consumers: Consumers,
    /// By slot.
    outlets: Vec<Option<Outlet<T>>>,
    free_slots: Vec<usize>,
    /// Nobody was chosen for these yet.
    pending: VecDeque<T>,
    /// Somebody was, and has no room; then nothing after it is looked at.
    stuck: Option<Stuck<T>>,
    /// So many have been there at once as are asked for.
    has_started: bool,
    /// Slots of consumers who were sent something and not woken.
    unwoken: Vec<usize>,
}

/// Where a consumer's elements go in.
struct Outlet<T> {
    lane: Arc<Lane>,
    sender: chunks::Sender<T>,
    /// How many were taken, as far as is known.
    taken: u64,
    is_unwoken: bool,
}

struct Stuck<T> {
    value: T,
    consumer: Whose,
}

#[derive(Clone, Copy)]
enum Whose {
    Slot(usize),
    /// Whoever has room.
    Anybody,
}

/// What became of an element.
pub(super) enum Placed<T> {
    /// It is in a consumer's queue.
    In,
    /// It is to be dropped.
    Dropped(T),
    /// It waits, and so does all after it.
    Stuck,
}

impl<T> Router<T> {
    pub(super) fn new(options: PartitionOptions, partitioner: Partitioner<T>) -> Self {
        Self {
            options,
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

    // ---- Who is there.

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
        self.has_started |= self.consumers.len() >= self.options.start_after.unwrap_or(1);
    }

    /// Whoever is there has to do.
    pub(super) fn start(&mut self) {
        self.has_started = true;
    }

    /// A consumer is gone, and this is the other end of its queue. What is to be dropped goes to `lost`.
    pub(super) fn remove(&mut self, id: i64, mut queue: chunks::Receiver<T>, lost: &mut Vec<T>) {
        let Some(slot) = self.consumers.remove(id) else {
            return;
        };
        self.outlets[slot] = None;
        self.free_slots.push(slot);
        if let Some(stuck) = self.stuck.take_if(|stuck| stuck.is_for(slot)) {
            // It is the next of the same consumer.
            self.pending.push_front(stuck.value);
        }
        let left = std::iter::from_fn(|| {
            if queue.available() > 0 {
                queue.pop()
            } else {
                None
            }
        });
        match self.options.left_elements {
            LeftElements::Drop => lost.extend(left),
            LeftElements::Reroute => {
                let count = self.pending.len();
                self.pending.extend(left);
                self.pending.rotate_left(count);
            }
        }
    }

    // ---- Choosing.

    /// Whether an element that comes now is looked at now.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        self.pending.is_empty()
            && self.stuck.is_none()
            && self.has_started
            && !self.consumers.is_empty()
    }

    /// Whether everything has somewhere to be.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.stuck.is_none()
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    pub(super) fn keep(&mut self, value: T) {
        self.pending.push_back(value);
    }

    /// Everything that has nowhere to be.
    pub(super) fn give_up(&mut self, lost: &mut Vec<T>) {
        lost.extend(self.stuck.take().map(|stuck| stuck.value));
        lost.extend(self.pending.drain(..));
    }

    /// Does one of the things that can be done now, if there is one. What `choosing` makes is dropped if
    /// the partitioner panics.
    pub(super) fn step<G>(&mut self, choosing: impl FnOnce() -> G) -> Option<Placed<T>> {
        if !self.has_started || self.consumers.is_empty() {
            return None;
        }
        if let Some(stuck) = &self.stuck {
            let consumer = stuck.consumer;
            let slot = match consumer {
                Whose::Slot(slot) => Some(slot),
                Whose::Anybody => self.least_loaded(),
            };
            let slot = slot.filter(|slot| self.has_room(*slot))?;
            let stuck = self.stuck.take()?;
            return Some(self.put(slot, stuck.value));
        }
        let value = self.pending.pop_front()?;
        let lost = choosing();
        let placed = self.place(value);
        let _ = ManuallyDrop::new(lost);
        Some(placed)
    }

    /// Has the partitioner choose.
    ///
    /// # Panics
    ///
    /// When the partitioner does, or chooses somebody who is not there. The element is lost then.
    #[inline]
    pub(super) fn place(&mut self, value: T) -> Placed<T> {
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
            None => Placed::Dropped(value),
            Some(slot) if self.has_room(slot) => self.put(slot, value),
            Some(slot) => self.put_elsewhere(slot, value),
        }
    }

    #[inline]
    fn put(&mut self, slot: usize, value: T) -> Placed<T> {
        let Some(outlet) = &mut self.outlets[slot] else {
            return Placed::Dropped(value);
        };
        outlet.sender.write(value);
        outlet.sender.publish();
        outlet.lane.set_sent(outlet.sender.count());
        if !outlet.is_unwoken {
            outlet.is_unwoken = true;
            self.unwoken.push(slot);
        }
        Placed::In
    }

    #[cold]
    fn put_elsewhere(&mut self, slot: usize, value: T) -> Placed<T> {
        let consumer = match self.options.full_consumer {
            FullConsumer::Drop => return Placed::Dropped(value),
            FullConsumer::Wait => Whose::Slot(slot),
            FullConsumer::Reroute => {
                if let Some(least) = self.least_loaded().filter(|least| self.has_room(*least)) {
                    return self.put(least, value);
                }
                Whose::Anybody
            }
        };
        self.stuck = Some(Stuck { value, consumer });
        Placed::Stuck
    }

    #[inline]
    fn has_room(&mut self, slot: usize) -> bool {
        let (Some(most), Some(outlet)) = (self.options.per_consumer, &mut self.outlets[slot])
        else {
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

    /// Wakes those who were sent something since this was called last, after the caller's full fence.
    #[inline]
    pub(super) fn ring_unwoken(&mut self) {
        let mut unwoken = Unwoken(self);
        while unwoken.ring_one() {}
    }

    #[inline]
    pub(super) fn has_unwoken(&self) -> bool {
        !self.unwoken.is_empty()
    }
}

/// Those who are left when this is dropped are woken all the same, so a waker that panics costs nobody
/// else the wake-up.
struct Unwoken<'a, T>(&'a mut Router<T>);

impl<T> Unwoken<'_, T> {
    /// Wakes one of them; whether there was one.
    #[inline]
    fn ring_one(&mut self) -> bool {
        let Some(slot) = self.0.unwoken.pop() else {
            return false;
        };
        if let Some(outlet) = &mut self.0.outlets[slot] {
            outlet.is_unwoken = false;
            // Whatever its waker does: nobody else has the turn, and so the router.
            outlet.lane.bell().ring();
        }
        true
    }
}

impl<T> Drop for Unwoken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        while !self.0.unwoken.is_empty() {
            // Only after a panic of another waker: a second one would abort.
            let _ = catch_unwind(AssertUnwindSafe(|| self.ring_one()));
        }
    }
}

impl<T> Stuck<T> {
    fn is_for(&self, slot: usize) -> bool {
        matches!(self.consumer, Whose::Slot(own) if own == slot)
    }
}

#[cold]
fn no_such_index(choice: i64, count: usize) -> ! {
    panic!("the partitioner chose consumer {choice} of {count}")
}

#[cold]
fn no_such_id(id: i64) -> ! {
    panic!("the partitioner chose consumer {id}, whom there is not")
}
