use core::ops::AddAssign;

use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`sum`](crate::ObservableExt::sum).
///
/// Emits the sum of the values when the source completes. If there were no values, emits the default value of
/// the type. Panics on overflow if the type's `+=` panics on overflow.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 3]).sum().subscribe(|sum| assert_eq!(*sum, 6)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Sum<S> {
    source: S,
}

impl<S> Sum<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Sum<S>
where
    S: Observable,
    S::Item: Default + for<'a> AddAssign<&'a S::Item> + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Summed(S::Item::default()),
        })
    }
}

struct Summed<T>(T);

impl<T: Default + for<'a> AddAssign<&'a T>> Accumulate<T> for Summed<T> {
    type Output = T;

    #[inline]
    fn add(&mut self, value: &T) {
        self.0 += value;
    }

    fn finish(&mut self) -> Option<T> {
        Some(core::mem::take(&mut self.0))
    }
}

/// The observable returned by [`average`](crate::ObservableExt::average).
///
/// Emits the mean of the values when the source completes. Emits nothing if there were no values. Computes in
/// `f64`. If a value type does not convert into `f64`, use [`map`](crate::ObservableExt::map) before this
/// operator.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 6]).average().subscribe(|mean| assert_eq!(*mean, 3.0)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Average<S> {
    source: S,
}

impl<S> Average<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Average<S>
where
    S: Observable,
    S::Item: Clone + Into<f64>,
{
    type Item = f64;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<f64, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Averaged {
                sum: 0.0,
                count: 0.0,
            },
        })
    }
}

struct Averaged {
    sum: f64,
    count: f64,
}

impl<T: Clone + Into<f64>> Accumulate<T> for Averaged {
    type Output = f64;

    #[inline]
    fn add(&mut self, value: &T) {
        self.sum += value.clone().into();
        self.count += 1.0;
    }

    fn finish(&mut self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}
