use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`filter_map`](crate::ObservableExt::filter_map).
///
/// Emits the value in each `Some` that `f` returns.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["1", "two", "3"])
///     .filter_map(|text| text.parse::<u32>().ok())
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct FilterMap<S, F> {
    source: S,
    f: F,
}

impl<S, F> FilterMap<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, F, U> Observable for FilterMap<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> Option<U> + Send + 'static,
{
    type Item = U;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<U, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(FilterMapObserver {
            observer,
            f: self.f,
        })
    }
}

struct FilterMapObserver<O, F> {
    observer: O,
    f: F,
}

impl<T, E, U, O, F> Observer<T, E> for FilterMapObserver<O, F>
where
    O: Observer<U, E>,
    F: FnMut(&T) -> Option<U>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some(value) = (self.f)(value) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
