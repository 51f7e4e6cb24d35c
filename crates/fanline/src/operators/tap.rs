use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// What [`tap`](crate::ObservableExt::tap) and [`tap_with`](crate::ObservableExt::tap_with) give.
///
/// Shows each value to `look` before it is passed on. Values that come as a slice are shown all
/// before the first is passed on.
///
/// [`tap_with`](crate::ObservableExt::tap_with): as [`tap`](crate::ObservableExt::tap), with an
/// observer, which is shown the end as well: `tap_with(observer(|value| ..).on_complete(|| ..))`.
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
    looker: L,
}

impl<S, L> Tap<S, L> {
    pub(super) fn new(source: S, looker: L) -> Self {
        Self { source, looker }
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
            looker: self.looker,
        })
    }
}

struct TapObserver<O, L> {
    observer: O,
    looker: L,
}

impl<T, E, O, L> Observer<T, E> for TapObserver<O, L>
where
    O: Observer<T, E>,
    L: Observer<T, E>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.looker.is_closed() {
            self.looker.next(value);
        }
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.looker.is_closed() {
            self.looker.next(&value);
        }
        self.observer.next_owned(value);
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        if !self.looker.is_closed() {
            self.looker.next_slice(values);
        }
        self.observer.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        if !self.looker.is_closed() {
            self.looker.error(error);
        }
        self.observer.error(error);
    }

    fn complete(&mut self) {
        if !self.looker.is_closed() {
            self.looker.complete();
        }
        self.observer.complete();
    }

    forward!(is_closed);
}
