use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`skip_while`](crate::ObservableExt::skip_while).
///
/// Drops values while `predicate` holds. After the first value for which it does not hold, `predicate` is not
/// called again.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 9, 3])
///     .skip_while(|n| *n < 5)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [9, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct SkipWhile<S, F> {
    source: S,
    predicate: F,
}

impl<S, F> SkipWhile<S, F> {
    pub(super) fn new(source: S, predicate: F) -> Self {
        Self { source, predicate }
    }
}

impl<S, F> Observable for SkipWhile<S, F>
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
        self.source.subscribe_with(SkipWhileObserver {
            observer,
            predicate: self.predicate,
            open: false,
        })
    }
}

struct SkipWhileObserver<O, F> {
    observer: O,
    predicate: F,
    open: bool,
}

impl<T, E, O, F> Observer<T, E> for SkipWhileObserver<O, F>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> bool,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if self.open || !(self.predicate)(value) {
            self.open = true;
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if self.open || !(self.predicate)(&value) {
            self.open = true;
            self.observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        let from = if self.open {
            Some(0)
        } else {
            values.iter().position(|value| !(self.predicate)(value))
        };
        if let Some(from) = from {
            self.open = true;
            self.observer.next_slice(&values[from..]);
        }
    }

    forward!(error, complete, is_closed);
}
