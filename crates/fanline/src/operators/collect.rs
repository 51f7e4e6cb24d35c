use core::fmt;
use core::marker::PhantomData;

use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`collect`](crate::ObservableExt::collect).
///
/// Emits all values as one collection when the source completes. Stores all values until then.
///
/// ```
/// use std::collections::BTreeSet;
/// use fanline::prelude::*;
///
/// fanline::from_iter([3, 1, 3])
///     .collect::<BTreeSet<_>>()
///     .subscribe(|set| assert_eq!(set.len(), 2))
///     .detach();
/// ```
pub struct Collect<S, C> {
    source: S,
    collection: PhantomData<fn() -> C>,
}

impl<S, C> Collect<S, C> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            collection: PhantomData,
        }
    }
}

impl<S: Clone, C> Clone for Collect<S, C> {
    fn clone(&self) -> Self {
        Self::new(self.source.clone())
    }
}

impl<S: fmt::Debug, C> fmt::Debug for Collect<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collect")
            .field("source", &self.source)
            .finish()
    }
}

impl<S, C> Observable for Collect<S, C>
where
    S: Observable,
    S::Item: Clone,
    C: Default + Extend<S::Item> + Send + 'static,
{
    type Item = C;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Collected(C::default()),
        })
    }
}

struct Collected<C>(C);

impl<T: Clone, C: Default + Extend<T>> Accumulate<T> for Collected<C> {
    type Output = C;

    #[inline]
    fn add(&mut self, value: &T) {
        self.0.extend(Some(value.clone()));
    }

    #[inline]
    fn add_owned(&mut self, value: T) {
        self.0.extend(Some(value));
    }

    #[inline]
    fn add_slice(&mut self, values: &[T]) {
        self.0.extend(values.iter().cloned());
    }

    fn finish(&mut self) -> Option<C> {
        Some(core::mem::take(&mut self.0))
    }
}
