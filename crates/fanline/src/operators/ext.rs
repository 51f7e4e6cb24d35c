//! The trait whose methods are the operators.
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
use crate::stream::{FirstValue, IntoStream, LastValue, OverflowPolicy, TryIntoStream};
use crate::{
    BoxObservable, Callbacks, Clock, Guard, IntoObservable, Observable, Observer, Scheduler,
    observer,
};
use crate::{Replay, ReplaySubject, Subject};

/// The operators, for every type that converts into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // -- Transforming

    /// Emits `Vec`s of `count` values; the last may be shorter. See [`BufferCount`].
    fn buffer_count(self, count: usize) -> BufferCount<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCount::new(self.into_observable(), count)
    }

    /// Emits a `Vec` of `count` values starting at every `every`-th value. See [`BufferCountEvery`].
    fn buffer_count_every(self, count: usize, every: usize) -> BufferCountEvery<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCountEvery::new(self.into_observable(), count, every)
    }

    /// Reverses [`materialize`](Self::materialize). See [`Dematerialize`].
    fn dematerialize<T, E>(self) -> Dematerialize<Self::Observable>
    where
        Self: IntoObservable<Item = Notification<T, E>, Error = Infallible>,
    {
        Dematerialize::new(self.into_observable())
    }

    /// Emits each value with its index, from 0. See [`Enumerate`].
    fn enumerate(self) -> Enumerate<Self::Observable>
    where
        Self::Item: Clone,
    {
        Enumerate::new(self.into_observable())
    }

    /// Emits the value in each `Some` that `f` returns. See [`FilterMap`].
    fn filter_map<U, F>(self, f: F) -> FilterMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> Option<U> + Send + 'static,
    {
        FilterMap::new(self.into_observable(), f)
    }

    /// Emits the result of `f` for each value. See [`Map`].
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    /// Emits `value` in place of each value of the source. See [`MapTo`].
    fn map_to<U: Clone + Send + 'static>(self, value: U) -> MapTo<Self::Observable, U> {
        MapTo::new(self.into_observable(), value)
    }

    /// Emits values, completion, and error as [`Notification`]s, then completes. See [`Materialize`].
    fn materialize(self) -> Materialize<Self::Observable>
    where
        Self::Item: Clone,
        Self::Error: Clone,
    {
        Materialize::new(self.into_observable())
    }

    /// Emits each value with the previous one, from the second on. See [`Pairwise`].
    fn pairwise(self) -> Pairwise<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Pairwise::new(self.into_observable())
    }

    /// Emits each intermediate result of a fold with `f`. See [`Scan`].
    fn scan<A: Send + 'static, F>(self, initial: A, f: F) -> Scan<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Scan::new(self.into_observable(), initial, f)
    }

    /// Emits each value with the time since the previous one. See [`WithInterval`].
    fn time_interval<C: Clock>(self, clock: C) -> WithInterval<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        WithInterval::new(self.into_observable(), clock)
    }

    /// Emits each value with its time of arrival. See [`Timestamp`].
    fn timestamp<C: Clock>(self, clock: C) -> Timestamp<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        Timestamp::new(self.into_observable(), clock)
    }

    /// Emits a [`Grouped`] observable per key. Completes or fails when the source does. See [`GroupBy`].
    fn group_by<K, F>(self, key: F) -> GroupBy<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> K + Send + 'static,
        K: Clone + Eq + Hash + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        GroupBy::new(self.into_observable(), key)
    }

    /// Emits observables of `count` values each. Completes or fails with the source. See [`WindowCount`].
    fn window_count(self, count: usize) -> WindowCount<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowCount::new(self.into_observable(), count)
    }

    // -- Filtering

    /// Emits each distinct value once; stores all distinct values. See [`Distinct`].
    fn distinct(self) -> Distinct<Self::Observable>
    where
        Self::Item: Clone + Hash + Eq + Send + 'static,
    {
        Distinct::new(self.into_observable())
    }

    /// Emits the first value of each key; stores all keys. See [`DistinctByKey`].
    fn distinct_by_key<K, F>(self, key: F) -> DistinctByKey<Self::Observable, F>
    where
        K: Hash + Eq + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        DistinctByKey::new(self.into_observable(), key)
    }

    /// Emits each value that differs from the previous one. See [`DistinctUntilChanged`].
    fn distinct_until_changed(self) -> DistinctUntilChanged<Self::Observable>
    where
        Self::Item: PartialEq + Clone + Send + 'static,
    {
        DistinctUntilChanged::new(self.into_observable())
    }

    /// Emits each value for which `same`, called with the last emitted value and this one, returns `false`.
    /// See [`DistinctUntilChangedBy`].
    fn distinct_until_changed_by<F>(self, same: F) -> DistinctUntilChangedBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> bool + Send + 'static,
    {
        DistinctUntilChangedBy::new(self.into_observable(), same)
    }

    /// Emits each value whose key differs from the previous value's. See [`DistinctUntilChangedByKey`].
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

    /// Emits the value at `index`, counted from 0, if there is one, and completes. See [`Take`].
    fn element_at(self, index: usize) -> Take<Skip<Self::Observable>> {
        self.skip(index).take(1)
    }

    /// Emits the values for which `predicate` holds. See [`Filter`].
    fn filter<F>(self, predicate: F) -> Filter<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Filter::new(self.into_observable(), predicate)
    }

    /// Emits the first value, if there is one, and completes. See [`Take`].
    fn first(self) -> Take<Self::Observable> {
        self.take(1)
    }

    /// Emits no values, only the completion or the error. See [`IgnoreElements`].
    fn ignore_elements(self) -> IgnoreElements<Self::Observable> {
        IgnoreElements::new(self.into_observable())
    }

    /// Emits the last value, if there is one, when the source completes. See [`Last`].
    fn last(self) -> Last<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Last::new(self.into_observable())
    }

    /// Emits `Ok` with the only value, or `Err` if there is no value or a second one. See [`Single`].
    fn single(self) -> Single<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Single::new(self.into_observable())
    }

    /// Drops the first `count` values. See [`Skip`].
    fn skip(self, count: usize) -> Skip<Self::Observable> {
        Skip::new(self.into_observable(), count)
    }

    /// Drops the last `count` values, by delaying each value by `count` values. See [`SkipLast`].
    fn skip_last(self, count: usize) -> SkipLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLast::new(self.into_observable(), count)
    }

    /// Drops values while `predicate` holds. See [`SkipWhile`].
    fn skip_while<F>(self, predicate: F) -> SkipWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        SkipWhile::new(self.into_observable(), predicate)
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

    /// Emits values while `predicate` holds, then completes. See [`TakeWhile`].
    fn take_while<F>(self, predicate: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), predicate, false)
    }

    /// Like [`take_while`](Self::take_while), but also emits the first rejected value. See [`TakeWhile`].
    fn take_while_inclusive<F>(self, predicate: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), predicate, true)
    }

    // -- Folding

    /// Emits whether `test` holds for all values, as soon as this is known, and completes. See [`All`].
    fn all<F>(self, test: F) -> All<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        All::new(self.into_observable(), test)
    }

    /// Emits, as soon as it is known, whether `test` holds for any value, and completes. See [`Any`].
    fn any<F>(self, test: F) -> Any<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Any::new(self.into_observable(), test)
    }

    /// Emits the mean of the values, as `f64`, when the source completes. See [`Average`].
    fn average(self) -> Average<Self::Observable>
    where
        Self::Item: Clone + Into<f64>,
    {
        Average::new(self.into_observable())
    }

    /// Emits all values as one collection when the source completes. See [`Collect`].
    fn collect<C>(self) -> Collect<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Default + Extend<Self::Item> + Send + 'static,
    {
        Collect::new(self.into_observable())
    }

    /// Emits whether any value equals `value`, as soon as this is known, and completes. See [`Contains`].
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

    /// Emits the result of folding all values with `f` when the source completes. See [`Fold`].
    fn fold<A: Send + 'static, F>(self, initial: A, f: F) -> Fold<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Fold::new(self.into_observable(), initial, f)
    }

    /// Emits whether the source has no value, as soon as this is known, and completes. See [`IsEmpty`].
    #[expect(clippy::wrong_self_convention, reason = "named as `Iterator` would")]
    fn is_empty(self) -> IsEmpty<Self::Observable> {
        IsEmpty::new(self.into_observable())
    }

    /// Emits the greatest value when the source completes; among equal values, the last. See [`Max`].
    fn max(self) -> Max<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Max::new(self.into_observable())
    }

    /// Like [`max`](Self::max), but `compare` defines the order. See [`MaxBy`].
    fn max_by<F>(self, compare: F) -> MaxBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MaxBy::new(self.into_observable(), compare)
    }

    /// Emits the least value when the source completes; among equal values, the first. See [`Min`].
    fn min(self) -> Min<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Min::new(self.into_observable())
    }

    /// Like [`min`](Self::min), but `compare` defines the order. See [`MinBy`].
    fn min_by<F>(self, compare: F) -> MinBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MinBy::new(self.into_observable(), compare)
    }

    /// Emits the result of folding all values with `f`, starting with the first value, when the source
    /// completes. See [`Reduce`].
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

    /// Emits the latest values of both sources when either emits, until both complete. See [`CombineLatest`].
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

    /// Like [`combine_latest`](Self::combine_latest), but emits `f` of the pair. See [`CombineLatest`].
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

    /// Emits the values of this source, then those of `next`. Completes when `next` does. See [`Concat`].
    fn concat<B>(self, next: B) -> Concat<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Concat::new(self.into_observable(), next.into_observable())
    }

    /// Emits the values of the observables that `f` returns, one observable after the other:
    /// [`flat_map`](Self::flat_map) with `concurrent_max` 1. See [`FlatMap`].
    fn concat_map<R, F>(self, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), 1, f)
    }

    /// Emits the values of the observable that `f` returns. Ignores values of this source until that
    /// observable has completed. Completes when both have completed. See [`ExhaustMap`].
    fn exhaust_map<R, F>(self, f: F) -> ExhaustMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        ExhaustMap::new(self.into_observable(), f)
    }

    /// Emits the values of the observables that `f` returns, of which at most `concurrent_max` are subscribed
    /// to at a time. Completes when this source and all observables have completed. Panics if
    /// `concurrent_max` is 0. See [`FlatMap`].
    fn flat_map<R, F>(self, concurrent_max: usize, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), concurrent_max, f)
    }

    /// Like [`flat_map`](Self::flat_map), but in parallel, on workers of `scheduler`. See [`FlatMapOn`].
    fn flat_map_on<C: Scheduler, R, F>(
        self,
        scheduler: C,
        concurrent_max: usize,
        f: F,
    ) -> FlatMapOn<Self::Observable, C, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapOn::new(self.into_observable(), scheduler, concurrent_max, f)
    }

    /// Emits the values of both sources as they arrive. Completes when both have completed. See [`Merge`].
    fn merge<B>(self, other: B) -> Merge<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Merge::new(self.into_observable(), other.into_observable())
    }

    /// Behaves like this source or `other`, whichever emits or ends first. See [`Race`].
    fn race<B>(self, other: B) -> Race<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Race::new(self.into_observable(), other.into_observable())
    }

    /// Like [`switch_map`](Self::switch_map), for a source that emits observables. See [`SwitchAll`].
    fn switch_all(self) -> SwitchAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SwitchAll::new(self.into_observable())
    }

    /// Emits the values of the observable that `f` returns for the latest value, and unsubscribes from the
    /// previous one. Completes when this source and the latest observable have completed. See [`SwitchMap`].
    fn switch_map<R, F>(self, f: F) -> SwitchMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        SwitchMap::new(self.into_observable(), f)
    }

    /// Emits each value with the latest of `other`. Completes with this source. See [`WithLatestFrom`].
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

    /// Like [`with_latest_from`](Self::with_latest_from), but emits `f` of the pair. See [`WithLatestFrom`].
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

    /// Emits pairs of the n-th values of both sources until either source ends. See [`Zip`].
    fn zip<B>(self, other: B) -> Zip<Self::Observable, B::Observable, Pair<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.zip_with(other, |left, right| (left, right))
    }

    /// Like [`zip`](Self::zip), but emits the result of `f` instead of a pair. See [`Zip`].
    fn zip_with<B, C, F>(self, other: B, f: F) -> Zip<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(Self::Item, B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Zip::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the latest value when `sampler` emits. Completes when either completes. See [`Sample`].
    fn sample_by<N>(self, sampler: N) -> Sample<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Sample::new(self.into_observable(), sampler.into_observable())
    }

    /// Drops values until `notifier` emits. Completes when this source does. See [`SkipUntil`].
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

    /// Prevents calls of the observer that overlap or follow its completion or error. See [`Serialize`].
    fn serialize(self) -> Serialize<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Serialize::new(self.into_observable())
    }

    // -- Errors

    /// Maps the error with `f`. See [`MapErr`].
    fn map_err<U, F>(self, f: F) -> MapErr<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> U + Send + 'static,
    {
        MapErr::new(self.into_observable(), f)
    }

    /// Adds an error type to a source that cannot fail. See [`WithErrorType`].
    fn with_error_type<E: 'static>(self) -> WithErrorType<Self::Observable, E>
    where
        Self: IntoObservable<Error = Infallible>,
    {
        WithErrorType::new(self.into_observable())
    }

    /// On an error, continues with the observable that `handler` returns. See [`Catch`].
    fn catch<R, F>(self, handler: F) -> Catch<Self::Observable, F>
    where
        F: FnOnce(&Self::Error) -> R + Send + 'static,
        R: IntoObservable<Item = Self::Item>,
    {
        Catch::new(self.into_observable(), handler)
    }

    /// On an error, emits the result of `f` and completes. See [`OnErrorReturn`].
    fn on_error_return<F>(self, f: F) -> OnErrorReturn<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> Self::Item + Send + 'static,
    {
        OnErrorReturn::new(self.into_observable(), f)
    }

    /// Subscribes again when the source completes, until the source has run `times` times. See [`Repeat`].
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

    /// Like [`retry`](Self::retry), with a delay from `backoff` before each attempt. See [`RetryWith`].
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

    /// Emits the values of each `period` as one `Vec`. On completion, also emits the values of the last,
    /// incomplete period. See [`BufferTime`].
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

    /// Like [`buffer_time`](Self::buffer_time), but also emits after `count` values. See [`BufferTime`].
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

    /// Emits the values of each `period` as an observable, until the source ends. See [`WindowTime`].
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

    /// Like [`window_time`](Self::window_time), with at most `count` values each. See [`WindowTime`].
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

    /// Emits a value if no other follows within `quiet`, and the last one on completion. See [`Debounce`].
    fn debounce<C: Scheduler>(self, quiet: Duration, scheduler: C) -> Debounce<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Debounce::new(self.into_observable(), quiet, scheduler)
    }

    /// Delays values and completion by `delay`, but not errors. See [`Delay`].
    fn delay<C: Scheduler>(self, delay: Duration, scheduler: C) -> Delay<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Delay::new(self.into_observable(), delay, scheduler)
    }

    /// Delays the subscription to the source by `delay`. See [`DelaySubscription`].
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

    /// Emits the latest new value every `period`. Completes or fails with the source. See [`SampleEvery`].
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

    /// Emits the first value of each `period`, the last value, or both. See [`Throttle`].
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

    /// Fails with the result of `error` if the next value does not arrive within `limit`. See [`Timeout`].
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

    /// Calls the observer on a worker of `scheduler`, in order, with an unbounded queue. See [`ObserveOn`].
    fn observe_on<C: Scheduler>(self, scheduler: C) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ObserveOn::new(self.into_observable(), scheduler, None)
    }

    /// Like [`observe_on`](Self::observe_on), with a bounded queue. See [`ObserveOn`].
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

    /// Subscribes on a worker of `scheduler`, for sources that emit during the subscription. See
    /// [`SubscribeOn`].
    fn subscribe_on<C: Scheduler>(self, scheduler: C) -> SubscribeOn<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        SubscribeOn::new(self.into_observable(), scheduler)
    }

    // -- Multicast

    /// Subscribes to the source once for all observers, when `connect` is called. See [`Connectable`].
    fn publish(self) -> Connectable<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), Subject::with_error)
    }

    /// Like [`publish`](Self::publish), and replays the values that `replay` retains. See [`Connectable`].
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

    /// Like [`publish`](Self::publish), but multicasts through your own subject. See [`Connectable`].
    fn multicast<H>(self, subject: H) -> Connectable<Self::Observable, H>
    where
        H: Hub<Self::Item, Self::Error>,
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || subject.clone())
    }

    /// Subscribes to the source once while there are observers: `publish().ref_count()`. See [`RefCount`].
    fn share(self) -> RefCount<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        self.publish().ref_count()
    }

    /// Like [`share`](Self::share), and replays the values that `replay` retains. See [`RefCount`].
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

    // -- Observing side effects

    /// Runs `action` once when the subscription ends for any reason. See [`Finalize`].
    fn finalize<F: FnOnce() + Send + 'static>(self, action: F) -> Finalize<Self::Observable, F> {
        Finalize::new(self.into_observable(), action)
    }

    /// Calls `inspect` with each value before it is emitted. See [`Tap`].
    fn tap<F>(self, inspect: F) -> Tap<Self::Observable, Callbacks<F>>
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        Tap::new(self.into_observable(), observer(inspect))
    }

    /// Like [`tap`](Self::tap), but an observer also receives completion or error. See [`Tap`].
    fn tap_with<L>(self, observer: L) -> Tap<Self::Observable, L>
    where
        L: Observer<Self::Item, Self::Error> + Send + 'static,
    {
        Tap::new(self.into_observable(), observer)
    }

    // -- Other shapes

    /// Emits `value` if the source completes without a value. See [`DefaultIfEmpty`].
    fn default_if_empty(self, value: Self::Item) -> DefaultIfEmpty<Self::Observable, Self::Item>
    where
        Self::Item: Send + 'static,
    {
        DefaultIfEmpty::new(self.into_observable(), value)
    }

    /// Emits these values after the source has completed. See [`EndWith`].
    fn end_with<I>(self, values: I) -> EndWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item> + Send + 'static,
    {
        EndWith::new(self.into_observable(), values)
    }

    /// Emits these values at the subscription, then those of the source. See [`StartWith`].
    fn start_with<I>(self, values: I) -> StartWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item>,
    {
        StartWith::new(self.into_observable(), values)
    }

    /// Subscribes with a closure that need not be `Send`; values must arrive on this thread. See
    /// [closures](crate::operators#closures-that-take-owned-values-or-stay-on-their-thread).
    fn subscribe_local<F>(self, next: F) -> Guard
    where
        Self::Item: 'static,
        Self::Error: 'static,
        F: FnMut(&Self::Item) + 'static,
    {
        self.into_observable()
            .subscribe_with(Pinned::new(observer(next)))
    }

    /// Hides the type of the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }

    /// Subscribes with a closure that receives owned values instead of references. See
    /// [closures](crate::operators#closures-that-take-owned-values-or-stay-on-their-thread).
    fn subscribe_owned<F>(self, next: F) -> Guard
    where
        Self::Item: Clone,
        F: FnMut(Self::Item) + Send + 'static,
    {
        self.into_observable()
            .subscribe_with(owned::OwnedObserver(next))
    }

    /// Returns the values as an asynchronous stream, whose queue follows `policy`. See [`IntoStream`].
    fn into_stream<P: OverflowPolicy>(self, policy: P) -> IntoStream<Self::Item, P>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
    {
        IntoStream::new(self, policy)
    }

    /// Like [`into_stream`](Self::into_stream), for a source that can fail. See [`TryIntoStream`].
    fn try_into_stream<P: OverflowPolicy>(
        self,
        policy: P,
    ) -> TryIntoStream<Self::Item, Self::Error, P>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TryIntoStream::new(self, policy)
    }

    /// Returns a future of the first value, or of `Ok(None)` without values. See [`FirstValue`].
    fn first_value(self) -> FirstValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        FirstValue::new(self)
    }

    /// Returns a future of the last value. Its result is `Ok(None)` if there is no value. See [`LastValue`].
    fn last_value(self) -> LastValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        LastValue::new(self)
    }
}

impl<S: IntoObservable> ObservableExt for S {}

/// A function that makes a pair of clones.
type Pairing<A, B> = fn(&A, &B) -> (A, B);

/// A function that makes a pair.
type Pair<A, B> = fn(A, B) -> (A, B);
