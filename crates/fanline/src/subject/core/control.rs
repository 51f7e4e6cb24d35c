//! What the lock of a subject's inside protects.

use super::{End, Panic};
use crate::subject::list::{List, Place, Places, Vacant};

/// What the lock protects.
pub(super) struct Control<E, L> {
    /// Who subscribed and is not in the list yet.
    pub(super) waiting: List<L>,
    pub(super) places: Places,
    /// Numbers of those in the list who have left while observers were called.
    pub(super) leaving: Vec<u32>,
    pub(super) end: Option<End<E>>,
    /// Whether the emitter has to give up values when observers are not called any more.
    pub(super) to_give_up: bool,
    /// What the first observer to panic threw, until the emission is over.
    pub(super) panic: Option<Panic>,
    /// How many threads wait for an observer to have left.
    pub(super) waiters: usize,
    /// See [`Gate::halt`].
    pub(super) fenced: bool,
    /// How many references to the core guards have left behind, for guards to come: each spares two
    /// read-modify-writes of the count of references.
    pub(super) spare: usize,
    /// Whether nobody owns the core any more, so that no reference may be left behind.
    pub(super) abandoned: bool,
}

impl<E, L: Vacant> Control<E, L> {
    pub(super) fn new() -> Self {
        Self {
            waiting: List::new(),
            places: Places::new(),
            leaving: Vec::new(),
            end: None,
            to_give_up: false,
            panic: None,
            waiters: 0,
            fenced: false,
            spare: 0,
            abandoned: false,
        }
    }

    /// Lets somebody wait to be put into the list. Gives the key for his guard.
    #[inline(always)]
    pub(super) fn wait(&mut self, entry: L) -> u64 {
        let (place, key) = self.places.reserve();
        let index = self.waiting.push(entry, place);
        self.places.set(place, Place::Waiting(index));
        key
    }

    /// Puts somebody into the list, behind those who wait. Gives the key for his guard.
    #[inline(always)]
    pub(super) fn join(&mut self, list: &mut List<L>, entry: L) -> u64 {
        if !self.waiting.is_empty() {
            self.admit(list);
        }
        let (place, key) = self.places.reserve();
        let index = list.push(entry, place);
        self.places.set(place, Place::Listed(index));
        key
    }

    /// Takes those out of the list who have left; when the subject was disposed of, everybody.
    #[inline]
    pub(super) fn let_go(&mut self, list: &mut List<L>, gone: &mut Vec<L>) {
        while let Some(place) = self.leaving.pop() {
            if matches!(self.places.get(place), Place::Leaving(_)) {
                gone.push(self.expel(list, place));
            }
        }
        if matches!(self.end, Some(End::Disposed)) {
            for index in 0..list.len() {
                if let Some(place) = list.place_at(index) {
                    gone.push(self.expel(list, place));
                }
            }
        }
    }

    /// Puts those into the list who wait.
    pub(super) fn admit(&mut self, list: &mut List<L>) {
        let places = &mut self.places;
        self.waiting
            .move_to(list, |place, index| places.set(place, Place::Listed(index)));
    }

    /// Takes one out of the list.
    #[inline(always)]
    pub(super) fn expel(&mut self, list: &mut List<L>, place: u32) -> L {
        let (Place::Listed(index) | Place::Leaving(index)) = self.places.get(place) else {
            unreachable!("only those in the list are taken out of it");
        };
        self.places.release(place);
        list.vacate(index)
    }

    /// Closes up the list, in which nobody may be left who has left, for an emission.
    pub(super) fn close_up(&mut self, list: &mut List<L>) {
        let places = &mut self.places;
        list.compact(|place, index| places.set(place, Place::Listed(index)));
    }

    /// The same if there are many vacancies: between emissions they are in nobody's way.
    #[inline(always)]
    pub(super) fn close_up_if_many(&mut self, list: &mut List<L>) {
        let places = &mut self.places;
        list.compact_if_many(|place, index| places.set(place, Place::Listed(index)));
    }

    /// Takes one out of those who wait.
    #[inline(always)]
    pub(super) fn turn_away(&mut self, place: u32, index: u32) -> L {
        let entry = self.waiting.vacate(index);
        self.places.release(place);
        let places = &mut self.places;
        self.waiting
            .compact_if_many(|place, index| places.set(place, Place::Waiting(index)));
        entry
    }
}
