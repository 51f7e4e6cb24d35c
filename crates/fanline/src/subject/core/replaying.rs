//! Replay of retained values to a subscriber, while later values are emitted.
#![expect(unsafe_code, reason = "the store is reached by the rules of the gate")]

use std::ptr::NonNull;

use super::control::Control;
use super::{Core, End};
use crate::clock::Time;
use crate::subject::gate::Halted;
use crate::subject::list::Entry;
use crate::subject::log::Evicted;
use crate::subject::policy::Rules;

/// A replay of the retained values and of those emitted meanwhile. While it is open, unread values stay in
/// memory.
pub(super) struct Replaying<'a, T, E, P: Rules, L: Entry<T, E>> {
    core: &'a Core<T, E, P, L>,
    /// Position of the next value; `None` before the replay begins.
    pub(super) next: Option<usize>,
    pinned: bool,
    /// Whether the replay has begun and not finished.
    open: bool,
}

impl<'a, T, E, P: Rules, L: Entry<T, E>> Replaying<'a, T, E, P, L> {
    pub(super) fn new(core: &'a Core<T, E, P, L>) -> Self {
        Self {
            core,
            next: None,
            pinned: false,
            open: false,
        }
    }

    /// Returns the next contiguous values, or `None` after the last value. They stay in place until the
    /// replay is over. The first call skips values that are too old at `now`. `halted` is the result of
    /// `Gate::halt`.
    pub(super) fn advance(
        &mut self,
        control: &mut Control<E, L>,
        halted: Halted,
        now: Time,
    ) -> Option<NonNull<[T]>> {
        let core = self.core;
        let replays = match control.end {
            None => P::REPLAYS_LIVE,
            Some(End::Completed) => P::REPLAYS_COMPLETED,
            Some(End::Failed(_)) => P::REPLAYS_FAILED,
            Some(End::Disposed) => false,
        };
        self.open = true;
        let frozen = control.end.is_some() && core.policy.freezes();
        if self.next.is_none() && !frozen {
            // SAFETY: the emitter is halted and the lock is held.
            unsafe { (*core.gate.store()).trim(&core.policy, now) };
            // The values are evicted after the replay: by `finish`, or by the emitter if it is calling.
            control.must_evict |= halted == Halted::Calling;
        }
        // SAFETY: as above.
        let log = unsafe { &mut (*core.gate.store()).log };
        let start = if replays { log.first() } else { log.end() };
        let next = *self.next.get_or_insert(start);
        if next == log.end() {
            return None;
        }
        if !self.pinned {
            log.pin();
            self.pinned = true;
        }
        let values = log.slice_from(next);
        self.next = Some(next + values.len());
        Some(values)
    }

    /// Returns the last retained value, which stays in place until the replay is over.
    pub(super) fn pin_last(&mut self, control: &mut Control<E, L>) -> Option<NonNull<T>> {
        self.core.gate.halt(&mut control.fenced);
        self.open = true;
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.core.gate.store() };
        store.trim_by_count(&self.core.policy);
        if store.log.first() == store.log.end() {
            return None;
        }
        store.log.pin();
        self.pinned = true;
        Some(store.log.slice_from(store.log.end() - 1).cast())
    }

    /// Ends the replay, and evicts values that are neither retained nor being read. `halted` is the result of
    /// `Gate::halt`.
    pub(super) fn finish(&mut self, control: &mut Control<E, L>, halted: Halted) -> Evicted<T> {
        if !std::mem::take(&mut self.open) {
            return Evicted::Nothing;
        }
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.core.gate.store() };
        if std::mem::take(&mut self.pinned) {
            store.log.unpin();
        }
        if halted == Halted::Calling {
            control.must_evict = true;
            return Evicted::Nothing;
        }
        store.trim_by_count(&self.core.policy);
        store.log.evict()
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Drop for Replaying<'_, T, E, P, L> {
    fn drop(&mut self) {
        if self.open {
            let mut control = self.core.control.lock();
            let halted = self.core.gate.halt(&mut control.fenced);
            let values = self.finish(&mut control, halted);
            drop(control);
            drop(values);
        }
    }
}
