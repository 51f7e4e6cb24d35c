use super::skip::Skip;
use crate::operators::forward::complete;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`take`](crate::ObservableExt::take).
///
/// Emits the first `count` values, and completes after the last of them. If `count` is 0, completes at the
/// subscription, and does not subscribe to the source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..)
///     .take(2)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Take<S> {
    source: S,
    count: usize,
}

impl<S> Take<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        Self { source, count }
    }
}

impl<S> Observable for Take<S>
where
    S: Observable,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if self.count == 0 {
            complete(&mut observer);
            return Guard::closed();
        }
        self.source.subscribe_with(TakeObserver {
            observer,
            left: self.count,
        })
    }
}

/// The observable returned by [`first`](crate::ObservableExt::first).
///
/// Emits the first value, and completes after it. Without a value, completes or fails with the source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "b", "c"]).first().subscribe(|text| assert_eq!(*text, "a")).detach();
/// ```
#[derive(Clone, Debug)]
pub struct First<S> {
    source: S,
}

impl<S> First<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S: Observable> Observable for First<S> {
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Take::new(self.source, 1).subscribe_with(observer)
    }
}

/// The observable returned by [`element_at`](crate::ObservableExt::element_at).
///
/// Emits the value at `index`, counted from 0, and completes after it. Without such a value, completes or
/// fails with the source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "b", "c"]).element_at(1).subscribe(|text| assert_eq!(*text, "b")).detach();
/// ```
#[derive(Clone, Debug)]
pub struct ElementAt<S> {
    source: S,
    index: usize,
}

impl<S> ElementAt<S> {
    pub(super) fn new(source: S, index: usize) -> Self {
        Self { source, index }
    }
}

impl<S: Observable> Observable for ElementAt<S> {
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Take::new(Skip::new(self.source, self.index), 1).subscribe_with(observer)
    }
}

struct TakeObserver<O> {
    observer: O,
    /// Number of values that remain to be emitted. At 0, the observer has completed.
    left: usize,
}

impl<O> TakeObserver<O> {
    /// Emits as many values as `values` says, with one call of the observer. Completes after the last of the
    /// `count` values.
    #[inline]
    fn emit<T, E>(&mut self, values: usize, call: impl FnOnce(&mut O))
    where
        O: Observer<T, E>,
    {
        if self.left == 0 {
            return;
        }
        // Subtracted before the call, so that the value counts even if the observer panics.
        self.left -= values;
        call(&mut self.observer);
        if self.left == 0 {
            complete(&mut self.observer);
        }
    }
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for TakeObserver<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.emit(1, |observer| observer.next(value));
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.emit(1, |observer| observer.next_owned(value));
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        let count = values.len().min(self.left);
        self.emit(count, |observer| observer.next_slice(&values[..count]));
    }

    fn error(&mut self, error: &E) {
        if self.left > 0 {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if self.left > 0 {
            self.observer.complete();
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.left == 0 || self.observer.is_closed()
    }
}
