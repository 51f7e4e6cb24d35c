use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// What [`filter`](crate::ObservableExt::filter) gives.
///
/// Emits the values for which `keep` says so.
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
    keep: F,
}

impl<S, F> Filter<S, F> {
    pub(super) fn new(source: S, keep: F) -> Self {
        Self { source, keep }
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
            keep: self.keep,
        })
    }
}

struct FilterObserver<O, F> {
    observer: O,
    keep: F,
}

impl<T, E, O, F> Observer<T, E> for FilterObserver<O, F>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> bool,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if (self.keep)(value) {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if (self.keep)(&value) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
