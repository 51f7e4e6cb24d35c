//! The registrations of a subject's observers, whether they are in its [`List`] yet or not.

use super::list::{List, SlotState, Slots, Vacant};
use alloc::boxed::Box;
use alloc::vec::Vec;

pub(super) struct Registrations<L> {
    slots: Slots,
    /// Allocated at its first use, because most subjects never need it.
    deferred: Option<Box<Deferred<L>>>,
}

/// Changes of the list that were made while observers were called, and that the emitter has yet to apply.
struct Deferred<L> {
    /// Subscribers that are not yet in the list.
    waiting: List<L>,
    /// Slots of observers in the list that have unsubscribed.
    leaving: Vec<u32>,
}

impl<L: Vacant> Registrations<L> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            deferred: None,
        }
    }

    fn deferred(&mut self) -> &mut Deferred<L> {
        self.deferred.get_or_insert_with(|| {
            Box::new(Deferred {
                waiting: List::new(),
                leaving: Vec::new(),
            })
        })
    }

    /// Returns the slot and the state of an observer, or `None` if it is gone.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<(u32, SlotState)> {
        self.slots.find(key)
    }

    /// Returns whether an observer is subscribed.
    pub(super) fn contains(&self, key: u64) -> bool {
        matches!(
            self.find(key),
            Some((_, SlotState::Waiting(_) | SlotState::Listed(_)))
        )
    }

    /// Returns whether the observer in the list with this slot is subscribed.
    pub(super) fn is_subscribed(&self, slot: u32) -> bool {
        matches!(self.slots.get(slot), SlotState::Listed(_))
    }

    /// Adds an entry to those that will join the list later. Returns the key for the entry's guard.
    #[inline(always)]
    pub(super) fn wait(&mut self, entry: L) -> u64 {
        let (slot, key) = self.slots.reserve();
        let index = self.deferred().waiting.push(entry, slot);
        self.slots.set(slot, SlotState::Waiting(index));
        key
    }

    /// Adds an entry to the list, after all waiting entries. Returns the key for its guard.
    #[inline(always)]
    pub(super) fn join(&mut self, list: &mut List<L>, entry: L) -> u64 {
        self.admit_waiting(list);
        let (slot, key) = self.slots.reserve();
        let index = list.push(entry, slot);
        self.slots.set(slot, SlotState::Listed(index));
        key
    }

    /// Moves the waiting entries to the list.
    #[inline]
    pub(super) fn admit_waiting(&mut self, list: &mut List<L>) {
        let slots = &mut self.slots;
        if let Some(deferred) = &mut self.deferred
            && !deferred.waiting.is_empty()
        {
            deferred.waiting.move_to(list, |slot, index| {
                slots.set(slot, SlotState::Listed(index))
            });
        }
    }

    /// Removes all waiting entries.
    pub(super) fn take_waiting(&mut self) -> Vec<L> {
        let Some(deferred) = &mut self.deferred else {
            return Vec::new();
        };
        let slots = &mut self.slots;
        let release = |(entry, slot)| {
            slots.release(slot);
            entry
        };
        deferred.waiting.take().map(release).collect()
    }

    /// Removes all entries from the list.
    pub(super) fn take_listed(&mut self, list: &mut List<L>) -> impl Iterator<Item = L> + use<L> {
        if let Some(deferred) = &mut self.deferred {
            deferred.leaving.clear();
        }
        self.slots.release_all();
        list.take().map(|(entry, _)| entry)
    }

    /// Marks an entry of the list, at `index`, as unsubscribed. The emitter removes it.
    #[inline]
    pub(super) fn leave(&mut self, slot: u32, index: u32) {
        self.slots.set(slot, SlotState::Leaving(index));
        self.deferred().leaving.push(slot);
    }

    /// Removes the entries that have unsubscribed from the list.
    #[inline]
    pub(super) fn remove_leaving(&mut self, list: &mut List<L>, removed: &mut Vec<L>) {
        while let Some(slot) = self.next_leaving() {
            if matches!(self.slots.get(slot), SlotState::Leaving(_)) {
                removed.push(self.remove_listed(list, slot));
            }
        }
    }

    fn next_leaving(&mut self) -> Option<u32> {
        self.deferred.as_mut()?.leaving.pop()
    }

    /// Removes all entries from the list, and leaves vacancies.
    pub(super) fn remove_all(&mut self, list: &mut List<L>, removed: &mut Vec<L>) {
        for index in 0..list.len() {
            if let Some(slot) = list.slot_at(index) {
                removed.push(self.remove_listed(list, slot));
            }
        }
    }

    /// Removes an entry from the list.
    #[inline(always)]
    pub(super) fn remove_listed(&mut self, list: &mut List<L>, slot: u32) -> L {
        let (SlotState::Listed(index) | SlotState::Leaving(index)) = self.slots.get(slot) else {
            unreachable!("only listed observers are removed from the list");
        };
        self.slots.release(slot);
        list.vacate(index)
    }

    /// Removes an entry that waits for the list.
    #[inline(always)]
    pub(super) fn remove_waiting(&mut self, slot: u32, index: u32) -> L {
        self.slots.release(slot);
        let waiting = &mut self.deferred.as_mut().expect("the entry waits").waiting;
        let entry = waiting.vacate(index);
        let slots = &mut self.slots;
        waiting.compact_if_many(|slot, index| slots.set(slot, SlotState::Waiting(index)));
        entry
    }

    /// Compacts the list before an emission. All observers that have unsubscribed must have been removed.
    pub(super) fn compact(&mut self, list: &mut List<L>) {
        let slots = &mut self.slots;
        list.compact(|slot, index| slots.set(slot, SlotState::Listed(index)));
    }

    /// Compacts the list if it has many vacancies. A few may stay; they cost nothing between emissions.
    #[inline(always)]
    pub(super) fn compact_if_many(&mut self, list: &mut List<L>) {
        let slots = &mut self.slots;
        list.compact_if_many(|slot, index| slots.set(slot, SlotState::Listed(index)));
    }
}
