//! The state that the lock of a subject protects.

use super::Panic;
use crate::subject::end::End;
use crate::subject::list::{List, SlotState, Slots, Vacant};

/// The state under the lock.
pub(super) struct Control<E, L> {
    /// Subscribers that are not yet in the list.
    pub(super) waiting: List<L>,
    pub(super) slots: Slots,
    /// Slots of observers in the list that have unsubscribed while observers were called.
    pub(super) leaving: Vec<u32>,
    pub(super) end: Option<End<E>>,
    /// Whether the emitter must evict values after the calls of observers.
    pub(super) must_evict: bool,
    /// The payload of the first panic, until the emission is over.
    pub(super) panic: Option<Panic>,
    /// Number of threads that wait until an observer is removed.
    pub(super) waiters: usize,
    /// Whether the heavy fence was executed since the signal was raised; see [`Gate::halt`].
    pub(super) fenced: bool,
    /// Number of counted references to the core that dropped guards have left behind. New guards take them
    /// over, which saves two read-modify-writes of the reference count each time.
    pub(super) spare: usize,
    /// Whether the core has no owner any more, so that guards must release their references.
    pub(super) abandoned: bool,
}

impl<E, L: Vacant> Control<E, L> {
    pub(super) fn new() -> Self {
        Self {
            waiting: List::new(),
            slots: Slots::new(),
            leaving: Vec::new(),
            end: None,
            must_evict: false,
            panic: None,
            waiters: 0,
            fenced: false,
            spare: 0,
            abandoned: false,
        }
    }

    /// Adds an entry to `waiting`, the entries that will join the list later. Returns the key for the entry's
    /// guard.
    #[inline(always)]
    pub(super) fn wait(&mut self, entry: L) -> u64 {
        let (slot, key) = self.slots.reserve();
        let index = self.waiting.push(entry, slot);
        self.slots.set(slot, SlotState::Waiting(index));
        key
    }

    /// Adds an entry to the list, after all waiting entries. Returns the key for its guard.
    #[inline(always)]
    pub(super) fn join(&mut self, list: &mut List<L>, entry: L) -> u64 {
        if !self.waiting.is_empty() {
            self.admit_waiting(list);
        }
        let (slot, key) = self.slots.reserve();
        let index = list.push(entry, slot);
        self.slots.set(slot, SlotState::Listed(index));
        key
    }

    /// Removes the observers that have unsubscribed, or all observers if the subject is disposed of.
    #[inline]
    pub(super) fn remove_leaving(&mut self, list: &mut List<L>, removed: &mut Vec<L>) {
        while let Some(slot) = self.leaving.pop() {
            if matches!(self.slots.get(slot), SlotState::Leaving(_)) {
                removed.push(self.remove_listed(list, slot));
            }
        }
        if matches!(self.end, Some(End::Disposed)) {
            for index in 0..list.len() {
                if let Some(slot) = list.slot_at(index) {
                    removed.push(self.remove_listed(list, slot));
                }
            }
        }
    }

    /// Moves the waiting entries to the list.
    pub(super) fn admit_waiting(&mut self, list: &mut List<L>) {
        let slots = &mut self.slots;
        self.waiting.move_to(list, |slot, index| {
            slots.set(slot, SlotState::Listed(index))
        });
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

    /// Removes an entry that waits for the list.
    #[inline(always)]
    pub(super) fn remove_waiting(&mut self, slot: u32, index: u32) -> L {
        let entry = self.waiting.vacate(index);
        self.slots.release(slot);
        let slots = &mut self.slots;
        self.waiting
            .compact_if_many(|slot, index| slots.set(slot, SlotState::Waiting(index)));
        entry
    }
}
