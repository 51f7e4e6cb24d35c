use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`count`](crate::ObservableExt::count).
///
/// Emits the number of values when the source completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter("hello".chars()).count().subscribe(|count| assert_eq!(*count, 5)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Count<S> {
    source: S,
}

impl<S> Count<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Count<S>
where
    S: Observable,
{
    type Item = usize;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<usize, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Counted(0),
        })
    }
}

struct Counted(usize);

impl<T> Accumulate<T> for Counted {
    type Output = usize;

    #[inline]
    fn add(&mut self, _value: &T) {
        self.0 += 1;
    }

    #[inline]
    fn add_slice(&mut self, values: &[T]) {
        self.0 += values.len();
    }

    fn finish(&mut self) -> Option<usize> {
        Some(self.0)
    }
}
