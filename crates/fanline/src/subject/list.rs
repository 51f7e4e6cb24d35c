//! The observers of a subject, in the order in which they came.
//!
//! Joining and leaving are O(1) and move nobody else: who leaves is replaced by a vacancy, and
//! vacancies are closed up when they are many. Nothing is copied on write.
#![expect(
    unsafe_code,
    reason = "a boxed observer is called by its address, without its box's table"
)]

use std::ops::Range;

use crate::Observer;

/// What can stand where an observer has left.
pub trait Vacant {
    /// Calling it does nothing.
    fn vacant() -> Self;
}

/// An observer as a subject keeps it.
pub trait Entry<T, E>: Vacant + Send {
    /// Passes on a value; whether the observer wants no more.
    fn next(&mut self, value: &T) -> bool;

    /// Passes on values; whether the observer wants no more.
    fn next_slice(&mut self, values: &[T]) -> bool;

    /// Passes on the failure.
    fn error(&mut self, error: &E);

    /// Passes on the completion.
    fn complete(&mut self);

    /// Whether the observer wants no more.
    fn is_closed(&self) -> bool;
}

/// An observer of any type, called indirectly.
pub struct Boxed<T, E> {
    /// `next` of the observer's own type. The box's table has it too, but one load further away, and that
    /// load is a fifth of what a call costs.
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
/// `observer` points to an `O` that nobody else has a reference to.
unsafe fn next_of<T, E, O: Observer<T, E>>(observer: *mut (), value: &T) -> bool {
    // SAFETY: says the caller.
    Erased::next(unsafe { &mut *observer.cast::<O>() }, value)
}

impl<T, E> std::fmt::Debug for Boxed<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Boxed")
    }
}

/// Value and question in one indirect call: asking each observer whether it is closed with a second
/// one would cost as much as the value.
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

/// A boxed one takes no memory, having no size.
pub(super) struct Nobody;

impl<T, E> Observer<T, E> for Nobody {
    fn next(&mut self, _value: &T) {}

    fn next_slice(&mut self, _values: &[T]) {}

    fn error(&mut self, _error: &E) {}

    fn complete(&mut self) {}
}

impl<T, E> Vacant for Boxed<T, E> {
    fn vacant() -> Self {
        Self::new(Nobody)
    }
}

impl<T, E> Entry<T, E> for Boxed<T, E> {
    #[inline(always)]
    fn next(&mut self, value: &T) -> bool {
        let observer = &raw mut *self.observer;
        // SAFETY: `next` was made for the type of what is in the box, which is ours.
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

/// An observer of a type that is known, called directly.
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

/// Lists this short are closed up at once.
const COMPACT_ALWAYS_MAX: usize = 32;

/// Observers in order, each with the number of its [`Place`].
pub(super) struct List<L> {
    entries: Vec<L>,
    places: Vec<u32>,
    vacancies: usize,
}

/// In `List::places`, for a vacancy.
const NOBODY: u32 = u32::MAX;

impl<L: Vacant> List<L> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            places: Vec::new(),
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

    #[inline(always)]
    pub(super) fn as_mut_ptr_range(&mut self) -> Range<*mut L> {
        self.entries.as_mut_ptr_range()
    }

    /// The address of the only entry, or null when there is none or another. Good until one joins, or the list
    /// is closed up.
    pub(super) fn only(&mut self) -> *mut L {
        match &mut self.entries[..] {
            [only] => only,
            _ => std::ptr::null_mut(),
        }
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut L {
        &mut self.entries[index]
    }

    /// The place of the entry at `index`; none for a vacancy.
    pub(super) fn place_at(&self, index: usize) -> Option<u32> {
        Some(self.places[index]).filter(|place| *place != NOBODY)
    }

    /// Adds an entry, and gives its index.
    // Inlined, as `vacate`: an entry that is put on the stack by words and read again as a whole waits
    // for the words to arrive in the cache.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: L, place: u32) -> u32 {
        let index = u32::try_from(self.entries.len()).expect("fewer observers than 2^32");
        self.entries.push(entry);
        self.places.push(place);
        index
    }

    /// Takes the entry at `index` and leaves a vacancy; nobody else moves.
    #[inline(always)]
    pub(super) fn vacate(&mut self, index: u32) -> L {
        let index = index as usize;
        self.places[index] = NOBODY;
        self.vacancies += 1;
        std::mem::replace(&mut self.entries[index], L::vacant())
    }

    /// Closes up vacancies if they are many, or the list short. `moved` is told each place whose index
    /// changes.
    pub(super) fn compact(&mut self, moved: impl FnMut(u32, u32)) {
        self.drop_last_vacancies();
        if self.vacancies > 0 && (self.are_many() || self.entries.len() <= COMPACT_ALWAYS_MAX) {
            self.close_up(moved);
        }
    }

    /// Closes up vacancies if they are many, so that each who leaves has O(1) of the work.
    #[inline(always)]
    pub(super) fn compact_if_many(&mut self, moved: impl FnMut(u32, u32)) {
        self.drop_last_vacancies();
        if self.are_many() {
            self.close_up(moved);
        }
    }

    #[inline(always)]
    fn drop_last_vacancies(&mut self) {
        while self.places.last() == Some(&NOBODY) {
            self.places.pop();
            self.entries.pop();
            self.vacancies -= 1;
        }
    }

    #[inline(always)]
    fn are_many(&self) -> bool {
        self.vacancies * 2 > self.entries.len()
    }

    #[cold]
    fn close_up(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut kept = 0;
        for index in 0..self.entries.len() {
            let place = self.places[index];
            if place == NOBODY {
                continue;
            }
            if kept != index {
                self.entries.swap(kept, index);
                self.places[kept] = place;
                moved(place, u32::try_from(kept).expect("below the length"));
            }
            kept += 1;
        }
        self.entries.truncate(kept);
        self.places.truncate(kept);
        self.vacancies = 0;
    }

    /// Moves everybody to the end of `other`. `moved` is told each place with its index there.
    pub(super) fn move_to(&mut self, other: &mut Self, mut moved: impl FnMut(u32, u32)) {
        for (entry, place) in self.entries.drain(..).zip(self.places.drain(..)) {
            if place != NOBODY {
                moved(place, other.push(entry, place));
            }
        }
        self.vacancies = 0;
        // Kept for those who come next, unless it is more than everybody needs.
        if self.entries.capacity() > other.entries.capacity() {
            *self = Self::new();
        }
    }

    /// Takes everybody, with their places.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (L, u32)> + use<L> {
        self.vacancies = 0;
        let places = std::mem::take(&mut self.places);
        std::mem::take(&mut self.entries)
            .into_iter()
            .zip(places)
            .filter(|(_, place)| *place != NOBODY)
    }
}

/// Where an observer is, by the key that its guard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere; the number is free.
    Free,
    /// It waits to be listed, at this index of those that wait.
    Waiting(u32),
    /// At this index of the list.
    Listed(u32),
    /// In the list at this index still, but has left: whoever emits takes it out.
    Leaving(u32),
}

/// The places of all observers. A key is a number and how often that was used before, so that a guard
/// which outlives its observer means nobody else.
pub(super) struct Places {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    uses: u32,
    place: Place,
}

impl Places {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A number for an observer who is to be somewhere, and the key for its guard.
    #[inline]
    pub(super) fn reserve(&mut self) -> (u32, u64) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                uses: 0,
                place: Place::Free,
            });
            u32::try_from(self.slots.len() - 1).expect("fewer observers than 2^32")
        });
        let uses = self.slots[number as usize].uses;
        (number, u64::from(uses) << 32 | u64::from(number))
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32, place: Place) {
        self.slots[number as usize].place = place;
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Place {
        self.slots[number as usize].place
    }

    /// The number behind a key, unless its observer is gone.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<(u32, Place)> {
        let number = u32::try_from(key & u64::from(u32::MAX)).expect("masked");
        let slot = self.slots.get(number as usize)?;
        (u64::from(slot.uses) == key >> 32).then_some((number, slot.place))
    }

    /// Frees a number; keys of its observer mean nobody from now on.
    #[inline]
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.uses = slot.uses.wrapping_add(1);
        slot.place = Place::Free;
        self.free.push(number);
    }

    /// Frees all numbers in use.
    pub(super) fn release_all(&mut self) {
        for number in 0..u32::try_from(self.slots.len()).expect("fewer observers than 2^32") {
            if self.get(number) != Place::Free {
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

    /// An observer by number.
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

    /// The list with its places, and a vector of who is there as the twin.
    struct Pair {
        list: List<Named>,
        places: Places,
        /// Name and key, in order.
        twin: Vec<(u32, u64)>,
        gone: Vec<u64>,
        joined: u32,
    }

    impl Pair {
        fn leave(&mut self, at: usize) {
            let (name, key) = self.twin.remove(at);
            let Some((place, Place::Listed(index))) = self.places.find(key) else {
                panic!("{name} is not where it was")
            };
            self.places.release(place);
            assert_eq!(self.list.vacate(index).0, Some(name));
            self.gone.push(key);
        }

        fn apply(&mut self, op: &Op) {
            match *op {
                Op::Join => {
                    let (place, key) = self.places.reserve();
                    let index = self.list.push(Named(Some(self.joined)), place);
                    self.places.set(place, Place::Listed(index));
                    self.twin.push((self.joined, key));
                    self.joined += 1;
                }
                Op::Leave(at) if !self.twin.is_empty() => self.leave(at % self.twin.len()),
                Op::Leave(_) => {}
                Op::LeaveMany(step) => {
                    for at in (0..self.twin.len()).rev().step_by(step) {
                        self.leave(at);
                    }
                }
                Op::Compact => {
                    let places = &mut self.places;
                    self.list
                        .compact(|place, index| places.set(place, Place::Listed(index)));
                    let most = (2 * self.twin.len()).max(COMPACT_ALWAYS_MAX);
                    assert!(self.list.len() <= most, "vacancies that stay");
                }
                Op::CompactIfMany => {
                    let places = &mut self.places;
                    self.list
                        .compact_if_many(|place, index| places.set(place, Place::Listed(index)));
                    assert!(
                        self.list.len() <= 2 * self.twin.len(),
                        "vacancies that stay"
                    );
                }
                Op::MoveTo => {
                    let mut other = List::new();
                    let places = &mut self.places;
                    self.list.move_to(&mut other, |place, index| {
                        places.set(place, Place::Listed(index))
                    });
                    assert!(self.list.is_empty());
                    self.list = other;
                }
                Op::Take => {
                    let taken = self.list.take().map(|(named, _)| named.0);
                    assert!(taken.eq(self.twin.iter().map(|(name, _)| Some(*name))));
                    self.places.release_all();
                    self.gone.extend(self.twin.drain(..).map(|(_, key)| key));
                }
            }
        }

        fn check(&self) {
            let present = self.list.entries.iter().filter_map(|named| named.0);
            assert!(present.eq(self.twin.iter().map(|(name, _)| *name)));
            for (name, key) in &self.twin {
                let Some((place, Place::Listed(index))) = self.places.find(*key) else {
                    panic!("{name} has no place")
                };
                assert_eq!(self.list.place_at(index as usize), Some(place));
                assert_eq!(self.list.entries[index as usize].0, Some(*name));
            }
            assert!(self.gone.iter().all(|key| self.places.find(*key).is_none()));
            let keys: HashMap<u64, u32> =
                self.twin.iter().map(|(name, key)| (*key, *name)).collect();
            assert_eq!(keys.len(), self.twin.len(), "two have the same key");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn as_a_vector_would(ops in prop::collection::vec(op(), 1..200)) {
            let mut pair = Pair {
                list: List::new(),
                places: Places::new(),
                twin: Vec::new(),
                gone: Vec::new(),
                joined: 0,
            };
            for op in ops {
                pair.apply(&op);
                pair.check();
            }
        }
    }
}
