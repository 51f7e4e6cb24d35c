use core::cmp::Ordering;

use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`min`](crate::ObservableExt::min).
///
/// Emits the least value when the source completes; among equal values, the first. Emits nothing if the
/// source had no values. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2, 1, 3]).min().subscribe(|least| assert_eq!(*least, 1)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Min<S> {
    source: S,
}

impl<S> Min<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Min<S>
where
    S: Observable,
    S::Item: Ord + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        MinBy::new(self.source, S::Item::cmp).subscribe_with(observer)
    }
}

/// The observable returned by [`max`](crate::ObservableExt::max).
///
/// Emits the greatest value when the source completes; among equal values, the last. Emits nothing if the
/// source had no values. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2, 3, 1]).max().subscribe(|most| assert_eq!(*most, 3)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Max<S> {
    source: S,
}

impl<S> Max<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Max<S>
where
    S: Observable,
    S::Item: Ord + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        MaxBy::new(self.source, S::Item::cmp).subscribe_with(observer)
    }
}

/// The observable returned by [`min_by`](crate::ObservableExt::min_by).
///
/// Like [`min`](crate::ObservableExt::min), but `compare` defines the order.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2.5, -1.0, 3.0])
///     .min_by(f64::total_cmp)
///     .subscribe(|least| assert_eq!(*least, -1.0))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct MinBy<S, F> {
    source: S,
    compare: F,
}

impl<S, F> MinBy<S, F> {
    pub(super) fn new(source: S, compare: F) -> Self {
        Self { source, compare }
    }
}

impl<S, F> Observable for MinBy<S, F>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    F: FnMut(&S::Item, &S::Item) -> Ordering + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let mut compare = self.compare;
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Best {
                best: None,
                beats: move |value: &S::Item, best: &S::Item| compare(value, best).is_lt(),
            },
        })
    }
}

/// The observable returned by [`max_by`](crate::ObservableExt::max_by).
///
/// Like [`max`](crate::ObservableExt::max), but `compare` defines the order.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "bcd", "ef"])
///     .max_by(|a, b| a.len().cmp(&b.len()))
///     .subscribe(|longest| assert_eq!(*longest, "bcd"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct MaxBy<S, F> {
    source: S,
    compare: F,
}

impl<S, F> MaxBy<S, F> {
    pub(super) fn new(source: S, compare: F) -> Self {
        Self { source, compare }
    }
}

impl<S, F> Observable for MaxBy<S, F>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    F: FnMut(&S::Item, &S::Item) -> Ordering + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let mut compare = self.compare;
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Best {
                best: None,
                beats: move |value: &S::Item, best: &S::Item| compare(value, best).is_ge(),
            },
        })
    }
}

struct Best<T, F> {
    best: Option<T>,
    /// Returns whether a new value replaces the best value so far.
    beats: F,
}

impl<T, F: FnMut(&T, &T) -> bool> Best<T, F> {
    #[inline]
    fn is_beaten_by(&mut self, value: &T) -> bool {
        match &self.best {
            Some(best) => (self.beats)(value, best),
            None => true,
        }
    }
}

impl<T: Clone, F: FnMut(&T, &T) -> bool> Accumulate<T> for Best<T, F> {
    type Output = T;

    #[inline]
    fn add(&mut self, value: &T) {
        if self.is_beaten_by(value) {
            self.best = Some(value.clone());
        }
    }

    #[inline]
    fn add_owned(&mut self, value: T) {
        if self.is_beaten_by(&value) {
            self.best = Some(value);
        }
    }

    fn finish(&mut self) -> Option<T> {
        self.best.take()
    }
}
