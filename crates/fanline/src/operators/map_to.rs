use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`map_to`](crate::ObservableExt::map_to).
///
/// Emits `value` in place of each value of the source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=3)
///     .map_to("tick")
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, ["tick"; 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct MapTo<S, U> {
    source: S,
    value: U,
}

impl<S, U> MapTo<S, U> {
    pub(super) fn new(source: S, value: U) -> Self {
        Self { source, value }
    }
}

impl<S, U> Observable for MapTo<S, U>
where
    S: Observable,
    U: Clone + Send + 'static,
{
    type Item = U;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<U, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(MapToObserver {
            observer,
            value: self.value,
        })
    }
}

struct MapToObserver<O, U> {
    observer: O,
    value: U,
}

impl<T, E, U, O> Observer<T, E> for MapToObserver<O, U>
where
    O: Observer<U, E>,
{
    #[inline]
    fn next(&mut self, _value: &T) {
        self.observer.next(&self.value);
    }

    forward!(error, complete, is_closed);
}
