use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`tap`](crate::ObservableExt::tap) and [`tap_with`](crate::ObservableExt::tap_with).
///
/// Calls `inspect` with each value before the value is emitted. If the source emits a slice, all its values
/// are inspected before the first of them is emitted.
///
/// [`tap_with`](crate::ObservableExt::tap_with) takes an observer instead, which also receives the completion
/// or the error: `tap_with(observer(|value| ..).on_complete(|| ..))`.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=2)
///     .tap_with(fanline::observer(|n| println!("got {n}")).on_complete(|| println!("done")))
///     .map(|n| n * 2)
///     .subscribe(|n| println!("twice that is {n}"))
///     .detach();
/// ```
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=2)
///     .tap(|n| println!("got {n}"))
///     .map(|n| n * 2)
///     .subscribe(|n| println!("twice that is {n}"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Tap<S, L> {
    source: S,
    inspector: L,
}

impl<S, L> Tap<S, L> {
    pub(super) fn new(source: S, inspector: L) -> Self {
        Self { source, inspector }
    }
}

impl<S, L> Observable for Tap<S, L>
where
    S: Observable,
    L: Observer<S::Item, S::Error> + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(TapObserver {
            observer,
            inspector: self.inspector,
        })
    }
}

struct TapObserver<O, L> {
    observer: O,
    inspector: L,
}

impl<T, E, O, L> Observer<T, E> for TapObserver<O, L>
where
    O: Observer<T, E>,
    L: Observer<T, E>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.inspector.is_closed() {
            self.inspector.next(value);
        }
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.inspector.is_closed() {
            self.inspector.next(&value);
        }
        self.observer.next_owned(value);
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        if !self.inspector.is_closed() {
            self.inspector.next_slice(values);
        }
        self.observer.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        if !self.inspector.is_closed() {
            self.inspector.error(error);
        }
        self.observer.error(error);
    }

    fn complete(&mut self) {
        if !self.inspector.is_closed() {
            self.inspector.complete();
        }
        self.observer.complete();
    }

    forward!(is_closed);
}
