use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`last`](crate::ObservableExt::last).
///
/// Emits the last value when the source completes. Emits nothing if there was no value. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5).last().subscribe(|value| assert_eq!(*value, 5)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct LastElement<S> {
    source: S,
}

impl<S> LastElement<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for LastElement<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Latest(None),
        })
    }
}

struct Latest<T>(Option<T>);

impl<T: Clone> Accumulate<T> for Latest<T> {
    type Output = T;

    #[inline]
    fn add(&mut self, value: &T) {
        match &mut self.0 {
            Some(latest) => latest.clone_from(value),
            None => self.0 = Some(value.clone()),
        }
    }

    #[inline]
    fn add_owned(&mut self, value: T) {
        self.0 = Some(value);
    }

    #[inline]
    fn add_slice(&mut self, values: &[T]) {
        if let Some(value) = values.last() {
            self.add(value);
        }
    }

    fn finish(&mut self) -> Option<T> {
        self.0.take()
    }
}
