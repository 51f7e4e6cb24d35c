//! The one trait through which the operators are called.
#![expect(
    clippy::type_complexity,
    reason = "pairs are made by function types, and the lint sees through the alias"
)]

use std::cmp::Ordering;
use std::convert::Infallible;
use std::hash::Hash;
use std::ops::AddAssign;
use std::time::Duration;

use super::*;
use crate::pinned::Pinned;
use crate::policy;
use crate::scheduler::Bound;
use crate::stream::{FirstValue, IntoStream, LastValue, Policy, TryIntoStream};
use crate::{
    BoxObservable, Callbacks, Clock, Guard, IntoObservable, Observable, Observer, Scheduler,
    observer,
};
use crate::{Replay, ReplaySubject, Subject};

/// The operators, on everything that can be turned into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // -- Transforming

    /// Emits the values in `Vec`s of `count`, the rest on completion. See [`BufferCount`].
    fn buffer_count(self, count: usize) -> BufferCount<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCount::new(self.into_observable(), count)
    }

    /// Emits `count` values from every `every`-th on, in `Vec`s. See [`BufferCountEvery`].
    fn buffer_count_every(self, count: usize, every: usize) -> BufferCountEvery<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCountEvery::new(self.into_observable(), count, every)
    }

    /// Undoes [`materialize`](Self::materialize); ends as they say. See [`Dematerialize`].
    fn dematerialize<T, E>(self) -> Dematerialize<Self::Observable>
    where
        Self: IntoObservable<Item = Notification<T, E>, Error = Infallible>,
    {
        Dematerialize::new(self.into_observable())
    }

    /// Emits each value with its number, from zero. See [`Enumerate`].
    fn enumerate(self) -> Enumerate<Self::Observable>
    where
        Self::Item: Clone,
    {
        Enumerate::new(self.into_observable())
    }

    /// Emits what `f` makes of each value, and nothing where it makes nothing. See [`FilterMap`].
    fn filter_map<U, F>(self, f: F) -> FilterMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> Option<U> + Send + 'static,
    {
        FilterMap::new(self.into_observable(), f)
    }

    /// Emits what `f` makes of each value. See [`Map`].
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    /// Emits `value` for each value. See [`MapTo`].
    fn map_to<U: Clone + Send + 'static>(self, value: U) -> MapTo<Self::Observable, U> {
        MapTo::new(self.into_observable(), value)
    }

    /// Emits values and the end as [`Notification`]s, then completes. See [`Materialize`].
    fn materialize(self) -> Materialize<Self::Observable>
    where
        Self::Item: Clone,
        Self::Error: Clone,
    {
        Materialize::new(self.into_observable())
    }

    /// Emits each value but the first with the one before it. See [`Pairwise`].
    fn pairwise(self) -> Pairwise<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Pairwise::new(self.into_observable())
    }

    /// Emits, for each value, what `f` makes of it and of what it made before. See [`Scan`].
    fn scan<A: Send + 'static, F>(self, initial: A, f: F) -> Scan<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Scan::new(self.into_observable(), initial, f)
    }

    /// Emits each value with the time since the one before it. See [`WithInterval`].
    fn time_interval<C: Clock>(self, clock: C) -> WithInterval<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        WithInterval::new(self.into_observable(), clock)
    }

    /// Emits each value with the time at which it came. See [`Timestamp`].
    fn timestamp<C: Clock>(self, clock: C) -> Timestamp<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        Timestamp::new(self.into_observable(), clock)
    }

    /// Emits a [`Grouped`] observable for each key. Ends with the source. See [`GroupBy`].
    fn group_by<K, F>(self, key: F) -> GroupBy<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> K + Send + 'static,
        K: Clone + Eq + Hash + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        GroupBy::new(self.into_observable(), key)
    }

    /// Emits the values in observables of `count` each. Ends with the source. See [`WindowCount`].
    fn window_count(self, count: usize) -> WindowCount<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowCount::new(self.into_observable(), count)
    }

    // -- Filtering

    /// Emits each value the first time it comes; remembers all of them. See [`Distinct`].
    fn distinct(self) -> Distinct<Self::Observable>
    where
        Self::Item: Clone + Hash + Eq + Send + 'static,
    {
        Distinct::new(self.into_observable())
    }

    /// Emits each value whose key comes the first time; remembers all keys. See [`DistinctByKey`].
    fn distinct_by_key<K, F>(self, key: F) -> DistinctByKey<Self::Observable, F>
    where
        K: Hash + Eq + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        DistinctByKey::new(self.into_observable(), key)
    }

    /// Emits each value that differs from the one before it. See [`DistinctUntilChanged`].
    fn distinct_until_changed(self) -> DistinctUntilChanged<Self::Observable>
    where
        Self::Item: PartialEq + Clone + Send + 'static,
    {
        DistinctUntilChanged::new(self.into_observable())
    }

    /// Emits each value that `same` tells from the one before. See [`DistinctUntilChangedBy`].
    fn distinct_until_changed_by<F>(self, same: F) -> DistinctUntilChangedBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> bool + Send + 'static,
    {
        DistinctUntilChangedBy::new(self.into_observable(), same)
    }

    /// Emits values whose key has changed. See [`DistinctUntilChangedByKey`].
    fn distinct_until_changed_by_key<K, F>(
        self,
        key: F,
    ) -> DistinctUntilChangedByKey<Self::Observable, F>
    where
        K: PartialEq + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        DistinctUntilChangedByKey::new(self.into_observable(), key)
    }

    /// Emits the value with this number, from zero, if there is one, and completes. See [`Take`].
    fn element_at(self, index: usize) -> Take<Skip<Self::Observable>> {
        self.skip(index).take(1)
    }

    /// Emits the values for which `keep` says so. See [`Filter`].
    fn filter<F>(self, keep: F) -> Filter<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Filter::new(self.into_observable(), keep)
    }

    /// Emits the first value and completes; or without one. See [`Take`].
    fn first(self) -> Take<Self::Observable> {
        self.take(1)
    }

    /// Emits no value, only the end. See [`IgnoreElements`].
    fn ignore_elements(self) -> IgnoreElements<Self::Observable> {
        IgnoreElements::new(self.into_observable())
    }

    /// Emits the last value when the source completes, if there was one. See [`Last`].
    fn last(self) -> Last<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Last::new(self.into_observable())
    }

    /// Emits `Ok` with the only value; `Err` when there is none or a second. See [`Single`].
    fn single(self) -> Single<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Single::new(self.into_observable())
    }

    /// Leaves the first `count` values out. See [`Skip`].
    fn skip(self, count: usize) -> Skip<Self::Observable> {
        Skip::new(self.into_observable(), count)
    }

    /// Leaves the last `count` values out, by emitting each that much later. See [`SkipLast`].
    fn skip_last(self, count: usize) -> SkipLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLast::new(self.into_observable(), count)
    }

    /// Leaves values out until `unwanted` first says no. See [`SkipWhile`].
    fn skip_while<F>(self, unwanted: F) -> SkipWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        SkipWhile::new(self.into_observable(), unwanted)
    }

    /// Emits the first `count` values, and completes with the last of them. See [`Take`].
    fn take(self, count: usize) -> Take<Self::Observable> {
        Take::new(self.into_observable(), count)
    }

    /// Emits the last `count` values when the source completes. See [`TakeLast`].
    fn take_last(self, count: usize) -> TakeLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        TakeLast::new(self.into_observable(), count)
    }

    /// Emits values until `wanted` first says no, and completes there. See [`TakeWhile`].
    fn take_while<F>(self, wanted: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), wanted, false)
    }

    /// [`take_while`](Self::take_while) and the first unwanted value. See [`TakeWhile`].
    fn take_while_inclusive<F>(self, wanted: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), wanted, true)
    }

    // -- Folding

    /// Emits whether `test` holds for all values, once that is known, and completes. See [`All`].
    fn all<F>(self, test: F) -> All<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        All::new(self.into_observable(), test)
    }

    /// Emits whether `test` holds for any value, once that is known, and completes. See [`Any`].
    fn any<F>(self, test: F) -> Any<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Any::new(self.into_observable(), test)
    }

    /// Emits the mean of the values, in `f64`, when the source completes. See [`Average`].
    fn average(self) -> Average<Self::Observable>
    where
        Self::Item: Clone + Into<f64>,
    {
        Average::new(self.into_observable())
    }

    /// Emits all values in one collection when the source completes. See [`Collect`].
    fn collect<C>(self) -> Collect<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Default + Extend<Self::Item> + Send + 'static,
    {
        Collect::new(self.into_observable())
    }

    /// Emits whether a value equals this one, once known, and completes. See [`Contains`].
    fn contains(self, value: Self::Item) -> Contains<Self::Observable, Self::Item>
    where
        Self::Item: PartialEq + Send + 'static,
    {
        Contains::new(self.into_observable(), value)
    }

    /// Emits the number of values when the source completes. See [`Count`].
    fn count(self) -> Count<Self::Observable> {
        Count::new(self.into_observable())
    }

    /// Emits what `f` made of `initial` and of all values when the source completes. See [`Fold`].
    fn fold<A: Send + 'static, F>(self, initial: A, f: F) -> Fold<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Fold::new(self.into_observable(), initial, f)
    }

    /// Emits whether the source has no value, once known, and completes. See [`IsEmpty`].
    #[expect(clippy::wrong_self_convention, reason = "named as `Iterator` would")]
    fn is_empty(self) -> IsEmpty<Self::Observable> {
        IsEmpty::new(self.into_observable())
    }

    /// Emits the greatest value, the last of equals, when the source completes. See [`Max`].
    fn max(self) -> Max<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Max::new(self.into_observable())
    }

    /// [`max`](Self::max) in the order that `compare` gives. See [`MaxBy`].
    fn max_by<F>(self, compare: F) -> MaxBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MaxBy::new(self.into_observable(), compare)
    }

    /// Emits the least value, the first of equals, when the source completes. See [`Min`].
    fn min(self) -> Min<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Min::new(self.into_observable())
    }

    /// [`min`](Self::min) in the order that `compare` gives. See [`MinBy`].
    fn min_by<F>(self, compare: F) -> MinBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MinBy::new(self.into_observable(), compare)
    }

    /// Emits what `f` made of all values, beginning with the first, on completion. See [`Reduce`].
    fn reduce<F>(self, f: F) -> Reduce<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(Self::Item, &Self::Item) -> Self::Item + Send + 'static,
    {
        Reduce::new(self.into_observable(), f)
    }

    /// Emits the sum of the values when the source completes. See [`Sum`].
    fn sum(self) -> Sum<Self::Observable>
    where
        Self::Item: Default + for<'a> AddAssign<&'a Self::Item> + Send + 'static,
    {
        Sum::new(self.into_observable())
    }

    // -- Combining

    /// Emits the latest values of both when either has one; ends with both. See [`CombineLatest`].
    fn combine_latest<B>(
        self,
        other: B,
    ) -> CombineLatest<Self::Observable, B::Observable, Pairing<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.combine_latest_with(other, |left, right| (left.clone(), right.clone()))
    }

    /// The same with what `f` makes of both. See [`CombineLatest`].
    fn combine_latest_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> CombineLatest<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        CombineLatest::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits all of this source, then all of `next`, and completes with it. See [`Concat`].
    fn concat<B>(self, next: B) -> Concat<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Concat::new(self.into_observable(), next.into_observable())
    }

    /// Emits all of the observable that `f` makes of the first value, then of the second, and so
    /// on: [`flat_map`](Self::flat_map) with one at a time. See [`FlatMap`].
    fn concat_map<R, F>(self, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), 1, f)
    }

    /// Emits all of the observable that `f` makes of a value, and ignores values that come before
    /// it has completed. Completes when both have. See [`ExhaustMap`].
    fn exhaust_map<R, F>(self, f: F) -> ExhaustMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        ExhaustMap::new(self.into_observable(), f)
    }

    /// Emits, as it comes, what the observables emit that `f` makes of the values, from at most
    /// `most` at a time. Completes when all have. Panics when `most` is 0. See [`FlatMap`].
    fn flat_map<R, F>(self, most: usize, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), most, f)
    }

    /// [`flat_map`](Self::flat_map) in parallel, on workers of `scheduler`. See [`FlatMapOn`].
    fn flat_map_on<C: Scheduler, R, F>(
        self,
        scheduler: C,
        most: usize,
        f: F,
    ) -> FlatMapOn<Self::Observable, C, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapOn::new(self.into_observable(), scheduler, most, f)
    }

    /// Emits the values of both as they come. Completes when both have. See [`Merge`].
    fn merge<B>(self, other: B) -> Merge<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Merge::new(self.into_observable(), other.into_observable())
    }

    /// Is this source or `other`, whichever says something first. See [`Race`].
    fn race<B>(self, other: B) -> Race<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Race::new(self.into_observable(), other.into_observable())
    }

    /// [`switch_map`](Self::switch_map) of a source that emits observables. See [`SwitchAll`].
    fn switch_all(self) -> SwitchAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SwitchAll::new(self.into_observable())
    }

    /// Emits the values of the observable that `f` makes of the latest value, and unsubscribes the
    /// one before. Completes when source and latest have. See [`SwitchMap`].
    fn switch_map<R, F>(self, f: F) -> SwitchMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        SwitchMap::new(self.into_observable(), f)
    }

    /// Emits each value with the latest of `other`. Ends with this source. See [`WithLatestFrom`].
    fn with_latest_from<B>(
        self,
        other: B,
    ) -> WithLatestFrom<Self::Observable, B::Observable, Pairing<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.with_latest_from_with(other, |value, latest| (value.clone(), latest.clone()))
    }

    /// The same with what `f` makes of both. See [`WithLatestFrom`].
    fn with_latest_from_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> WithLatestFrom<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WithLatestFrom::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the first values of both as a pair, then the second ones, until one has no more. See
    /// [`Zip`].
    fn zip<B>(self, other: B) -> Zip<Self::Observable, B::Observable, Pair<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.zip_with(other, |left, right| (left, right))
    }

    /// The same with what `f` makes of both. See [`Zip`].
    fn zip_with<B, C, F>(self, other: B, f: F) -> Zip<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(Self::Item, B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Zip::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the latest value when `sampler` emits; completes with either. See [`Sample`].
    fn sample_by<N>(self, sampler: N) -> Sample<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Sample::new(self.into_observable(), sampler.into_observable())
    }

    /// Drops values until `notifier` emits. Completes with this source. See [`SkipUntil`].
    fn skip_until<N>(self, notifier: N) -> SkipUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SkipUntil::new(self.into_observable(), notifier.into_observable())
    }

    /// Emits values until `notifier` emits, then completes. See [`TakeUntil`].
    fn take_until<N>(self, notifier: N) -> TakeUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TakeUntil::new(self.into_observable(), notifier.into_observable())
    }

    /// Makes sure that calls do not overlap and end with the end. See [`Serialize`].
    fn serialize(self) -> Serialize<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Serialize::new(self.into_observable())
    }

    // -- Errors

    /// Fails with what `f` makes of the error. See [`MapErr`].
    fn map_err<U, F>(self, f: F) -> MapErr<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> U + Send + 'static,
    {
        MapErr::new(self.into_observable(), f)
    }

    /// Gives a source that cannot fail the error type of one that can. See [`WithErrorType`].
    fn with_error_type<E: 'static>(self) -> WithErrorType<Self::Observable, E>
    where
        Self: IntoObservable<Error = Infallible>,
    {
        WithErrorType::new(self.into_observable())
    }

    /// Goes on with the observable that `handler` makes of the error. See [`Catch`].
    fn catch<R, F>(self, handler: F) -> Catch<Self::Observable, F>
    where
        F: FnOnce(&Self::Error) -> R + Send + 'static,
        R: IntoObservable<Item = Self::Item>,
    {
        Catch::new(self.into_observable(), handler)
    }

    /// In place of an error, emits what `f` makes of it and completes. See [`OnErrorReturn`].
    fn on_error_return<F>(self, f: F) -> OnErrorReturn<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> Self::Item + Send + 'static,
    {
        OnErrorReturn::new(self.into_observable(), f)
    }

    /// Subscribes again when the source completes, to run it `times` times. See [`Repeat`].
    fn repeat(self, times: usize) -> Repeat<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Repeat::new(self.into_observable(), times)
    }

    /// Subscribes again when the source fails, at most `times` times. See [`Retry`].
    fn retry(self, times: usize) -> Retry<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Retry::new(self.into_observable(), times)
    }

    /// [`retry`](Self::retry) that waits before each attempt as `backoff` says. See [`RetryWith`].
    fn retry_with<C: Scheduler>(
        self,
        backoff: Backoff,
        scheduler: C,
    ) -> RetryWith<Self::Observable, C>
    where
        Self::Observable: Clone + Send + 'static,
    {
        RetryWith::new(self.into_observable(), backoff, scheduler)
    }

    // -- Time

    /// Emits what came in each `period` as one `Vec`, and the rest at the end. See [`BufferTime`].
    fn buffer_time<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> BufferTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// [`buffer_time`](Self::buffer_time), emitted when full as well. See [`BufferTime`].
    fn buffer_time_or_count<C: Scheduler>(
        self,
        period: Duration,
        count: usize,
        scheduler: C,
    ) -> BufferTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferTime::new(self.into_observable(), period, count, scheduler)
    }

    /// Emits the values of each `period` as an observable, until the end. See [`WindowTime`].
    fn window_time<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> WindowTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// [`window_time`](Self::window_time), with `count` values at most. See [`WindowTime`].
    fn window_time_or_count<C: Scheduler>(
        self,
        period: Duration,
        count: usize,
        scheduler: C,
    ) -> WindowTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowTime::new(self.into_observable(), period, count, scheduler)
    }

    /// Emits a value when nothing comes for `quiet` after it, and on completion. See [`Debounce`].
    fn debounce<C: Scheduler>(self, quiet: Duration, scheduler: C) -> Debounce<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Debounce::new(self.into_observable(), quiet, scheduler)
    }

    /// Emits each value, and the completion, so much later; an error at once. See [`Delay`].
    fn delay<C: Scheduler>(self, delay: Duration, scheduler: C) -> Delay<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Delay::new(self.into_observable(), delay, scheduler)
    }

    /// Subscribes to the source so much later. See [`DelaySubscription`].
    fn delay_subscription<C: Scheduler>(
        self,
        delay: Duration,
        scheduler: C,
    ) -> DelaySubscription<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        DelaySubscription::new(self.into_observable(), delay, scheduler)
    }

    /// Emits the latest value every `period`, if new. Ends with the source. See [`SampleEvery`].
    fn sample<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> SampleEvery<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SampleEvery::new(self.into_observable(), period, scheduler)
    }

    /// Lets the first or last value, or both, of each `period` through. See [`Throttle`].
    fn throttle<C: Scheduler>(
        self,
        period: Duration,
        edge: Edge,
        scheduler: C,
    ) -> Throttle<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Throttle::new(self.into_observable(), period, edge, scheduler)
    }

    /// Fails with what `error` gives when no value has come for `limit`. See [`Timeout`].
    fn timeout<C: Scheduler, F>(
        self,
        limit: Duration,
        scheduler: C,
        error: F,
    ) -> Timeout<Self::Observable, C, F>
    where
        F: FnOnce() -> Self::Error + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Timeout::new(self.into_observable(), limit, scheduler, error)
    }

    // -- Threads

    /// Calls the observer on a worker of `scheduler`, in order, without bound. See [`ObserveOn`].
    fn observe_on<C: Scheduler>(self, scheduler: C) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ObserveOn::new(self.into_observable(), scheduler, None)
    }

    /// [`observe_on`](Self::observe_on) with a queue that is bounded. See [`ObserveOn`].
    fn observe_on_with<C: Scheduler>(
        self,
        scheduler: C,
        bound: Bound<Self::Error>,
    ) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ObserveOn::new(self.into_observable(), scheduler, Some(bound))
    }

    /// Subscribes on a worker of `scheduler`, for sources that emit right then. See
    /// [`SubscribeOn`].
    fn subscribe_on<C: Scheduler>(self, scheduler: C) -> SubscribeOn<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        SubscribeOn::new(self.into_observable(), scheduler)
    }

    // -- Multicast

    /// Subscribed once for all observers, when it is connected. See [`Connectable`].
    fn publish(self) -> Connectable<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), Subject::with_error)
    }

    /// [`publish`](Self::publish) that first gives what `replay` retains. See [`Connectable`].
    fn replay<P: policy::Policy + Clone>(
        self,
        replay: Replay<P>,
    ) -> Connectable<Self::Observable, ReplaySubject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || {
            ReplaySubject::with_error(replay.clone())
        })
    }

    /// [`publish`](Self::publish) through a subject of your own. See [`Connectable`].
    fn multicast<H>(self, subject: H) -> Connectable<Self::Observable, H>
    where
        H: Hub<Self::Item, Self::Error>,
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || subject.clone())
    }

    /// Subscribed once, while there are observers: `publish().ref_count()`. See [`RefCount`].
    fn share(self) -> RefCount<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        self.publish().ref_count()
    }

    /// [`share`](Self::share) that first gives what `replay` retains. See [`RefCount`].
    fn share_replay<P: policy::Policy + Clone>(
        self,
        replay: Replay<P>,
    ) -> RefCount<Self::Observable, ReplaySubject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        RefCount::new(self.replay(replay), None, false)
    }

    // -- Looking on

    /// Runs `action` once when the subscription is over, in whatever way. See [`Finalize`].
    fn finalize<F: FnOnce() + Send + 'static>(self, action: F) -> Finalize<Self::Observable, F> {
        Finalize::new(self.into_observable(), action)
    }

    /// Shows each value to `look` before it is passed on. See [`Tap`].
    fn tap<F>(self, look: F) -> Tap<Self::Observable, Callbacks<F>>
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        Tap::new(self.into_observable(), observer(look))
    }

    /// [`tap`](Self::tap) with an observer, which is shown the end as well. See [`Tap`].
    fn tap_with<L>(self, looker: L) -> Tap<Self::Observable, L>
    where
        L: Observer<Self::Item, Self::Error> + Send + 'static,
    {
        Tap::new(self.into_observable(), looker)
    }

    // -- Other shapes

    /// Emits `value` when the source completes without one. See [`DefaultIfEmpty`].
    fn default_if_empty(self, value: Self::Item) -> DefaultIfEmpty<Self::Observable, Self::Item>
    where
        Self::Item: Send + 'static,
    {
        DefaultIfEmpty::new(self.into_observable(), value)
    }

    /// Emits these values after the source's, when it completes. See [`EndWith`].
    fn end_with<I>(self, values: I) -> EndWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item> + Send + 'static,
    {
        EndWith::new(self.into_observable(), values)
    }

    /// Emits these values when subscribed, then all of the source. See [`StartWith`].
    fn start_with<I>(self, values: I) -> StartWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item>,
    {
        StartWith::new(self.into_observable(), values)
    }

    /// Subscribes with a closure that need not be `Send`; values must come on this thread. See
    /// [closures](crate::operators#closures-that-keep-values-or-stay-on-their-thread).
    fn subscribe_local<F>(self, next: F) -> Guard
    where
        Self::Item: 'static,
        Self::Error: 'static,
        F: FnMut(&Self::Item) + 'static,
    {
        self.into_observable()
            .subscribe_with(Pinned::new(observer(next)))
    }

    /// Hides the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }

    /// Subscribes with a closure that is given values, not references. See
    /// [closures](crate::operators#closures-that-keep-values-or-stay-on-their-thread).
    fn subscribe_owned<F>(self, next: F) -> Guard
    where
        Self::Item: Clone,
        F: FnMut(Self::Item) + Send + 'static,
    {
        self.into_observable()
            .subscribe_with(owned::OwnedObserver(next))
    }

    /// The values as an asynchronous stream, which holds what `policy` says. See [`IntoStream`].
    fn into_stream<P: Policy>(self, policy: P) -> IntoStream<Self::Item, P>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
    {
        IntoStream::new(self, policy)
    }

    /// [`into_stream`](Self::into_stream) for a source that can fail. See [`TryIntoStream`].
    fn try_into_stream<P: Policy>(self, policy: P) -> TryIntoStream<Self::Item, Self::Error, P>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TryIntoStream::new(self, policy)
    }

    /// A future of the first value, `Ok(None)` where there is none. See [`FirstValue`].
    fn first_value(self) -> FirstValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        FirstValue::new(self)
    }

    /// A future of the last value, `Ok(None)` where there is none. See [`LastValue`].
    fn last_value(self) -> LastValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        LastValue::new(self)
    }
}

impl<S: IntoObservable> ObservableExt for S {}

/// Makes a pair of clones.
type Pairing<A, B> = fn(&A, &B) -> (A, B);

/// Makes a pair.
type Pair<A, B> = fn(A, B) -> (A, B);
