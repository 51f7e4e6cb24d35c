use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`pairwise`](crate::ObservableExt::pairwise).
///
/// Emits each value with the previous one, from the second value on. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 4, 9])
///     .pairwise()
///     .map(|(before, after)| after - before)
///     .collect::<Vec<_>>()
///     .subscribe(|steps| assert_eq!(*steps, [3, 5]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Pairwise<S> {
    source: S,
}

impl<S> Pairwise<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Pairwise<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = (S::Item, S::Item);
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(PairwiseObserver {
            observer,
            previous: None,
        })
    }
}

struct PairwiseObserver<O, T> {
    observer: O,
    previous: Option<T>,
}

impl<T: Clone, E, O: Observer<(T, T), E>> Observer<T, E> for PairwiseObserver<O, T> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if let Some(previous) = self.previous.take() {
            self.previous = Some(value.clone());
            self.observer.next_owned((previous, value));
        } else {
            self.previous = Some(value);
        }
    }

    forward!(error, complete, is_closed);
}
