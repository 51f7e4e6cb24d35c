use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`filter`](crate::ObservableExt::filter).
///
/// Emits the values for which `predicate` holds.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=6)
///     .filter(|n| n % 3 == 0)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [3, 6]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Filter<S, F> {
    source: S,
    predicate: F,
}

impl<S, F> Filter<S, F> {
    pub(super) fn new(source: S, predicate: F) -> Self {
        Self { source, predicate }
    }
}

impl<S, F> Observable for Filter<S, F>
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
        self.source.subscribe_with(FilterObserver {
            observer,
            predicate: self.predicate,
        })
    }
}

struct FilterObserver<O, F> {
    observer: O,
    predicate: F,
}

impl<T, E, O, F> Observer<T, E> for FilterObserver<O, F>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> bool,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if (self.predicate)(value) {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if (self.predicate)(&value) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
