//! Operators: observables made of observables.

mod accumulate;
mod buffer_count;
mod collect;
mod count;
mod default_if_empty;
mod distinct;
mod distinct_until_changed;
mod enumerate;
mod extreme;
mod filter;
mod filter_map;
mod finalize;
mod fold;
mod forward;
mod ignore_elements;
mod last;
mod map;
mod map_err;
mod map_to;
mod materialize;
mod owned;
mod pairwise;
mod scan;
mod single;
mod skip;
mod skip_while;
mod start_with;
mod sum;
mod take;
mod take_last;
mod take_while;
mod tap;
mod timestamp;
mod verdict;

pub use buffer_count::{BufferCount, BufferCountEvery};
pub use collect::Collect;
pub use count::Count;
pub use default_if_empty::DefaultIfEmpty;
pub use distinct::{Distinct, DistinctByKey};
pub use distinct_until_changed::{
    DistinctUntilChanged, DistinctUntilChangedBy, DistinctUntilChangedByKey,
};
pub use enumerate::Enumerate;
pub use extreme::{Max, MaxBy, Min, MinBy};
pub use filter::Filter;
pub use filter_map::FilterMap;
pub use finalize::Finalize;
pub use fold::{Fold, Reduce};
pub use ignore_elements::IgnoreElements;
pub use last::Last;
pub use map::Map;
pub use map_err::{MapErr, WithErrorType};
pub use map_to::MapTo;
pub use materialize::{Dematerialize, Materialize, Notification};
pub use pairwise::Pairwise;
pub use scan::Scan;
pub use single::{NotSingle, Single};
pub use skip::Skip;
pub use skip_while::SkipWhile;
pub use start_with::{EndWith, StartWith};
pub use sum::{Average, Sum};
pub use take::Take;
pub use take_last::{SkipLast, TakeLast};
pub use take_while::TakeWhile;
pub use tap::Tap;
pub use timestamp::{TimeInterval, Timestamp, Timestamped, WithInterval};
pub use verdict::{All, Any, Contains, IsEmpty};

use std::cmp::Ordering;
use std::convert::Infallible;
use std::hash::Hash;
use std::ops::AddAssign;

use crate::{
    BoxObservable, Callbacks, Clock, Guard, IntoObservable, Observable, Observer, observer,
};

/// The operators, on everything that can be turned into an [`Observable`](crate::Observable).
pub trait ObservableExt: IntoObservable {
    // Each group of methods stands under its heading, alphabetically where nothing else decides.

    // -- Transforming

    /// Emits the values in `Vec`s of `count`. On completion the rest comes as one that is shorter; an
    /// error passes at once and the rest is dropped. Keeps up to `count` values.
    ///
    /// # Panics
    ///
    /// If `count` is zero.
    fn buffer_count(self, count: usize) -> BufferCount<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        assert!(count > 0, "`count` must be at least 1");
        BufferCount::new(self.into_observable(), count)
    }

    /// As [`buffer_count`](Self::buffer_count), with a buffer that begins at every `every`-th value: they
    /// overlap where `every` is less than `count`, and leave values out where it is more. On completion
    /// all buffers that have begun come, the oldest first.
    ///
    /// # Panics
    ///
    /// If `count` or `every` is zero.
    fn buffer_count_every(self, count: usize, every: usize) -> BufferCountEvery<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        assert!(count > 0, "`count` must be at least 1");
        assert!(every > 0, "`every` must be at least 1");
        BufferCountEvery::new(self.into_observable(), count, every)
    }

    /// Emits, fails and completes as the [`Notification`]s say: undoes
    /// [`materialize`](Self::materialize). Ends with the first that is an end.
    fn dematerialize<T, E>(self) -> Dematerialize<Self::Observable>
    where
        Self: IntoObservable<Item = Notification<T, E>, Error = Infallible>,
    {
        Dematerialize::new(self.into_observable())
    }

    /// Emits each value with its number, from zero.
    fn enumerate(self) -> Enumerate<Self::Observable>
    where
        Self::Item: Clone,
    {
        Enumerate::new(self.into_observable())
    }

    /// Emits what `f` makes of each value, and nothing where it makes nothing.
    fn filter_map<U, F>(self, f: F) -> FilterMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> Option<U> + Send + 'static,
    {
        FilterMap::new(self.into_observable(), f)
    }

    /// Emits what `f` makes of each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    /// Emits `value` for each value.
    fn map_to<U>(self, value: U) -> MapTo<Self::Observable, U>
    where
        U: Clone + Send + 'static,
    {
        MapTo::new(self.into_observable(), value)
    }

    /// Emits what comes as [`Notification`]s, the end among them, and completes after that one. Cannot fail
    /// any more.
    fn materialize(self) -> Materialize<Self::Observable>
    where
        Self::Item: Clone,
        Self::Error: Clone,
    {
        Materialize::new(self.into_observable())
    }

    /// Emits each value but the first with the one before it. Keeps one value.
    fn pairwise(self) -> Pairwise<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Pairwise::new(self.into_observable())
    }

    /// Emits, for each value, what `f` makes of it and of what it made before; of `initial` at first. The
    /// last of them alone is [`fold`](Self::fold).
    fn scan<A, F>(self, initial: A, f: F) -> Scan<Self::Observable, A, F>
    where
        A: Send + 'static,
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Scan::new(self.into_observable(), initial, f)
    }

    /// Emits each value with the time since the one before it, on `clock`; for the first, since the
    /// subscription.
    fn time_interval<C>(self, clock: C) -> WithInterval<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Clock,
    {
        WithInterval::new(self.into_observable(), clock)
    }

    /// Emits each value with the time at which it came, on `clock`. Times never go back.
    fn timestamp<C>(self, clock: C) -> Timestamp<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Clock,
    {
        Timestamp::new(self.into_observable(), clock)
    }

    // -- Filtering

    /// Emits each value the first time it comes. Remembers every value that came: memory grows with the
    /// number of unlike ones.
    fn distinct(self) -> Distinct<Self::Observable>
    where
        Self::Item: Clone + Hash + Eq + Send + 'static,
    {
        Distinct::new(self.into_observable())
    }

    /// Emits each value whose key comes the first time. Remembers every key that came.
    fn distinct_by_key<K, F>(self, key: F) -> DistinctByKey<Self::Observable, F>
    where
        K: Hash + Eq + Send + 'static,
        F: FnMut(&Self::Item) -> K + Send + 'static,
    {
        DistinctByKey::new(self.into_observable(), key)
    }

    /// Emits each value that differs from the one before it. Keeps one value.
    fn distinct_until_changed(self) -> DistinctUntilChanged<Self::Observable>
    where
        Self::Item: PartialEq + Clone + Send + 'static,
    {
        DistinctUntilChanged::new(self.into_observable())
    }

    /// Emits each value that `same` does not find the same as the last one emitted, which is its first
    /// argument. Keeps one value.
    fn distinct_until_changed_by<F>(self, same: F) -> DistinctUntilChangedBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> bool + Send + 'static,
    {
        DistinctUntilChangedBy::new(self.into_observable(), same)
    }

    /// Emits each value whose key differs from that of the one before it. Keeps one key.
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

    /// Emits the value with this number, counted from zero, and completes; completes without one when the
    /// source has fewer.
    fn element_at(self, index: usize) -> Take<Skip<Self::Observable>> {
        self.skip(index).take(1)
    }

    /// Emits the values for which `keep` says so.
    fn filter<F>(self, keep: F) -> Filter<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Filter::new(self.into_observable(), keep)
    }

    /// Emits the first value and completes; completes without one when the source does.
    fn first(self) -> Take<Self::Observable> {
        self.take(1)
    }

    /// Emits no value, only the end.
    fn ignore_elements(self) -> IgnoreElements<Self::Observable> {
        IgnoreElements::new(self.into_observable())
    }

    /// Emits the last value when the source completes; nothing when there was none. Keeps one value.
    fn last(self) -> Last<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Last::new(self.into_observable())
    }

    /// Emits `Ok` with the source's only value when the source completes; `Err` when it completes without
    /// one, or at once when there is a second. Then completes. Keeps one value.
    fn single(self) -> Single<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        Single::new(self.into_observable())
    }

    /// Leaves the first `count` values out.
    fn skip(self, count: usize) -> Skip<Self::Observable> {
        Skip::new(self.into_observable(), count)
    }

    /// Leaves the last `count` values out: each is emitted when that many have come after it. Keeps
    /// `count` values.
    fn skip_last(self, count: usize) -> SkipLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLast::new(self.into_observable(), count)
    }

    /// Leaves values out until `unwanted` first says no, and is not asked again.
    fn skip_while<F>(self, unwanted: F) -> SkipWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        SkipWhile::new(self.into_observable(), unwanted)
    }

    /// Emits the first `count` values, and completes with the last of them. With zero it completes when
    /// subscribed, and does not subscribe to the source.
    fn take(self, count: usize) -> Take<Self::Observable> {
        Take::new(self.into_observable(), count)
    }

    /// Emits the last `count` values when the source completes. Keeps that many.
    fn take_last(self, count: usize) -> TakeLast<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
    {
        TakeLast::new(self.into_observable(), count)
    }

    /// Emits values until `wanted` first says no, and completes there.
    fn take_while<F>(self, wanted: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), wanted, false)
    }

    /// As [`take_while`](Self::take_while), and emits the value to which `wanted` said no as well.
    fn take_while_inclusive<F>(self, wanted: F) -> TakeWhile<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        TakeWhile::new(self.into_observable(), wanted, true)
    }

    // -- Folding

    /// Emits whether `test` holds for all values: `false` with the first for which it does not, else `true`
    /// when the source completes. Then completes.
    fn all<F>(self, test: F) -> All<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        All::new(self.into_observable(), test)
    }

    /// Emits whether `test` holds for any value: `true` with the first for which it does, else `false` when
    /// the source completes. Then completes.
    fn any<F>(self, test: F) -> Any<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        Any::new(self.into_observable(), test)
    }

    /// Emits the mean of the values when the source completes; nothing when there were none. Counted in
    /// `f64`: [`map`](Self::map) what does not turn into it by itself.
    fn average(self) -> Average<Self::Observable>
    where
        Self::Item: Clone + Into<f64>,
    {
        Average::new(self.into_observable())
    }

    /// Emits all values in one collection when the source completes. Keeps them all until then.
    fn collect<C>(self) -> Collect<Self::Observable, C>
    where
        Self::Item: Clone,
        C: Default + Extend<Self::Item> + Send + 'static,
    {
        Collect::new(self.into_observable())
    }

    /// Emits whether a value equals this one: `true` with the first that does, else `false` when the source
    /// completes. Then completes.
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

    /// Emits, when the source completes, what `f` has made of `initial` and of one value after the other;
    /// `initial` when there were none.
    fn fold<A, F>(self, initial: A, f: F) -> Fold<Self::Observable, A, F>
    where
        A: Send + 'static,
        F: FnMut(A, &Self::Item) -> A + Send + 'static,
    {
        Fold::new(self.into_observable(), initial, f)
    }

    /// Emits whether the source has no value: `false` with the first, else `true` when it completes. Then
    /// completes.
    #[expect(
        clippy::wrong_self_convention,
        reason = "named as the question it answers, as `Iterator` names its own"
    )]
    fn is_empty(self) -> IsEmpty<Self::Observable> {
        IsEmpty::new(self.into_observable())
    }

    /// Emits the greatest value when the source completes, the last of equals; nothing when there were none.
    /// Keeps one value.
    fn max(self) -> Max<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Max::new(self.into_observable())
    }

    /// As [`max`](Self::max), in the order that `compare` gives.
    fn max_by<F>(self, compare: F) -> MaxBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MaxBy::new(self.into_observable(), compare)
    }

    /// Emits the least value when the source completes, the first of equals; nothing when there were none.
    /// Keeps one value.
    fn min(self) -> Min<Self::Observable>
    where
        Self::Item: Ord + Clone + Send + 'static,
    {
        Min::new(self.into_observable())
    }

    /// As [`min`](Self::min), in the order that `compare` gives.
    fn min_by<F>(self, compare: F) -> MinBy<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(&Self::Item, &Self::Item) -> Ordering + Send + 'static,
    {
        MinBy::new(self.into_observable(), compare)
    }

    /// Emits, when the source completes, what `f` has made of the first value and of one after the other that
    /// followed; nothing when there were none.
    fn reduce<F>(self, f: F) -> Reduce<Self::Observable, F>
    where
        Self::Item: Clone + Send + 'static,
        F: FnMut(Self::Item, &Self::Item) -> Self::Item + Send + 'static,
    {
        Reduce::new(self.into_observable(), f)
    }

    /// Emits the sum of the values when the source completes; the type's default when there were none.
    /// Overflow is that of `+=`: it panics where that does.
    fn sum(self) -> Sum<Self::Observable>
    where
        Self::Item: Default + for<'a> AddAssign<&'a Self::Item> + Send + 'static,
    {
        Sum::new(self.into_observable())
    }

    // -- Combining

    // -- Errors

    /// Fails with what `f` makes of the error. Values pass.
    fn map_err<U, F>(self, f: F) -> MapErr<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> U + Send + 'static,
    {
        MapErr::new(self.into_observable(), f)
    }

    /// Gives an observable that cannot fail the error type of one that can, to go together with it.
    fn with_error_type<E>(self) -> WithErrorType<Self::Observable, E>
    where
        Self: IntoObservable<Error = Infallible>,
        E: 'static,
    {
        WithErrorType::new(self.into_observable())
    }

    // -- Time

    // -- Threads

    // -- Multicast

    // -- Looking on

    /// Runs `action` once when the subscription is over, however that comes about: after the end has been
    /// passed on, when the guard is dropped, or when the source drops the observer because nothing more is
    /// wanted. Runs on the thread that ends it.
    fn finalize<F>(self, action: F) -> Finalize<Self::Observable, F>
    where
        F: FnOnce() + Send + 'static,
    {
        Finalize::new(self.into_observable(), action)
    }

    /// Shows each value to `look` before it is passed on. Values that come as a slice are shown all
    /// before the first is passed on.
    fn tap<F>(self, look: F) -> Tap<Self::Observable, Callbacks<F>>
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        Tap::new(self.into_observable(), observer(look))
    }

    /// As [`tap`](Self::tap), with an observer, which is shown the end as well:
    /// `tap_with(observer(|value| ..).on_complete(|| ..))`.
    fn tap_with<L>(self, looker: L) -> Tap<Self::Observable, L>
    where
        L: Observer<Self::Item, Self::Error> + Send + 'static,
    {
        Tap::new(self.into_observable(), looker)
    }

    // -- Other shapes

    /// Emits `value` when the source completes without one.
    fn default_if_empty(self, value: Self::Item) -> DefaultIfEmpty<Self::Observable, Self::Item>
    where
        Self::Item: Send + 'static,
    {
        DefaultIfEmpty::new(self.into_observable(), value)
    }

    /// Emits these values after the source's, when it completes; not after an error.
    fn end_with<I>(self, values: I) -> EndWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item> + Send + 'static,
    {
        EndWith::new(self.into_observable(), values)
    }

    /// Emits these values when subscribed, then subscribes to the source.
    fn start_with<I>(self, values: I) -> StartWith<Self::Observable, I>
    where
        I: IntoIterator<Item = Self::Item>,
    {
        StartWith::new(self.into_observable(), values)
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

    /// Subscribes a closure that keeps what it gets: it is given values, not references. One that
    /// others get too is cloned; one that an operator made is not. Ends are not looked at.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (tx, rx) = std::sync::mpsc::channel();
    /// fanline::from_iter(1..=2)
    ///     .map(|n| format!("no. {n}"))
    ///     .subscribe_owned(move |text| tx.send(text).expect("still there"))
    ///     .detach();
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), ["no. 1", "no. 2"]);
    /// ```
    fn subscribe_owned<F>(self, next: F) -> Guard
    where
        Self::Item: Clone,
        F: FnMut(Self::Item) + Send + 'static,
    {
        self.into_observable()
            .subscribe_with(owned::OwnedObserver(next))
    }
}

impl<S: IntoObservable> ObservableExt for S {}
