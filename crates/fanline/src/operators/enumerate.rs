use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`enumerate`](crate::ObservableExt::enumerate).
///
/// Emits each value with its index, from 0.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "b"])
///     .enumerate()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [(0, "a"), (1, "b")]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Enumerate<S> {
    source: S,
}

impl<S> Enumerate<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Enumerate<S>
where
    S: Observable,
    S::Item: Clone,
{
    type Item = (usize, S::Item);
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source
            .subscribe_with(EnumerateObserver { observer, index: 0 })
    }
}

struct EnumerateObserver<O> {
    observer: O,
    index: usize,
}

impl<T: Clone, E, O: Observer<(usize, T), E>> Observer<T, E> for EnumerateObserver<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        let index = self.index;
        self.index += 1;
        self.observer.next_owned((index, value));
    }

    forward!(error, complete, is_closed);
}
