use crate::operators::forward::complete;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`take_while`](crate::ObservableExt::take_while) and
/// [`take_while_inclusive`](crate::ObservableExt::take_while_inclusive).
///
/// Emits values while `predicate` holds, and completes at the first value for which it does not.
///
/// [`take_while_inclusive`](crate::ObservableExt::take_while_inclusive) also emits that value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 9, 3])
///     .take_while(|n| *n < 5)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2]))
///     .detach();
/// fanline::from_iter([1, 2, 9, 3])
///     .take_while_inclusive(|n| *n < 5)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 9]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct TakeWhile<S, F> {
    source: S,
    predicate: F,
    inclusive: bool,
}

impl<S, F> TakeWhile<S, F> {
    pub(super) fn new(source: S, predicate: F, inclusive: bool) -> Self {
        Self {
            source,
            predicate,
            inclusive,
        }
    }
}

impl<S, F> Observable for TakeWhile<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> bool + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(TakeWhileObserver {
            observer,
            predicate: self.predicate,
            inclusive: self.inclusive,
            done: false,
        })
    }
}

struct TakeWhileObserver<O, F> {
    observer: O,
    predicate: F,
    inclusive: bool,
    done: bool,
}

impl<O, F> TakeWhileObserver<O, F> {
    /// Emits a value with `call`, if the predicate `holds` for it. If not, emits the value only if the
    /// operator is inclusive, and completes.
    #[inline]
    fn emit<T, E>(&mut self, holds: bool, call: impl FnOnce(&mut O))
    where
        O: Observer<T, E>,
    {
        if holds {
            call(&mut self.observer);
            return;
        }
        self.done = true;
        if self.inclusive {
            call(&mut self.observer);
        }
        complete(&mut self.observer);
    }
}

impl<T, E, O, F> Observer<T, E> for TakeWhileObserver<O, F>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> bool,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.done {
            let holds = (self.predicate)(value);
            self.emit(holds, |observer| observer.next(value));
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.done {
            let holds = (self.predicate)(&value);
            self.emit(holds, |observer| observer.next_owned(value));
        }
    }

    fn error(&mut self, error: &E) {
        if !self.done {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if !self.done {
            self.observer.complete();
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.done || self.observer.is_closed()
    }
}

/// The observable returned by [`take_until_match`](crate::ObservableExt::take_until_match).
///
/// Emits values up to and including the first one for which `predicate` holds, then completes.
///
/// Completes or fails earlier if the source does. Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 9, 3])
///     .take_until_match(|n| *n > 5)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 9]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct TakeUntilMatch<S, F> {
    source: S,
    predicate: F,
}

impl<S, F> TakeUntilMatch<S, F> {
    pub(super) fn new(source: S, predicate: F) -> Self {
        Self { source, predicate }
    }
}

impl<S, F> Observable for TakeUntilMatch<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> bool + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let mut predicate = self.predicate;
        TakeWhile::new(self.source, move |value: &S::Item| !predicate(value), true)
            .subscribe_with(observer)
    }
}
