use crate::{Guard, Observable, Observer};

/// The observable returned by [`map`](crate::ObservableExt::map).
///
/// Emits the result of `f` for each value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=3)
///     .map(|n| n * 10)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [10, 20, 30]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Map<S, F> {
    source: S,
    f: F,
}

impl<S, F> Map<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, U, F> Observable for Map<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> U + Send + 'static,
{
    type Item = U;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<U, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(MapObserver {
            observer,
            f: self.f,
        })
    }
}

struct MapObserver<O, F> {
    observer: O,
    f: F,
}

impl<T, E, U, O, F> Observer<T, E> for MapObserver<O, F>
where
    O: Observer<U, E>,
    F: FnMut(&T) -> U,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.observer.next_owned((self.f)(value));
    }

    fn error(&mut self, error: &E) {
        self.observer.error(error);
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    fn is_closed(&self) -> bool {
        self.observer.is_closed()
    }
}
