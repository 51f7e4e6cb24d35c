//! The state that the lock of a subject protects.

use crate::subject::end::End;
use crate::subject::list::{List, Vacant};
use crate::subject::registrations::Registrations;
use crate::unwind::Panic;
use alloc::vec::Vec;

/// The state under the lock.
pub(super) struct Control<E, L> {
    pub(super) registrations: Registrations<L>,
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
            registrations: Registrations::new(),
            end: None,
            must_evict: false,
            panic: None,
            waiters: 0,
            fenced: false,
            spare: 0,
            abandoned: false,
        }
    }

    /// Removes the observers that have unsubscribed, or all observers if the subject is disposed of.
    #[inline]
    pub(super) fn remove_leaving(&mut self, list: &mut List<L>, removed: &mut Vec<L>) {
        self.registrations.remove_leaving(list, removed);
        if matches!(self.end, Some(End::Disposed)) {
            self.registrations.remove_all(list, removed);
        }
    }
}
