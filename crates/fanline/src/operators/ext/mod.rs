//! The traits whose methods are the operators.

mod combine;
#[cfg(feature = "std")]
mod time;

use core::cmp::Ordering;
use core::convert::Infallible;
#[cfg(feature = "std")]
use core::hash::Hash;
use core::ops::AddAssign;

pub use combine::CombineExt;
#[cfg(feature = "std")]
pub use time::TimeExt;

use super::*;
use crate::policy::{self, AnyReplay};
use crate::{
    BoxObservable, Callbacks, Clock, Guard, IntoObservable, Observable, Observer, observer,
};
use crate::{Replay, ReplaySubject, SharedSubject, Subject};
#[cfg(feature = "std")]
use crate::{
    Scheduler,
    pinned::Pinned,
    scheduler::Bound,
    stream::{FirstValue, IntoStream, LastValue, MostRecent, OverflowPolicy, TryIntoStream},
};

/// The operators with one source, for every type that converts into an [`Observable`].
///
/// [`CombineExt`] has the operators that subscribe to more than one observable, [`TimeExt`] those that depend
/// on time; the [prelude](crate::prelude) imports all three. The type that a method returns describes the
/// operator in full.
pub trait ObservableExt: IntoObservable {
    // -- Transforming

    /// Emits `Vec`s of `count` values; the last may be shorter.
    fn buffer_count(self, count: usize) -> BufferCount<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCount::new(self.into_observable(), count)
    }

    /// Emits a `Vec` of `count` values starting at every `every`-th value.
    fn buffer_count_every(self, count: usize, every: usize) -> BufferCountEvery<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        BufferCountEvery::new(self.into_observable(), count, every)
    }

    /// Reverses [`materialize`](Self::materialize).
    fn dematerialize<T, E>(self) -> Dematerialize<Self::Observable>
    where
        Self: IntoObservable<Item = Notification<T, E>, Error = Infallible>,
    {
        Dematerialize::new(self.into_observable())
    }

    /// Emits each value with its index, from 0.
    fn enumerate(self) -> Enumerate<Self::Observable>
    where
        Self::Item: Clone,
    {
        Enumerate::new(self.into_observable())
    }

    /// Emits the value in each `Some` that `f` returns.
    fn filter_map<U, F>(self, f: F) -> FilterMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> Option<U> + Send + 'static,
    {
        FilterMap::new(self.into_observable(), f)
    }

    /// Emits all items of the iterator that `f` returns for each value.
    fn flat_map_iter<I, F>(self, f: F) -> FlatMapIter<Self::Observable, F>
    where
        I: IntoIterator,
        F: FnMut(&Self::Item) -> I + Send + 'static,
    {
        FlatMapIter::new(self.into_observable(), f)
    }

    /// Emits the result of `f` for each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    /// Emits `value` in place of each value of the source.
    fn map_to<U: Clone + Send + 'static>(self, value: U) -> MapTo<Self::Observable, U> {
        MapTo::new(self.into_observable(), value)
    }

    /// Emits values, completion, and error as [`Notification`]s, then completes.
    fn materialize(self) -> Materialize<Self::Observable>
    where
        Self::Item: Clone,
        Self::Error: Clone,
    {
        Materialize::new(self.into_observable())
    }

    /// Emits each value with the previous one, from the second on.
    fn pairwise(self) -> Pairwise<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Pairwise::new(self.into_observable())
    }

    /// Emits each intermediate result of a fold with `f`.
    fn scan<A: Send + 'static, F>(self, initial: A, f: F) -> Scan<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Scan::new(self.into_observable(), initial, f)
    }

    /// Emits each value with the time since the previous one.
    fn time_interval<C: Clock>(self, clock: C) -> WithInterval<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        WithInterval::new(self.into_observable(), clock)
    }

    /// Emits each value with its time of arrival.
    fn timestamp<C: Clock>(self, clock: C) -> Timestamp<Self::Observable, C>
    where
        Self::Item: Clone,
    {
        Timestamp::new(self.into_observable(), clock)
    }

    /// Emits a [`Grouped`] observable per key. Completes or fails when the source does.
    #[cfg(feature = "std")]
    fn group_by<K, F>(self, key: F) -> GroupBy<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> K + Send + 'static,
        K: Clone + Eq + Hash + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        GroupBy::new(self.into_observable(), key)
    }

    /// Emits observables of `count` values each. Completes or fails with the source.
    fn window_count(self, count: usize) -> WindowCount<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowCount::new(self.into_observable(), count)
    }

    // -- Filtering

    /// Emits each distinct value once; stores all distinct values.
    #[cfg(feature = "std")]
    fn distinct(self) -> Distinct<Self::Observable>
    where
        Self::Item: Clone + Hash + Eq + Send + 'static,
    {
        Distinct::new(self.into_observable())
    }

    /// Emits the first value of each key; stores all keys.
    #[cfg(feature = "std")]
    fn distinct_by_key<K, F>(self, key: F) -> DistinctByKey<Self::Observable, F>
    where
        K: Hash + Eq + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        DistinctByKey::new(self.into_observable(), key)
    }

    /// Emits each value that differs from the previous one.
    fn distinct_until_changed(self) -> DistinctUntilChanged<Self::Observable>
    where
        Self::Item: PartialEq + Clone + Send + 'static,
    {
        DistinctUntilChanged::new(self.into_observable())
    }

    /// Emits each value for which `same`, called with the last emitted value and this one, returns `false`.
    fn distinct_until_changed_by<F>(self, same: F) -> DistinctUntilChangedBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> bool + Send + 'static,
    {
        DistinctUntilChangedBy::new(self.into_observable(), same)
    }

    /// Emits each value whose key differs from the previous value's.
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

    /// Emits the value at `index`, counted from 0, if there is one, and completes.
    fn element_at(self, index: usize) -> ElementAt<Self::Observable> {
        ElementAt::new(self.into_observable(), index)
    }

    /// Emits the values for which `predicate` holds.
    fn filter<F>(self, predicate: F) -> Filter<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Filter::new(self.into_observable(), predicate)
    }

    /// Emits the first value, if there is one, and completes.
    fn first(self) -> First<Self::Observable> {
        First::new(self.into_observable())
    }

    /// Emits no values, only the completion or the error.
    fn ignore_elements(self) -> IgnoreElements<Self::Observable> {
        IgnoreElements::new(self.into_observable())
    }

    /// Emits the last value, if there is one, when the source completes.
    fn last(self) -> LastElement<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        LastElement::new(self.into_observable())
    }

    /// Emits `Ok` with the only value, or `Err` if there is no value or a second one.
    fn single(self) -> Single<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Single::new(self.into_observable())
    }

    /// Drops the first `count` values.
    fn skip(self, count: usize) -> Skip<Self::Observable> {
        Skip::new(self.into_observable(), count)
    }

    /// Drops the last `count` values, by delaying each value by `count` values.
    fn skip_last(self, count: usize) -> SkipLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLast::new(self.into_observable(), count)
    }

    /// Drops values while `predicate` holds.
    fn skip_while<F>(self, predicate: F) -> SkipWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        SkipWhile::new(self.into_observable(), predicate)
    }

    /// Emits the first `count` values, and completes with the last of them.
    fn take(self, count: usize) -> Take<Self::Observable> {
        Take::new(self.into_observable(), count)
    }

    /// Emits the last `count` values when the source completes.
    fn take_last(self, count: usize) -> TakeLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        TakeLast::new(self.into_observable(), count)
    }

    /// Emits values up to and including the first one for which `predicate` holds, then completes.
    fn take_until_match<F>(self, predicate: F) -> TakeUntilMatch<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeUntilMatch::new(self.into_observable(), predicate)
    }

    /// Emits values while `predicate` holds, then completes.
    fn take_while<F>(self, predicate: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), predicate, false)
    }

    /// Like [`take_while`](Self::take_while), but also emits the first rejected value.
    fn take_while_inclusive<F>(self, predicate: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), predicate, true)
    }

    // -- Folding

    /// Emits whether `test` holds for all values, as soon as this is known, and completes.
    fn all<F>(self, test: F) -> AllMatch<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        AllMatch::new(self.into_observable(), test)
    }

    /// Emits, as soon as it is known, whether `test` holds for any value, and completes.
    fn any<F>(self, test: F) -> Any<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Any::new(self.into_observable(), test)
    }

    /// Emits the mean of the values, as `f64`, when the source completes.
    fn average(self) -> Average<Self::Observable>
    where
        Self::Item: Clone + Into<f64>,
    {
        Average::new(self.into_observable())
    }

    /// Emits all values as one collection when the source completes.
    fn collect<C>(self) -> Collect<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Default + Extend<Self::Item> + Send + 'static,
    {
        Collect::new(self.into_observable())
    }

    /// Emits whether any value equals `value`, as soon as this is known, and completes.
    fn contains(self, value: Self::Item) -> Contains<Self::Observable, Self::Item>
    where
        Self::Item: PartialEq + Send + 'static,
    {
        Contains::new(self.into_observable(), value)
    }

    /// Emits the number of values when the source completes.
    fn count(self) -> Count<Self::Observable> {
        Count::new(self.into_observable())
    }

    /// Emits the result of folding all values with `f` when the source completes.
    fn fold<A: Send + 'static, F>(self, initial: A, f: F) -> Fold<Self::Observable, A, F>
    where
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Fold::new(self.into_observable(), initial, f)
    }

    /// Emits whether the source has no value, as soon as this is known, and completes.
    #[expect(clippy::wrong_self_convention, reason = "named as `Iterator` would")]
    fn is_empty(self) -> IsEmpty<Self::Observable> {
        IsEmpty::new(self.into_observable())
    }

    /// Emits the greatest value when the source completes; among equal values, the last.
    fn max(self) -> Max<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Max::new(self.into_observable())
    }

    /// Like [`max`](Self::max), but `compare` defines the order.
    fn max_by<F>(self, compare: F) -> MaxBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MaxBy::new(self.into_observable(), compare)
    }

    /// Emits the least value when the source completes; among equal values, the first.
    fn min(self) -> Min<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Min::new(self.into_observable())
    }

    /// Like [`min`](Self::min), but `compare` defines the order.
    fn min_by<F>(self, compare: F) -> MinBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MinBy::new(self.into_observable(), compare)
    }

    /// Emits the result of folding all values with `f`, starting with the first value, when the source
    /// completes.
    fn reduce<F>(self, f: F) -> Reduce<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(Self::Item, &Self::Item) -> Self::Item + Send + 'static,
    {
        Reduce::new(self.into_observable(), f)
    }

    /// Emits the sum of the values when the source completes.
    fn sum(self) -> Sum<Self::Observable>
    where
        Self::Item: Default + for<'a> AddAssign<&'a Self::Item> + Send + 'static,
    {
        Sum::new(self.into_observable())
    }

    /// Emits all values in order when the source completes.
    fn sorted(self) -> Sorted<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Sorted::new(self.into_observable())
    }

    /// Like [`sorted`](Self::sorted), but `compare` defines the order.
    fn sorted_by<F>(self, compare: F) -> SortedBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        SortedBy::new(self.into_observable(), compare)
    }

    /// Emits a `HashMap` with the last value of each key when the source completes.
    #[cfg(feature = "std")]
    fn to_map<K, F>(self, key: F) -> ToMap<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        K: Eq + Hash + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        ToMap::new(self.into_observable(), key)
    }

    /// Emits a `HashMap` with all values of each key when the source completes.
    #[cfg(feature = "std")]
    fn to_multimap<K, F>(self, key: F) -> ToMultimap<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        K: Eq + Hash + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        ToMultimap::new(self.into_observable(), key)
    }

    // -- Errors

    /// Maps the error with `f`.
    fn map_err<U, F>(self, f: F) -> MapErr<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> U + Send + 'static,
    {
        MapErr::new(self.into_observable(), f)
    }

    /// Adds an error type to a source that cannot fail.
    fn with_error_type<E: 'static>(self) -> WithErrorType<Self::Observable, E>
    where
        Self: IntoObservable<Error = Infallible>,
    {
        WithErrorType::new(self.into_observable())
    }

    /// Completes when the source fails, and drops the error.
    fn on_error_complete(self) -> OnErrorComplete<Self::Observable> {
        OnErrorComplete::new(self.into_observable())
    }

    /// On an error, emits the result of `f` and completes.
    fn on_error_return<F>(self, f: F) -> OnErrorReturn<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> Self::Item + Send + 'static,
    {
        OnErrorReturn::new(self.into_observable(), f)
    }

    // -- Threads

    /// Calls the observer on a worker of `scheduler`, in order, with an unbounded queue.
    #[cfg(feature = "std")]
    fn observe_on<C: Scheduler>(self, scheduler: C) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ObserveOn::new(self.into_observable(), scheduler, None)
    }

    /// Like [`observe_on`](Self::observe_on), with a bounded queue.
    #[cfg(feature = "std")]
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

    /// Subscribes on a worker of `scheduler`, for sources that emit during the subscription.
    #[cfg(feature = "std")]
    fn subscribe_on<C: Scheduler>(self, scheduler: C) -> SubscribeOn<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        SubscribeOn::new(self.into_observable(), scheduler)
    }

    /// Prevents calls of the observer that overlap or follow its completion or error.
    fn serialize(self) -> Serialize<Self::Observable>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Serialize::new(self.into_observable())
    }

    // -- Multicast

    /// Subscribes to the source once for all observers, when `connect` is called.
    fn publish(self) -> Connectable<Self::Observable>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), Subject::with_error)
    }

    /// Like [`publish`](Self::publish), and replays the values that `replay` retains.
    fn replay<P: policy::Policy + Clone>(
        self,
        replay: Replay<P>,
    ) -> Connectable<Self::Observable, AnyReplay>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || {
            ReplaySubject::with_error(replay.clone())
        })
    }

    /// Like [`publish`](Self::publish), but multicasts through your own subject.
    fn multicast<P: policy::Flavor>(
        self,
        subject: SharedSubject<Self::Item, Self::Error, P>,
    ) -> Connectable<Self::Observable, P>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || subject.clone())
    }

    /// Subscribes to the source once while there are observers: `publish().ref_count()`.
    fn share(self) -> RefCount<Self::Observable>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        self.publish().ref_count()
    }

    /// Like [`share`](Self::share), and replays the values that `replay` retains.
    fn share_replay<P: policy::Policy + Clone>(
        self,
        replay: Replay<P>,
    ) -> RefCount<Self::Observable, AnyReplay>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        RefCount::new(self.replay(replay), None, false)
    }

    // -- Observing side effects

    /// Runs `action` once when the subscription ends for any reason.
    fn finalize<F: FnOnce() + Send + 'static>(self, action: F) -> Finalize<Self::Observable, F> {
        Finalize::new(self.into_observable(), action)
    }

    /// Runs `action` once if the subscription ends before the source has completed or failed.
    fn on_dispose<F: FnOnce() + Send + 'static>(self, action: F) -> OnDispose<Self::Observable, F> {
        OnDispose::new(self.into_observable(), action)
    }

    /// Runs `action` at the subscription, before the source is subscribed to.
    fn on_subscribe<F: FnOnce()>(self, action: F) -> OnSubscribe<Self::Observable, F> {
        OnSubscribe::new(self.into_observable(), action)
    }

    /// Calls `inspect` with each value before it is emitted.
    fn tap<F>(self, inspect: F) -> Tap<Self::Observable, Callbacks<F>>
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        Tap::new(self.into_observable(), observer(inspect))
    }

    /// Like [`tap`](Self::tap), but an observer also receives completion or error.
    fn tap_with<L>(self, observer: L) -> Tap<Self::Observable, L>
    where
        L: Observer<Self::Item, Self::Error> + Send + 'static,
    {
        Tap::new(self.into_observable(), observer)
    }

    // -- Other shapes

    /// Emits `value` if the source completes without a value.
    fn default_if_empty(self, value: Self::Item) -> DefaultIfEmpty<Self::Observable, Self::Item>
    where
        Self::Item: Send + 'static,
    {
        DefaultIfEmpty::new(self.into_observable(), value)
    }

    /// Emits these values after the source has completed.
    fn end_with<I>(self, values: I) -> EndWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item> + Send + 'static,
    {
        EndWith::new(self.into_observable(), values)
    }

    /// Emits these values at the subscription, then those of the source.
    fn start_with<I>(self, values: I) -> StartWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item>,
    {
        StartWith::new(self.into_observable(), values)
    }

    /// Subscribes with a closure that need not be `Send`; values must arrive on this thread. See
    /// [closures](crate::operators#closures-that-take-owned-values-or-stay-on-their-thread).
    #[cfg(feature = "std")]
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

    /// Returns the values as an asynchronous stream, whose queue follows `policy`.
    #[cfg(feature = "std")]
    fn into_stream<P: OverflowPolicy>(self, policy: P) -> IntoStream<Self::Item, P>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
    {
        IntoStream::new(self, policy)
    }

    /// Like [`into_stream`](Self::into_stream), for a source that can fail.
    #[cfg(feature = "std")]
    fn try_into_stream<P: OverflowPolicy>(
        self,
        policy: P,
    ) -> TryIntoStream<Self::Item, Self::Error, P>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TryIntoStream::new(self, policy)
    }

    /// Returns an iterator that yields the newest value without waiting, or `initial` before the first value.
    #[cfg(feature = "std")]
    fn most_recent(self, initial: Self::Item) -> MostRecent<Self::Item>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
    {
        MostRecent::new(self, initial)
    }

    /// Returns a future of the first value, or of `Ok(None)` without values.
    #[cfg(feature = "std")]
    fn first_value(self) -> FirstValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        FirstValue::new(self)
    }

    /// Returns a future of the last value. Its result is `Ok(None)` if there is no value.
    #[cfg(feature = "std")]
    fn last_value(self) -> LastValue<Self::Item, Self::Error>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        LastValue::new(self)
    }
}

impl<S: IntoObservable> ObservableExt for S {}
