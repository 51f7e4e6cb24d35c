//! The observers of a subject, in the order of their subscription.
//!
//! Joining and leaving are O(1) and move no other observer. An observer that leaves is replaced by a
//! vacancy; many vacancies are compacted. Nothing is copied on write.
#![expect(
    unsafe_code,
    reason = "a boxed observer is called by its address, without its box's table"
)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::Observer;

/// An entry that can be replaced by a vacancy.
pub trait Vacant {
    /// Creates a vacancy: an entry that does nothing when it is called.
    fn vacant() -> Self;
}

/// An observer as a subject stores it: [`Boxed`] or [`Inline`]. It cannot be implemented outside this crate.
pub trait Entry<T, E>: Vacant + Send {
    /// Emits a value. Returns whether the observer is closed.
    #[doc(hidden)]
    fn next(&mut self, value: &T) -> bool;

    /// Emits values. Returns whether the observer is closed.
    #[doc(hidden)]
    fn next_slice(&mut self, values: &[T]) -> bool;

    /// Reports the error.
    #[doc(hidden)]
    fn error(&mut self, error: &E);

    /// Reports the completion.
    #[doc(hidden)]
    fn complete(&mut self);

    /// Returns whether the observer is closed.
    #[doc(hidden)]
    fn is_closed(&self) -> bool;
}

/// An observer of any type, called indirectly.
pub struct Boxed<T, E> {
    /// `next` of the observer's type. The box's vtable contains it too, but reading it there takes one more
    /// load, a fifth of the cost of a call.
    next: unsafe fn(*mut (), &T) -> bool,
    observer: Box<dyn Erased<T, E> + Send>,
}

impl<T, E> Boxed<T, E> {
    pub(crate) fn new<O: Observer<T, E> + Send + 'static>(observer: O) -> Self {
        Self {
            next: next_of::<T, E, O>,
            observer: Box::new(observer),
        }
    }
}

/// # Safety
///
/// `observer` points to an `O` to which no other reference exists.
unsafe fn next_of<T, E, O: Observer<T, E>>(observer: *mut (), value: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    Erased::next(unsafe { &mut *observer.cast::<O>() }, value)
}

impl<T, E> core::fmt::Debug for Boxed<T, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Boxed")
    }
}

/// An observer of any type. One indirect call passes a value and returns whether the observer is closed. A
/// second call for that result would cost as much as the first.
pub(super) trait Erased<T, E> {
    fn next(&mut self, value: &T) -> bool;
    fn next_slice(&mut self, values: &[T]) -> bool;
    fn error(&mut self, error: &E);
    fn complete(&mut self);
    fn is_closed(&self) -> bool;
}

impl<T, E, O: Observer<T, E>> Erased<T, E> for O {
    #[inline]
    fn next(&mut self, value: &T) -> bool {
        Observer::next(self, value);
        Observer::is_closed(self)
    }

    fn next_slice(&mut self, values: &[T]) -> bool {
        Observer::next_slice(self, values);
        Observer::is_closed(self)
    }

    fn error(&mut self, error: &E) {
        Observer::error(self, error);
    }

    fn complete(&mut self) {
        Observer::complete(self);
    }

    fn is_closed(&self) -> bool {
        Observer::is_closed(self)
    }
}

/// An observer that does nothing. A boxed one allocates nothing, because the type has size 0.
pub(super) struct NoOp;

impl<T, E> Observer<T, E> for NoOp {
    fn next(&mut self, _value: &T) {}

    fn next_slice(&mut self, _values: &[T]) {}

    fn error(&mut self, _error: &E) {}

    fn complete(&mut self) {}
}

impl<T, E> Vacant for Boxed<T, E> {
    fn vacant() -> Self {
        Self::new(NoOp)
    }
}

impl<T, E> Entry<T, E> for Boxed<T, E> {
    #[inline(always)]
    fn next(&mut self, value: &T) -> bool {
        let observer = &raw mut *self.observer;
        // SAFETY: `next` was made for the type in the box, and `&mut self` gives exclusive access to it.
        unsafe { (self.next)(observer.cast(), value) }
    }

    #[inline(always)]
    fn next_slice(&mut self, values: &[T]) -> bool {
        self.observer.next_slice(values)
    }

    fn error(&mut self, error: &E) {
        self.observer.error(error);
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    fn is_closed(&self) -> bool {
        self.observer.is_closed()
    }
}

/// An observer of a known type, called directly.
#[derive(Debug)]
pub struct Inline<O>(Option<O>);

impl<O> Inline<O> {
    pub(crate) fn new(observer: O) -> Self {
        Self(Some(observer))
    }
}

impl<O> Vacant for Inline<O> {
    fn vacant() -> Self {
        Self(None)
    }
}

impl<T, E, O: Observer<T, E> + Send> Entry<T, E> for Inline<O> {
    #[inline(always)]
    fn next(&mut self, value: &T) -> bool {
        self.0.as_mut().is_some_and(|observer| {
            observer.next(value);
            observer.is_closed()
        })
    }

    #[inline(always)]
    fn next_slice(&mut self, values: &[T]) -> bool {
        self.0.as_mut().is_some_and(|observer| {
            observer.next_slice(values);
            observer.is_closed()
        })
    }

    fn error(&mut self, error: &E) {
        if let Some(observer) = &mut self.0 {
            observer.error(error);
        }
    }

    fn complete(&mut self) {
        if let Some(observer) = &mut self.0 {
            observer.complete();
        }
    }

    fn is_closed(&self) -> bool {
        self.0.as_ref().is_some_and(O::is_closed)
    }
}

/// Lists up to this length are compacted even for one vacancy.
const COMPACT_ALWAYS_MAX: usize = 32;

/// Observers in order, each with the number of its slot in [`Slots`].
pub(super) struct List<L> {
    entries: Vec<L>,
    slots: Vec<u32>,
    vacancies: usize,
}

/// A vacancy in `List::slots`.
const VACANT: u32 = u32::MAX;

impl<L: Vacant> List<L> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            slots: Vec::new(),
            vacancies: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the addresses of the entries. They are those of the vector itself, not of a slice, so that
    /// accesses to the list between two calls of observers do not invalidate them.
    #[inline(always)]
    pub(super) fn as_mut_ptr_range(&mut self) -> Range<*mut L> {
        let start = self.entries.as_mut_ptr();
        start..start.wrapping_add(self.entries.len())
    }

    /// Returns the address of the only entry; null if the list has no entry or several. Valid until an
    /// entry is added or the list is compacted, as in [`as_mut_ptr_range`](Self::as_mut_ptr_range).
    pub(super) fn only(&mut self) -> *mut L {
        match self.entries.len() {
            1 => self.entries.as_mut_ptr(),
            _ => core::ptr::null_mut(),
        }
    }

    /// Returns the entries from `index` on.
    #[inline]
    pub(super) fn iter_mut_from(&mut self, index: usize) -> core::slice::IterMut<'_, L> {
        self.entries[index..].iter_mut()
    }

    /// Returns the slot of the entry at `index`; `None` for a vacancy.
    pub(super) fn slot_at(&self, index: usize) -> Option<u32> {
        Some(self.slots[index]).filter(|slot| *slot != VACANT)
    }

    /// Adds an entry, and returns its index.
    // Inlined, like `vacate`. Otherwise an entry is written to the stack word by word and read back as a
    // whole, which stalls on store forwarding.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: L, slot: u32) -> u32 {
        let index = u32::try_from(self.entries.len()).expect("fewer observers than 2^32");
        self.entries.push(entry);
        self.slots.push(slot);
        index
    }

    /// Removes the entry at `index` and leaves a vacancy; the others do not move.
    #[inline(always)]
    pub(super) fn vacate(&mut self, index: u32) -> L {
        let index = index as usize;
        self.slots[index] = VACANT;
        self.vacancies += 1;
        core::mem::replace(&mut self.entries[index], L::vacant())
    }

    /// Removes vacancies if there are many of them or the list is short. Calls `moved` with each slot whose
    /// index changes.
    pub(super) fn compact(&mut self, moved: impl FnMut(u32, u32)) {
        self.remove_last_vacancies();
        if self.vacancies > 0 && (self.are_many() || self.entries.len() <= COMPACT_ALWAYS_MAX) {
            self.remove_vacancies(moved);
        }
    }

    /// Removes vacancies if there are many of them, so that the cost per leaving observer is O(1).
    #[inline(always)]
    pub(super) fn compact_if_many(&mut self, moved: impl FnMut(u32, u32)) {
        self.remove_last_vacancies();
        if self.are_many() {
            self.remove_vacancies(moved);
        }
    }

    #[inline(always)]
    fn remove_last_vacancies(&mut self) {
        while self.slots.last() == Some(&VACANT) {
            self.slots.pop();
            self.entries.pop();
            self.vacancies -= 1;
        }
    }

    #[inline(always)]
    fn are_many(&self) -> bool {
        self.vacancies * 2 > self.entries.len()
    }

    #[cold]
    fn remove_vacancies(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut retained = 0;
        for index in 0..self.entries.len() {
            let slot = self.slots[index];
            if slot == VACANT {
                continue;
            }
            if retained != index {
                self.entries.swap(retained, index);
                self.slots[retained] = slot;
                moved(slot, u32::try_from(retained).expect("below the length"));
            }
            retained += 1;
        }
        self.entries.truncate(retained);
        self.slots.truncate(retained);
        self.vacancies = 0;
    }

    /// Moves all entries to the end of `other`. Calls `moved` with each slot and its new index.
    pub(super) fn move_to(&mut self, other: &mut Self, mut moved: impl FnMut(u32, u32)) {
        for (entry, slot) in self.entries.drain(..).zip(self.slots.drain(..)) {
            if slot != VACANT {
                moved(slot, other.push(entry, slot));
            }
        }
        self.vacancies = 0;
        // This list is empty now. It retains its memory for later entries, unless it has more memory than
        // `other`.
        if self.entries.capacity() > other.entries.capacity() {
            *self = Self::new();
        }
    }

    /// Removes all entries, and returns them with their slots.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (L, u32)> + use<L> {
        self.vacancies = 0;
        let slots = core::mem::take(&mut self.slots);
        core::mem::take(&mut self.entries)
            .into_iter()
            .zip(slots)
            .filter(|(_, slot)| *slot != VACANT)
    }
}

/// The state of a slot: where its observer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Not in use.
    Free,
    /// The observer waits to be listed, at this index of the waiting observers.
    Waiting(u32),
    /// The observer is at this index of the list.
    Listed(u32),
    /// The observer has unsubscribed but is still at this index of the list; the emitter removes it.
    Leaving(u32),
}

/// The slots of all observers. A key consists of a slot number and the slot's generation, so that a guard
/// that outlives its observer does not refer to another observer.
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    state: SlotState,
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Reserves a slot for an observer. Returns its number and the key for its guard.
    #[inline]
    pub(super) fn reserve(&mut self) -> (u32, u64) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                state: SlotState::Free,
            });
            u32::try_from(self.slots.len() - 1).expect("fewer observers than 2^32")
        });
        let generation = self.slots[number as usize].generation;
        (number, u64::from(generation) << 32 | u64::from(number))
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32, state: SlotState) {
        self.slots[number as usize].state = state;
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> SlotState {
        self.slots[number as usize].state
    }

    /// Returns the slot number and state for a key, or `None` if its observer is gone.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<(u32, SlotState)> {
        let number = u32::try_from(key & u64::from(u32::MAX)).expect("masked");
        let slot = self.slots.get(number as usize)?;
        (u64::from(slot.generation) == key >> 32).then_some((number, slot.state))
    }

    /// Frees a slot; keys of its observer become invalid.
    #[inline]
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.state = SlotState::Free;
        self.free.push(number);
    }

    /// Frees all slots in use.
    pub(super) fn release_all(&mut self) {
        for number in 0..u32::try_from(self.slots.len()).expect("fewer observers than 2^32") {
            if self.get(number) != SlotState::Free {
                self.release(number);
            }
        }
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// An observer with a name.
    struct Named(Option<u32>);

    impl Vacant for Named {
        fn vacant() -> Self {
            Self(None)
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Join,
        Leave(usize),
        LeaveMany(usize),
        Compact,
        CompactIfMany,
        MoveTo,
        Take,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            20 => Just(Op::Join),
            6 => (0usize..100).prop_map(Op::Leave),
            1 => (2usize..5).prop_map(Op::LeaveMany),
            4 => Just(Op::Compact),
            4 => Just(Op::CompactIfMany),
            1 => Just(Op::MoveTo),
            1 => Just(Op::Take),
        ]
    }

    /// The list with its slots, and a vector as the model.
    struct Pair {
        list: List<Named>,
        slots: Slots,
        /// Name and key, in order.
        model: Vec<(u32, u64)>,
        removed: Vec<u64>,
        joined: u32,
    }

    impl Pair {
        fn leave(&mut self, at: usize) {
            let (name, key) = self.model.remove(at);
            let Some((slot, SlotState::Listed(index))) = self.slots.find(key) else {
                panic!("{name} is not where it was")
            };
            self.slots.release(slot);
            assert_eq!(self.list.vacate(index).0, Some(name));
            self.removed.push(key);
        }

        fn apply(&mut self, op: &Op) {
            match *op {
                Op::Join => {
                    let (slot, key) = self.slots.reserve();
                    let index = self.list.push(Named(Some(self.joined)), slot);
                    self.slots.set(slot, SlotState::Listed(index));
                    self.model.push((self.joined, key));
                    self.joined += 1;
                }
                Op::Leave(at) if !self.model.is_empty() => self.leave(at % self.model.len()),
                Op::Leave(_) => {}
                Op::LeaveMany(step) => {
                    for at in (0..self.model.len()).rev().step_by(step) {
                        self.leave(at);
                    }
                }
                Op::Compact => {
                    let slots = &mut self.slots;
                    self.list
                        .compact(|slot, index| slots.set(slot, SlotState::Listed(index)));
                    let most = (2 * self.model.len()).max(COMPACT_ALWAYS_MAX);
                    assert!(self.list.len() <= most, "too many vacancies remain");
                }
                Op::CompactIfMany => {
                    let slots = &mut self.slots;
                    self.list
                        .compact_if_many(|slot, index| slots.set(slot, SlotState::Listed(index)));
                    assert!(
                        self.list.len() <= 2 * self.model.len(),
                        "too many vacancies remain"
                    );
                }
                Op::MoveTo => {
                    let mut other = List::new();
                    let slots = &mut self.slots;
                    self.list.move_to(&mut other, |slot, index| {
                        slots.set(slot, SlotState::Listed(index))
                    });
                    assert!(self.list.is_empty());
                    self.list = other;
                }
                Op::Take => {
                    let taken = self.list.take().map(|(named, _)| named.0);
                    assert!(taken.eq(self.model.iter().map(|(name, _)| Some(*name))));
                    self.slots.release_all();
                    self.removed
                        .extend(self.model.drain(..).map(|(_, key)| key));
                }
            }
        }

        fn check(&self) {
            let present = self.list.entries.iter().filter_map(|named| named.0);
            assert!(present.eq(self.model.iter().map(|(name, _)| *name)));
            for (name, key) in &self.model {
                let Some((slot, SlotState::Listed(index))) = self.slots.find(*key) else {
                    panic!("{name} has no slot")
                };
                assert_eq!(self.list.slot_at(index as usize), Some(slot));
                assert_eq!(self.list.entries[index as usize].0, Some(*name));
            }
            assert!(
                self.removed
                    .iter()
                    .all(|key| self.slots.find(*key).is_none())
            );
            let keys: HashMap<u64, u32> =
                self.model.iter().map(|(name, key)| (*key, *name)).collect();
            assert_eq!(
                keys.len(),
                self.model.len(),
                "two observers have the same key"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn behaves_like_a_vector(
            ops in prop::collection::vec(op(), 1..if cfg!(miri) { 40 } else { 200 }),
        ) {
            let mut pair = Pair {
                list: List::new(),
                slots: Slots::new(),
                model: Vec::new(),
                removed: Vec::new(),
                joined: 0,
            };
            for op in ops {
                pair.apply(&op);
                pair.check();
            }
        }
    }
}
