//! Subjects as observers of other sources.

use core::slice;

use super::handles::{Flavor, SharedSubject};
use super::list::Entry;
use super::local::UnsyncSubject;
use super::policy::Policy;
use crate::{Observer, Producer};

/// Emits the values of another source, and completes or fails when that source does. A borrowed value is
/// cloned only if the subject retains it.
///
/// ```
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (relay, relayed) = fanline::subject::<u32>();
/// source.subscribe_with(relay).detach();
/// relayed.subscribe(|value| println!("{value}")).detach();
/// tx.next(1);
/// tx.complete();
/// assert!(relayed.has_ended());
/// ```
impl<T, E, P, L> Observer<T, E> for Producer<T, E, P, L>
where
    T: Clone,
    E: Clone,
    P: Policy,
    L: Entry<T, E>,
{
    fn next(&mut self, value: &T) {
        self.next_slice(slice::from_ref(value));
    }

    fn next_owned(&mut self, value: T) {
        self.next(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.error_in_place(error.clone());
    }

    fn complete(&mut self) {
        self.complete_in_place();
    }

    fn is_closed(&self) -> bool {
        self.has_ended()
    }
}

/// Emits the values of another source, and completes or fails when that source does. A borrowed
/// value is cloned only if the subject retains it or is busy.
///
/// ```
/// use fanline::{Replay, ReplaySubject, Subject};
///
/// let (s, history) = (Subject::<u32>::new(), ReplaySubject::new(Replay::all()));
/// s.subscribe_with(history.clone()).detach();
/// s.next(1);
/// s.complete();
/// assert_eq!((history.snapshot(), history.has_ended()), (vec![1], true));
/// ```
impl<T, E, P> Observer<T, E> for SharedSubject<T, E, P>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
    P: Flavor,
{
    fn next(&mut self, value: &T) {
        Self::next_slice(self, slice::from_ref(value));
    }

    fn next_owned(&mut self, value: T) {
        Self::next(self, value);
    }

    fn next_slice(&mut self, values: &[T]) {
        Self::next_slice(self, values);
    }

    fn error(&mut self, error: &E) {
        Self::error(self, error.clone());
    }

    fn complete(&mut self) {
        Self::complete(self);
    }

    fn is_closed(&self) -> bool {
        self.has_ended()
    }
}

/// Emits the values of another source, and completes or fails when that source does. A borrowed value is
/// cloned only if the subject retains it or is busy.
///
/// ```
/// use fanline::{LocalReplaySubject, LocalSubject, Replay};
///
/// let (s, history) = (LocalSubject::<u32>::new(), LocalReplaySubject::new(Replay::all()));
/// s.subscribe_with(history.clone()).detach();
/// s.next(1);
/// s.complete();
/// assert_eq!((history.snapshot(), history.has_ended()), (vec![1], true));
/// ```
impl<T, E, P> Observer<T, E> for UnsyncSubject<T, E, P>
where
    T: Clone + 'static,
    E: Clone + 'static,
    P: Flavor,
{
    fn next(&mut self, value: &T) {
        Self::next_slice(self, slice::from_ref(value));
    }

    fn next_owned(&mut self, value: T) {
        Self::next(self, value);
    }

    fn next_slice(&mut self, values: &[T]) {
        Self::next_slice(self, values);
    }

    fn error(&mut self, error: &E) {
        Self::error(self, error.clone());
    }

    fn complete(&mut self) {
        Self::complete(self);
    }

    fn is_closed(&self) -> bool {
        self.has_ended()
    }
}
