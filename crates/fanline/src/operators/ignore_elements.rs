use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`ignore_elements`](crate::ObservableExt::ignore_elements).
///
/// Emits no values, only the completion or the error.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .ignore_elements()
///     .subscribe_with(fanline::observer(|_: &i32| unreachable!()).on_complete(|| println!("done")))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct IgnoreElements<S> {
    source: S,
}

impl<S> IgnoreElements<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for IgnoreElements<S>
where
    S: Observable,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source
            .subscribe_with(IgnoreElementsObserver { observer })
    }
}

struct IgnoreElementsObserver<O> {
    observer: O,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for IgnoreElementsObserver<O> {
    #[inline]
    fn next(&mut self, _value: &T) {}

    #[inline]
    fn next_slice(&mut self, _values: &[T]) {}

    forward!(error, complete, is_closed);
}
