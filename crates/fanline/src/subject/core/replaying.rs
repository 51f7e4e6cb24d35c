//! Replay of retained values to a subscriber, while later values are emitted.
#![expect(unsafe_code, reason = "the store is reached by the rules of the gate")]

use core::ptr::NonNull;

use super::Core;
use super::control::Control;
use crate::clock::Time;
use crate::subject::end::End;
use crate::subject::gate::Halted;
use crate::subject::list::Entry;
use crate::subject::log::Evicted;
use crate::subject::policy::Rules;

/// Maximum number of values in a batch, unless one slice of the log is longer. A disposal ends a replay only
/// between two batches. So a subscriber that disposes of the subject during a replay receives the same values,
/// whatever the sizes of the log's chunks are.
pub(in crate::subject) const REPLAY_BATCH_MAX: usize = 256;

/// A replay of the retained values and of those emitted meanwhile. While it is open, unread values stay in
/// memory.
pub(super) struct Replaying<'a, T, E, P: Rules, L: Entry<T, E>> {
    core: &'a Core<T, E, P, L>,
    /// Position of the next value; `None` before the replay begins.
    pub(super) next: Option<usize>,
    /// Position behind the current batch.
    batch_end: usize,
    pinned: bool,
    /// Whether the replay has begun and not finished.
    open: bool,
}

impl<'a, T, E, P: Rules, L: Entry<T, E>> Replaying<'a, T, E, P, L> {
    pub(super) fn new(core: &'a Core<T, E, P, L>) -> Self {
        Self {
            core,
            next: None,
            batch_end: 0,
            pinned: false,
            open: false,
        }
    }

    /// Returns whether a batch has begun, and has more values.
    pub(super) fn is_in_batch(&self) -> bool {
        self.next.is_some_and(|next| next < self.batch_end)
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
        let next = match self.next {
            Some(next) => next,
            None => self.begin(control, halted, now),
        };
        self.next = Some(next);
        // SAFETY: the emitter is halted and the lock is held.
        let log = unsafe { &mut (*self.core.gate.store()).log };
        if next == log.end() {
            return None;
        }
        if !self.pinned {
            log.pin();
            self.pinned = true;
        }
        let values = log.slice_from(next);
        if next >= self.batch_end {
            self.batch_end = log.end().min(next + REPLAY_BATCH_MAX.max(values.len()));
        }
        let count = values.len().min(self.batch_end - next);
        self.next = Some(next + count);
        Some(NonNull::slice_from_raw_parts(values.cast(), count))
    }

    /// Returns the position of the first value that a late subscriber receives; the end of the log if there
    /// is none. Skips values that are too old at `now`.
    fn begin(&mut self, control: &mut Control<E, L>, halted: Halted, now: Time) -> usize {
        let core = self.core;
        let replays = match control.end {
            None => P::REPLAYS_LIVE,
            Some(End::Completed) => P::REPLAYS_COMPLETED,
            Some(End::Failed(_)) => P::REPLAYS_FAILED,
            Some(End::Disposed) => false,
        };
        self.open = true;
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *core.gate.store() };
        let frozen = control.end.is_some() && core.policy.freezes();
        if !frozen {
            store.trim(&core.policy, now);
            // The values are evicted after the replay: by `finish`, or by the emitter if it is calling.
            control.must_evict |= halted == Halted::Calling;
        }
        if replays {
            store.log.first()
        } else {
            store.log.end()
        }
    }

    /// Returns the number of values that a late subscriber would receive.
    pub(super) fn count(&mut self, control: &mut Control<E, L>, now: Time) -> usize {
        let halted = self.core.gate.halt(&mut control.fenced);
        let first = self.begin(control, halted, now);
        // SAFETY: the emitter is halted and the lock is held.
        unsafe { (*self.core.gate.store()).log.end() - first }
    }

    /// Returns the last value that a late subscriber would receive. It stays in place until the replay is
    /// over.
    pub(super) fn pin_latest(
        &mut self,
        control: &mut Control<E, L>,
        now: Time,
    ) -> Option<NonNull<T>> {
        (self.count(control, now) > 0).then(|| self.pin_end())
    }

    /// Returns the last retained value, which stays in place until the replay is over.
    pub(super) fn pin_last(&mut self, control: &mut Control<E, L>) -> Option<NonNull<T>> {
        self.core.gate.halt(&mut control.fenced);
        self.open = true;
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.core.gate.store() };
        store.trim_by_count(&self.core.policy);
        (store.log.first() < store.log.end()).then(|| self.pin_end())
    }

    /// Pins the log, and returns its last value. The emitter is halted and the lock is held.
    fn pin_end(&mut self) -> NonNull<T> {
        // SAFETY: the emitter is halted and the lock is held.
        let log = unsafe { &mut (*self.core.gate.store()).log };
        log.pin();
        self.pinned = true;
        log.slice_from(log.end() - 1).cast()
    }

    /// Ends the replay, and evicts values that are neither retained nor being read. `halted` is the result of
    /// `Gate::halt`.
    pub(super) fn finish(&mut self, control: &mut Control<E, L>, halted: Halted) -> Evicted<T> {
        if !core::mem::take(&mut self.open) {
            return Evicted::Nothing;
        }
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.core.gate.store() };
        if core::mem::take(&mut self.pinned) {
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
