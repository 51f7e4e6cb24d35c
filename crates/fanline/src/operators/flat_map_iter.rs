use super::forward::{emit_all, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`flat_map_iter`](crate::ObservableExt::flat_map_iter).
///
/// Emits all items of the iterator that `f` returns for a value, before the next value of the source.
///
/// Completes or fails with the source. Stores no values. Rx also calls this operator `flatMapIterable` and
/// `concatMapIterable`.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a b", "c"])
///     .flat_map_iter(|line| line.split(' '))
///     .collect::<Vec<_>>()
///     .subscribe(|words| assert_eq!(*words, ["a", "b", "c"]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct FlatMapIter<S, F> {
    source: S,
    f: F,
}

impl<S, F> FlatMapIter<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, I, F> Observable for FlatMapIter<S, F>
where
    S: Observable,
    I: IntoIterator,
    F: FnMut(&S::Item) -> I + Send + 'static,
{
    type Item = I::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<I::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(FlatMapIterObserver {
            observer,
            f: self.f,
        })
    }
}

struct FlatMapIterObserver<O, F> {
    observer: O,
    f: F,
}

impl<T, E, I, O, F> Observer<T, E> for FlatMapIterObserver<O, F>
where
    I: IntoIterator,
    O: Observer<I::Item, E>,
    F: FnMut(&T) -> I,
{
    fn next(&mut self, value: &T) {
        emit_all(&mut self.observer, (self.f)(value));
    }

    forward!(error, complete, is_closed);
}
