//! Operators: observables made of observables.

mod accumulate;
mod again;
mod buffer_count;
mod buffer_time;
mod catch;
mod collect;
mod combine_latest;
mod concat;
mod count;
mod debounce;
mod default_if_empty;
mod delay;
mod delay_subscription;
mod distinct;
mod distinct_until_changed;
mod enumerate;
mod exhaust_map;
mod extreme;
mod filter;
mod filter_map;
mod finalize;
mod flat_map;
mod flat_map_on;
mod fold;
mod forward;
mod from_future;
mod funnel;
mod gate;
mod group_by;
mod ignore_elements;
mod interval;
mod join;
mod last;
mod map;
mod map_err;
mod map_to;
mod materialize;
mod merge;
mod multicast;
mod observe_on;
mod on_error_return;
mod owned;
mod pairwise;
mod race;
mod ref_count;
mod repeat;
mod retry;
mod sample;
mod sample_every;
mod scan;
mod serialize;
mod series;
mod signal;
mod single;
mod skip;
mod skip_until;
mod skip_while;
mod start_with;
mod subscribe_on;
mod sum;
mod switch_all;
mod switch_map;
mod take;
mod take_last;
mod take_until;
mod take_while;
mod tap;
mod throttle;
mod timed;
mod timeout;
mod timestamp;
mod unicast;
mod upstreams;
mod verdict;
mod window_count;
mod window_time;
mod with_latest_from;
mod zip;

pub use buffer_count::{BufferCount, BufferCountEvery};
pub use buffer_time::BufferTime;
pub use catch::Catch;
pub use collect::Collect;
pub use combine_latest::CombineLatest;
pub use concat::{Concat, ConcatAll, concat_all};
pub use count::Count;
pub use debounce::Debounce;
pub use default_if_empty::DefaultIfEmpty;
pub use delay::Delay;
pub use delay_subscription::DelaySubscription;
pub use distinct::{Distinct, DistinctByKey};
pub use distinct_until_changed::{
    DistinctUntilChanged, DistinctUntilChangedBy, DistinctUntilChangedByKey,
};
pub use enumerate::Enumerate;
pub use exhaust_map::ExhaustMap;
pub use extreme::{Max, MaxBy, Min, MinBy};
pub use filter::Filter;
pub use filter_map::FilterMap;
pub use finalize::Finalize;
pub use flat_map::FlatMap;
pub use flat_map_on::FlatMapOn;
pub use fold::{Fold, Reduce};
pub use from_future::{FromFuture, from_future};
pub use group_by::{GroupBy, Grouped};
pub use ignore_elements::IgnoreElements;
pub use interval::{Interval, Timer, interval, timer};
pub use last::Last;
pub use map::Map;
pub use map_err::{MapErr, WithErrorType};
pub use map_to::MapTo;
pub use materialize::{Dematerialize, Materialize, Notification};
pub use merge::{Merge, MergeAll, merge_all};
pub use multicast::{Connectable, FromShared, Hub, Shareable};
pub use observe_on::ObserveOn;
pub use on_error_return::OnErrorReturn;
pub use pairwise::Pairwise;
pub use race::{Race, RaceAll, race_all};
pub use ref_count::{AutoConnect, RefCount};
pub use repeat::Repeat;
pub use retry::{Backoff, Retry, RetryWith};
pub use sample::Sample;
pub use sample_every::SampleEvery;
pub use scan::Scan;
pub use serialize::{Serialize, Serialized};
pub use single::{NotSingle, Single};
pub use skip::Skip;
pub use skip_until::SkipUntil;
pub use skip_while::SkipWhile;
pub use start_with::{EndWith, StartWith};
pub use subscribe_on::SubscribeOn;
pub use sum::{Average, Sum};
pub use switch_all::SwitchAll;
pub use switch_map::SwitchMap;
pub use take::Take;
pub use take_last::{SkipLast, TakeLast};
pub use take_until::TakeUntil;
pub use take_while::TakeWhile;
pub use tap::Tap;
pub use throttle::{Edge, Throttle};
pub use timeout::Timeout;
pub use timestamp::{TimeInterval, Timestamp, Timestamped, WithInterval};
pub use unicast::{FromUnicast, Unicast};
pub use verdict::{All, Any, Contains, IsEmpty};
pub use window_count::WindowCount;
pub use window_time::WindowTime;
pub use with_latest_from::WithLatestFrom;
pub use zip::Zip;

use std::cmp::Ordering;
use std::convert::Infallible;
use std::hash::Hash;
use std::ops::AddAssign;
use std::time::Duration;

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

    /// Sorts the values by what `key` makes of them: emits a [`Grouped`] observable when a key comes
    /// first, and its values there.
    ///
    /// A group keeps its values, without bound, until it is subscribed; that has to be done once, the
    /// first subscription gets everything, and a later one gets an end. A group that nobody holds any
    /// more, or whose observer has gone, drops its values; it does not come again. Groups live on when
    /// no more of them are wanted, and the source is unsubscribed when the last has gone.
    ///
    /// The source's end is the end of all groups, then of this. Keeps one entry for each key.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(1..=6)
    ///     .group_by(|n| n % 2)
    ///     .flat_map(usize::MAX, |group| {
    ///         let key = *group.key();
    ///         group.clone().map(move |n| (key, *n))
    ///     })
    ///     .subscribe(|pair| println!("{pair:?}"))
    ///     .detach();
    /// ```
    fn group_by<K, F>(self, key: F) -> GroupBy<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> K + Send + 'static,
        K: Clone + Eq + Hash + Send + 'static,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        GroupBy::new(self.into_observable(), key)
    }

    /// Emits the values in observables of `count` each, the last of which may have fewer: a window is
    /// emitted when its first value comes, and completes with its last.
    ///
    /// A window keeps its values until it is subscribed, once; see [`Unicast`]. The source's end is the
    /// end of the open window, then of this. A window lives on when no more of them are wanted.
    ///
    /// # Panics
    /// When `count` is 0.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(1..=5)
    ///     .window_count(2)
    ///     .flat_map(usize::MAX, |window| window.clone().sum())
    ///     .subscribe(|sum| println!("{sum}")) // 3 7 5
    ///     .detach();
    /// ```
    fn window_count(self, count: usize) -> WindowCount<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        WindowCount::new(self.into_observable(), count)
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

    /// Emits the latest values of this source and of `other` as a pair, whenever either has a new
    /// one; nothing until each has had one.
    ///
    /// Completes when both have, or when one completes without a value; fails with the first that
    /// fails. Keeps one value of each. See
    /// [`combine_latest_with`](ObservableExt::combine_latest_with) for pairs without clones.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut price, prices) = fanline::subject::<u32>();
    /// let (mut amount, amounts) = fanline::subject::<u32>();
    /// let _guard = prices.combine_latest(amounts).subscribe(|pair| println!("{pair:?}"));
    /// price.next(10);
    /// amount.next(2); // (10, 2)
    /// price.next(11); // (11, 2)
    /// ```
    #[allow(clippy::type_complexity, reason = "a function type, spelt out once")]
    fn combine_latest<B>(
        self,
        other: B,
    ) -> CombineLatest<
        Self::Observable,
        B::Observable,
        fn(&Self::Item, &B::Item) -> (Self::Item, B::Item),
    >
    where
        B: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        self.combine_latest_with(other, |left, right| (left.clone(), right.clone()))
    }

    /// [`combine_latest`](ObservableExt::combine_latest) with what `f` makes of the two values.
    fn combine_latest_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> CombineLatest<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        CombineLatest::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits all of this source, and when that completes all of `next`, which is subscribed then.
    ///
    /// Completes with `next`; fails with whichever fails, and `next` is not subscribed when it is this
    /// one. Keeps nothing. [`concat_all`] does it for a list.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(0..2)
    ///     .concat(fanline::from_iter(5..7))
    ///     .subscribe(|value| println!("{value}")) // 0 1 5 6
    ///     .detach();
    /// ```
    fn concat<B>(self, next: B) -> Concat<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Concat::new(self.into_observable(), next.into_observable())
    }

    /// Emits all of the observable that `f` makes of the first value, then all of the one made of the
    /// second, and so on: [`flat_map`](ObservableExt::flat_map) with one at a time.
    ///
    /// `f` is called as values come; what it gives back waits, not subscribed, without bound.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter([10, 20])
    ///     .concat_map(|&n| fanline::from_iter(n..n + 2))
    ///     .subscribe(|value| println!("{value}")) // 10 11 20 21
    ///     .detach();
    /// ```
    fn concat_map<R, F>(self, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), 1, f)
    }

    /// Emits all of the observable that `f` makes of a value; values that come before it has completed
    /// are ignored.
    ///
    /// Completes when the source and the observable in progress have; fails with the first that fails.
    /// Keeps nothing. A panic of `f` ends it without a word.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut click, clicks) = fanline::subject::<&str>();
    /// let (mut answer, answers) = fanline::subject::<u32>();
    /// let _guard = clicks.exhaust_map(move |_| answers.clone()).subscribe(|n| println!("{n}"));
    /// click.next("send");
    /// click.next("send again"); // ignored: the answer is not complete
    /// answer.next(200);
    /// ```
    fn exhaust_map<R, F>(self, f: F) -> ExhaustMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ExhaustMap::new(self.into_observable(), f)
    }

    /// Emits what the observables that `f` makes of the values emit, as it comes, from at most `most`
    /// of them at a time; `usize::MAX` for no limit.
    ///
    /// `f` is called as values come; what it gives back beyond `most` waits, not subscribed, without
    /// bound. Completes when the source and all of them have; fails with the first that fails. A panic
    /// of `f` ends it without a word. For work in parallel see
    /// [`flat_map_on`](ObservableExt::flat_map_on).
    ///
    /// # Panics
    /// When `most` is 0.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter([10, 20])
    ///     .flat_map(usize::MAX, |&n| fanline::from_iter(n..n + 2))
    ///     .subscribe(|value| println!("{value}"))
    ///     .detach();
    /// ```
    fn flat_map<R, F>(self, most: usize, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), most, f)
    }

    /// [`flat_map`](ObservableExt::flat_map) that subscribes each observable on a worker of its own of
    /// `scheduler`: a map in parallel, `most` at a time, in the order of completion.
    ///
    /// (`observe_on` moves values to one other thread, in order, and so makes nothing parallel.) The
    /// work belongs in the observable, not in `f`, which is called on the source's thread:
    ///
    /// ```
    /// use fanline::{prelude::*, scheduler::ThreadPool};
    ///
    /// let pool = ThreadPool::new(4);
    /// let guard = fanline::from_iter(0..100_u64)
    ///     .flat_map_on(pool, 4, |&n| fanline::defer(move || fanline::of(n * n))) // squared on the pool
    ///     .subscribe(|square| println!("{square}"));
    /// # drop(guard);
    /// ```
    ///
    /// # Panics
    /// When `most` is 0.
    fn flat_map_on<C, R, F>(
        self,
        scheduler: C,
        most: usize,
        f: F,
    ) -> FlatMapOn<Self::Observable, C, F>
    where
        C: Scheduler,
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Observable: Send + 'static,
        R::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapOn::new(self.into_observable(), scheduler, most, f)
    }

    /// Emits the values of this source and of `other` as they come.
    ///
    /// Completes when both have; fails with the first that fails. Values that come on two threads at
    /// once are delivered by one of them, the other leaves a clone and goes on; nothing else is kept.
    /// [`merge_all`] does it for a list.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(0..2)
    ///     .merge(fanline::from_iter(5..7))
    ///     .subscribe(|value| println!("{value}"))
    ///     .detach();
    /// ```
    fn merge<B>(self, other: B) -> Merge<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Merge::new(self.into_observable(), other.into_observable())
    }

    /// Is this source or `other`, whichever says something first, be it an end; the one that was
    /// slower is unsubscribed. Rx also calls it `amb`. Keeps nothing. [`race_all`] does it for a list.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut near, from_near) = fanline::subject::<u32>();
    /// let (far, from_far) = fanline::subject::<u32>();
    /// let _guard = from_near.race(from_far).subscribe(|value| println!("{value}"));
    /// near.next(1);
    /// assert!(!far.has_observers());
    /// ```
    fn race<B>(self, other: B) -> Race<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Race::new(self.into_observable(), other.into_observable())
    }

    /// Emits the values of the observable that came last, of a source that emits observables:
    /// [`switch_map`](ObservableExt::switch_map) without a closure.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut channel, channels) = fanline::subject();
    /// let _guard = channels.switch_all().subscribe(|value: &u32| println!("{value}"));
    /// let (first, second) = (fanline::Subject::new(), fanline::Subject::new());
    /// channel.next(first.clone());
    /// channel.next(second.clone());
    /// first.next(1); // nobody listens any more
    /// second.next(2);
    /// ```
    fn switch_all(self) -> SwitchAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SwitchAll::new(self.into_observable())
    }

    /// Emits what the observable emits that `f` makes of the latest value; the one before it is
    /// unsubscribed first.
    ///
    /// Completes when the source and the latest observable have; fails with the first of these that
    /// fails. Keeps nothing. A panic of `f` ends it without a word.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut typed, texts) = fanline::subject::<u32>();
    /// let _guard = texts
    ///     .switch_map(|&text| fanline::from_iter([text, text * 10])) // the results of a search
    ///     .subscribe(|value| println!("{value}"));
    /// typed.next(1);
    /// ```
    fn switch_map<R, F>(self, f: F) -> SwitchMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SwitchMap::new(self.into_observable(), f)
    }

    /// Emits each value with the latest of `other`; values that come before `other` had one are
    /// dropped.
    ///
    /// `other` is subscribed first. Completes with this source, whatever `other` does; fails with the
    /// first that fails. Keeps one value of `other`. See
    /// [`with_latest_from_with`](ObservableExt::with_latest_from_with) for pairs without clones.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut click, clicks) = fanline::subject::<&str>();
    /// let (mut mode, modes) = fanline::subject::<u32>();
    /// let _guard = clicks.with_latest_from(modes).subscribe(|pair| println!("{pair:?}"));
    /// mode.next(1);
    /// click.next("here"); // ("here", 1)
    /// ```
    #[allow(clippy::type_complexity, reason = "a function type, spelt out once")]
    fn with_latest_from<B>(
        self,
        other: B,
    ) -> WithLatestFrom<
        Self::Observable,
        B::Observable,
        fn(&Self::Item, &B::Item) -> (Self::Item, B::Item),
    >
    where
        B: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        self.with_latest_from_with(other, |value, latest| (value.clone(), latest.clone()))
    }

    /// [`with_latest_from`](ObservableExt::with_latest_from) with what `f` makes of the value and the
    /// latest.
    fn with_latest_from_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> WithLatestFrom<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        WithLatestFrom::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the first values of both sources as a pair, then the second ones, and so on.
    ///
    /// Completes when one has completed and all its values are paired; fails with the first that fails.
    /// Keeps, without bound, what the faster one is ahead.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(["a", "b"])
    ///     .zip(fanline::from_iter(1..10))
    ///     .subscribe(|pair| println!("{pair:?}")) // ("a", 1) ("b", 2)
    ///     .detach();
    /// ```
    #[allow(clippy::type_complexity, reason = "a function type, spelt out once")]
    fn zip<B>(
        self,
        other: B,
    ) -> Zip<Self::Observable, B::Observable, fn(Self::Item, B::Item) -> (Self::Item, B::Item)>
    where
        B: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        self.zip_with(other, |left, right| (left, right))
    }

    /// [`zip`](ObservableExt::zip) with what `f` makes of the two values.
    fn zip_with<B, C, F>(self, other: B, f: F) -> Zip<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Error = Self::Error>,
        F: FnMut(Self::Item, B::Item) -> C + Send + 'static,
        Self::Item: Clone + Send + 'static,
        B::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Zip::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the latest value whenever `sampler` emits, if there is a new one since.
    ///
    /// Completes when either completes, and a value not sampled by then is dropped; fails with the
    /// first that fails. Keeps one value.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut reading, readings) = fanline::subject::<u32>();
    /// let (mut tick, ticks) = fanline::subject::<()>();
    /// let _guard = readings.sample_by(ticks).subscribe(|value| println!("{value}"));
    /// reading.next(1);
    /// reading.next(2);
    /// tick.next(()); // 2
    /// tick.next(()); // nothing new
    /// ```
    fn sample_by<N>(self, sampler: N) -> Sample<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Sample::new(self.into_observable(), sampler.into_observable())
    }

    /// Drops values until `notifier` emits, then emits all.
    ///
    /// `notifier` is subscribed first. Completes with this source; a `notifier` that completes without
    /// a value lets nothing through. Fails with the first that fails. Keeps nothing.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let (mut start, started) = fanline::subject::<()>();
    /// let _guard = source.skip_until(started).subscribe(|value| println!("{value}"));
    /// tx.next(1);
    /// start.next(());
    /// tx.next(2); // printed
    /// ```
    fn skip_until<N>(self, notifier: N) -> SkipUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SkipUntil::new(self.into_observable(), notifier.into_observable())
    }

    /// Emits values until `notifier` emits, then completes.
    ///
    /// `notifier` is subscribed first, so that one that emits at once lets nothing through; its
    /// completion without a value means nothing. Fails with the first that fails. Keeps nothing.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let (mut stop, stopped) = fanline::subject::<()>();
    /// let _guard = source.take_until(stopped).subscribe(|value| println!("{value}"));
    /// tx.next(1);
    /// stop.next(());
    /// assert!(!tx.has_observers());
    /// ```
    fn take_until<N>(self, notifier: N) -> TakeUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        TakeUntil::new(self.into_observable(), notifier.into_observable())
    }

    /// Puts a gate before the observer that makes sure of the rules: one call at a time, re-entrance
    /// breadth first, nothing after the end.
    ///
    /// All observables of this library keep to the rules by themselves; it is for sources written by
    /// hand. To let several callers share an observer, see [`Serialized`].
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(0..3).serialize().subscribe(|value| println!("{value}")).detach();
    /// ```
    fn serialize(self) -> Serialize<Self::Observable>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Serialize::new(self.into_observable())
    }

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

    /// Goes on with the observable that `handler` makes of the error, when there is one.
    ///
    /// The result fails with what that fails with: [`Infallible`] if it
    /// cannot. Keeps nothing.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::throw::<u32, _>("offline")
    ///     .catch(|_| fanline::from_iter([1, 2])) // from a file, say
    ///     .subscribe(|value| println!("{value}"))
    ///     .detach();
    /// ```
    fn catch<R, F>(self, handler: F) -> Catch<Self::Observable, F>
    where
        F: FnOnce(&Self::Error) -> R + Send + 'static,
        R: IntoObservable<Item = Self::Item>,
    {
        Catch::new(self.into_observable(), handler)
    }

    /// In place of an error, emits what `f` makes of it and completes.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::throw::<u32, _>("offline").on_error_return(|_| 0).subscribe(|v| assert_eq!(*v, 0)).detach();
    /// ```
    fn on_error_return<F>(self, f: F) -> OnErrorReturn<Self::Observable, F>
    where
        F: FnMut(&Self::Error) -> Self::Item + Send + 'static,
    {
        OnErrorReturn::new(self.into_observable(), f)
    }

    /// Subscribes to a clone of the source again each time it completes, until it has run `times`
    /// times; `usize::MAX` for ever, 0 to complete at once.
    ///
    /// Fails when a run fails. The stack does not grow with the runs. Keeps nothing.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::from_iter(0..2).repeat(2).subscribe(|value| println!("{value}")).detach(); // 0 1 0 1
    /// ```
    fn repeat(self, times: usize) -> Repeat<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Repeat::new(self.into_observable(), times)
    }

    /// Subscribes to a clone of the source again when it fails, at most `times` times; then the error
    /// is passed on. `usize::MAX` for ever.
    ///
    /// Values of the failed attempts stand. Completes with the first attempt that does. The stack does
    /// not grow with the attempts. Keeps nothing. A source that fails at once is tried again at once:
    /// [`retry_with`](ObservableExt::retry_with) waits between attempts.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::throw::<u32, _>("offline").retry(3).on_error_return(|_| 0).subscribe(|_| ()).detach();
    /// ```
    fn retry(self, times: usize) -> Retry<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Retry::new(self.into_observable(), times)
    }

    /// [`retry`](ObservableExt::retry) that waits on `scheduler` before each new attempt, for as long
    /// and as often as `backoff` says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, operators::Backoff, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let backoff = Backoff::exponential(Duration::from_secs(1)).attempts(2);
    /// let guard = fanline::throw::<u32, _>("offline")
    ///     .retry_with(backoff, time.clone())
    ///     .on_error_return(|_| 0)
    ///     .subscribe(|value| println!("{value}"));
    /// time.advance_by(Duration::from_secs(2));
    /// assert!(!guard.is_closed());
    /// time.advance_by(Duration::from_secs(1));
    /// assert!(guard.is_closed());
    /// ```
    fn retry_with<C>(self, backoff: Backoff, scheduler: C) -> RetryWith<Self::Observable, C>
    where
        Self::Observable: Clone + Send + 'static,
        C: Scheduler,
    {
        RetryWith::new(self.into_observable(), backoff, scheduler)
    }

    // -- Time

    /// Emits what has come in each `period` as one `Vec`, an empty one where nothing has.
    ///
    /// On completion what is there is emitted first, if anything is; an error is passed on at once and
    /// drops it. What is kept is not bounded, which
    /// [`buffer_time_or_count`](ObservableExt::buffer_time_or_count) is for. Emits on a worker of
    /// `scheduler`.
    ///
    /// # Panics
    /// When `period` is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let guard = source
    ///     .buffer_time(Duration::from_secs(1), time.clone())
    ///     .subscribe(|values| println!("{values:?}"));
    /// tx.next(1);
    /// tx.next(2);
    /// time.advance_by(Duration::from_secs(1)); // [1, 2]
    /// # drop(guard);
    /// ```
    fn buffer_time<C>(self, period: Duration, scheduler: C) -> BufferTime<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        BufferTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// [`buffer_time`](ObservableExt::buffer_time) that also emits as soon as `count` values are there;
    /// the next `period` begins then.
    ///
    /// # Panics
    /// When `period` is zero, or `count` is.
    fn buffer_time_or_count<C>(
        self,
        period: Duration,
        count: usize,
        scheduler: C,
    ) -> BufferTime<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        BufferTime::new(self.into_observable(), period, count, scheduler)
    }

    /// Emits the values of each `period` in an observable of their own, the first at once.
    ///
    /// A window keeps its values until it is subscribed, once; see [`Unicast`]. The source's end is the
    /// end of the open window, then of this. A window lives on when no more of them are wanted.
    ///
    /// # Panics
    /// When `period` is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let guard = source
    ///     .window_time(Duration::from_secs(1), time.clone())
    ///     .flat_map(usize::MAX, |window| window.clone().sum())
    ///     .subscribe(|sum| println!("{sum}"));
    /// tx.next(1);
    /// tx.next(2);
    /// time.advance_by(Duration::from_secs(1)); // 3
    /// # drop(guard);
    /// ```
    fn window_time<C>(self, period: Duration, scheduler: C) -> WindowTime<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        WindowTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// [`window_time`](ObservableExt::window_time) with windows of at most `count` values: a full one
    /// completes at once, and the next `period` begins then.
    ///
    /// # Panics
    /// When `period` is zero, or `count` is.
    fn window_time_or_count<C>(
        self,
        period: Duration,
        count: usize,
        scheduler: C,
    ) -> WindowTime<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        WindowTime::new(self.into_observable(), period, count, scheduler)
    }

    /// Emits a value when nothing has come for `quiet` after it; values that are followed sooner are
    /// dropped.
    ///
    /// On completion the value that waits is emitted first; an error is passed on at once and drops it.
    /// Keeps one value. Emits on a worker of `scheduler`. A deadline that moves with each value is not
    /// scheduled anew with each.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, keys) = fanline::subject::<char>();
    /// let guard = keys
    ///     .debounce(Duration::from_millis(300), time.clone())
    ///     .subscribe(|key| println!("search after {key}"));
    /// tx.next('a');
    /// time.advance_by(Duration::from_millis(200));
    /// tx.next('b');
    /// time.advance_by(Duration::from_millis(300)); // search after b
    /// # drop(guard);
    /// ```
    fn debounce<C>(self, quiet: Duration, scheduler: C) -> Debounce<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Debounce::new(self.into_observable(), quiet, scheduler)
    }

    /// Emits each value, and the completion, so much later.
    ///
    /// An error is passed on at once and drops what waits. What waits is not bounded. Emits on a worker
    /// of `scheduler`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let guard = source.delay(Duration::from_secs(1), time.clone()).subscribe(|v| println!("{v}"));
    /// tx.next(1);
    /// time.advance_by(Duration::from_secs(1)); // 1
    /// # drop(guard);
    /// ```
    fn delay<C>(self, delay: Duration, scheduler: C) -> Delay<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Delay::new(self.into_observable(), delay, scheduler)
    }

    /// Subscribes to the source so much later, on a worker of `scheduler`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (tx, source) = fanline::subject::<u32>();
    /// let guard = source
    ///     .delay_subscription(Duration::from_secs(1), time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// assert!(!tx.has_observers());
    /// time.advance_by(Duration::from_secs(1));
    /// assert!(tx.has_observers());
    /// # drop(guard);
    /// ```
    fn delay_subscription<C>(
        self,
        delay: Duration,
        scheduler: C,
    ) -> DelaySubscription<Self::Observable, C>
    where
        C: Scheduler,
        Self::Observable: Send + 'static,
    {
        DelaySubscription::new(self.into_observable(), delay, scheduler)
    }

    /// Emits the latest value every `period`, if there is a new one.
    ///
    /// Completes with the source, at once, and a value not sampled by then is dropped; an error is
    /// passed on at once. Keeps one value. Emits on a worker of `scheduler`.
    /// [`sample_by`](ObservableExt::sample_by) has another source in place of the clock.
    ///
    /// # Panics
    /// When `period` is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let guard = source.sample(Duration::from_secs(1), time.clone()).subscribe(|v| println!("{v}"));
    /// tx.next(1);
    /// tx.next(2);
    /// time.advance_by(Duration::from_secs(1)); // 2
    /// # drop(guard);
    /// ```
    fn sample<C>(self, period: Duration, scheduler: C) -> SampleEvery<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SampleEvery::new(self.into_observable(), period, scheduler)
    }

    /// Lets one value, or two, of each `period` through. A period begins with the first value after the
    /// end of the one before; [`Edge`] says which of its values are let through.
    ///
    /// On completion the value that waits is emitted first; an error is passed on at once and drops it.
    /// Keeps one value. What waits is emitted on a worker of `scheduler`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, operators::Edge, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let guard = source
    ///     .throttle(Duration::from_secs(1), Edge::Both, time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// tx.next(1); // 1
    /// tx.next(2);
    /// tx.next(3);
    /// time.advance_by(Duration::from_secs(1)); // 3
    /// # drop(guard);
    /// ```
    fn throttle<C>(
        self,
        period: Duration,
        edge: Edge,
        scheduler: C,
    ) -> Throttle<Self::Observable, C>
    where
        C: Scheduler,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Throttle::new(self.into_observable(), period, edge, scheduler)
    }

    /// Fails with what `error` gives when no value has come for `limit`, counted from the subscription
    /// and then from each value; the source is unsubscribed.
    ///
    /// Keeps nothing. Fails on a worker of `scheduler`. A source that cannot fail is given an error type
    /// first; [`catch`](ObservableExt::catch) after it switches to another source.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{Subject, prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let subject = Subject::<u32, &str>::with_error();
    /// let guard = subject
    ///     .source()
    ///     .timeout(Duration::from_secs(1), time.clone(), || "too late")
    ///     .subscribe_with(observer(|_: &u32| ()).on_error(|error: &&str| println!("{error}")));
    /// time.advance_by(Duration::from_secs(1)); // too late
    /// assert!(!subject.has_observers());
    /// # drop(guard);
    /// ```
    fn timeout<C, F>(
        self,
        limit: Duration,
        scheduler: C,
        error: F,
    ) -> Timeout<Self::Observable, C, F>
    where
        C: Scheduler,
        F: FnOnce() -> Self::Error + Send + 'static,
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        Timeout::new(self.into_observable(), limit, scheduler, error)
    }

    // -- Threads

    /// Calls the observer on a worker of `scheduler`, in order, the end after the values.
    ///
    /// The thread that emits puts values in an unbounded queue and never waits; clones them if they
    /// are emitted by reference, as subjects do. The worker empties the queue in bursts, one at a time:
    /// this moves the work to another thread and does not spread it over several. When the observer
    /// panics the subscription ends, and the panic goes where the scheduler sends panics.
    /// Unsubscribing drops what is queued.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use fanline::{IntoObservable, Observable, ObservableExt, scheduler::EventLoop};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let (seen, rx) = mpsc::channel();
    /// source
    ///     .into_observable()
    ///     .observe_on(EventLoop::new())
    ///     .subscribe(move |value| seen.send(*value).unwrap())
    ///     .detach();
    /// tx.next(1);
    /// tx.next(2);
    /// tx.complete();
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2]);
    /// ```
    fn observe_on<C: Scheduler>(self, scheduler: C) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ObserveOn::new(self.into_observable(), scheduler, None)
    }

    /// [`observe_on`](ObservableExt::observe_on) with a queue that holds a number of values at most.
    /// [`Bound`] says how many, and what happens to one more: it blocks the thread that emits, drops
    /// the oldest, drops the newest, or ends with an error.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use fanline::{IntoObservable, Observable, ObservableExt};
    /// use fanline::scheduler::{Bound, VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let values = seen.clone();
    /// source
    ///     .into_observable()
    ///     .observe_on_with(time.clone(), Bound::drop_oldest(2))
    ///     .subscribe(move |value| values.lock().unwrap().push(*value))
    ///     .detach();
    /// for value in 1..=5 {
    ///     tx.next(value);
    /// }
    /// time.run();
    /// assert_eq!(*seen.lock().unwrap(), [4, 5]);
    /// ```
    fn observe_on_with<C: Scheduler>(
        self,
        scheduler: C,
        bound: Bound<Self::Error>,
    ) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ObserveOn::new(self.into_observable(), scheduler, Some(bound))
    }

    /// Subscribes on a worker of `scheduler`: what the source does on subscription, such as going
    /// through an iterator, is done there. Values and the end are passed on where the source emits
    /// them.
    ///
    /// Unsubscribing before the scheduler came to it means that the source is never subscribed. After
    /// that it stops a source that is at it after the value in progress, by
    /// [`is_closed`](crate::Observer::is_closed), and unsubscribes from any other on the thread that
    /// unsubscribes, or on the scheduler with [`and_unsubscribe`](SubscribeOn::and_unsubscribe). A
    /// panic of the source goes where the scheduler sends panics.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use fanline::{Observable, ObservableExt, Replay, scheduler::NewThread};
    ///
    /// let (mut tx, source) = fanline::replay::<u32>(Replay::all());
    /// tx.next_slice(&[1, 2, 3]);
    /// tx.complete();
    /// let (seen, rx) = mpsc::channel();
    /// source
    ///     .subscribe_on(NewThread)
    ///     .subscribe(move |value| seen.send(*value).unwrap())
    ///     .detach();
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    fn subscribe_on<C: Scheduler>(self, scheduler: C) -> SubscribeOn<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        SubscribeOn::new(self.into_observable(), scheduler)
    }

    // -- Multicast

    /// A source that is subscribed once for all its observers, when `connect` is called, and multicast
    /// through a [`Subject`]: late observers get what comes after. See [`Connectable`].
    fn publish(self) -> Connectable<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), Subject::with_error)
    }

    /// [`publish`](ObservableExt::publish) through a [`ReplaySubject`]: late observers get what
    /// `replay` retains first. See [`Connectable`].
    ///
    /// ```
    /// use fanline::{Replay, prelude::*};
    ///
    /// let shared = fanline::from_iter(0..5).replay(Replay::many(2));
    /// shared.connect().detach();
    /// shared.subscribe(|value| println!("{value}")).detach(); // 3 4
    /// ```
    fn replay<P>(
        self,
        replay: Replay<P>,
    ) -> Connectable<Self::Observable, ReplaySubject<Self::Item, Self::Error>>
    where
        P: policy::Policy + Clone,
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || {
            ReplaySubject::with_error(replay.clone())
        })
    }

    /// [`publish`](ObservableExt::publish) through a subject of your own, which others may feed as
    /// well. When it has ended, connecting again does nothing more. See [`Connectable`].
    ///
    /// ```
    /// use fanline::{BehaviorSubject, prelude::*};
    ///
    /// let state = BehaviorSubject::new(0);
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let shared = source.multicast(state.clone());
    /// let connection = shared.connect();
    /// tx.next(7);
    /// assert_eq!(state.value(), Ok(7));
    /// # drop(connection);
    /// ```
    fn multicast<H>(self, subject: H) -> Connectable<Self::Observable, H>
    where
        H: Hub<Self::Item, Self::Error>,
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        Connectable::new(self.into_observable(), move || subject.clone())
    }

    /// A source that can be subscribed many times and is itself subscribed once, while there are
    /// observers: `publish().ref_count()`. See [`RefCount`].
    fn share(self) -> RefCount<Self::Observable, Subject<Self::Item, Self::Error>>
    where
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        self.publish().ref_count()
    }

    /// [`share`](ObservableExt::share) that gives late observers what `replay` retains.
    ///
    /// When the source has ended, observers that come get what is retained, and its end, and the source
    /// is not subscribed again; when all have gone before it ended, the next begins anew with nothing
    /// retained.
    ///
    /// ```
    /// use fanline::{Replay, prelude::*};
    ///
    /// let shared = fanline::from_iter(0..3).share_replay(Replay::all());
    /// shared.subscribe(|value| println!("{value}")).detach();
    /// shared.subscribe(|value| println!("{value}")).detach(); // the same, kept
    /// ```
    fn share_replay<P>(
        self,
        replay: Replay<P>,
    ) -> RefCount<Self::Observable, ReplaySubject<Self::Item, Self::Error>>
    where
        P: policy::Policy + Clone,
        Self::Observable: Clone + Send + Sync + 'static,
        Self::Item: Clone + Send + Sync + 'static,
        Self::Error: Clone + Send + Sync + 'static,
    {
        RefCount::new(self.replay(replay), None, false)
    }

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

    /// Subscribes with a closure that need not be `Send`: it stays on this thread, and the values must
    /// come on this thread.
    ///
    /// Where the chain ends on another thread, [`observe_on`](Self::observe_on) an event loop that
    /// this thread drives brings them here. A value that comes on another thread makes the observer
    /// panic there. When the guard is dropped on another thread, the closure is dropped when this
    /// thread ends.
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

    /// The values as an asynchronous stream, which holds between the source and its consumer what
    /// `policy` says; see [`stream`](crate::stream) for the choice. Subscribes at once; dropping the
    /// stream unsubscribes.
    ///
    /// The stream ends after the source's completion, and when the source goes away without one.
    /// [`try_into_stream`](ObservableExt::try_into_stream) is for sources that can fail.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let mut stream = source.into_stream(Unbounded);
    /// tx.next(1);
    /// tx.next(2);
    /// tx.complete();
    /// # futures::executor::block_on(async move {
    /// assert_eq!(stream.next().await, Some(1));
    /// assert_eq!(stream.next().await, Some(2));
    /// assert_eq!(stream.next().await, None);
    /// # });
    /// ```
    fn into_stream<P>(self, policy: P) -> IntoStream<Self::Item, P>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
        P: Policy,
    {
        IntoStream::new(self, policy)
    }

    /// [`into_stream`](ObservableExt::into_stream) for a source that can fail: what the source emits
    /// comes as `Ok`, its error as the last item.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let subject = fanline::Subject::<u32, &str>::with_error();
    /// let mut stream = subject.clone().try_into_stream(Unbounded);
    /// subject.next(1);
    /// subject.error("gone");
    /// assert_eq!(stream.blocking_next(), Some(Ok(1)));
    /// assert_eq!(stream.blocking_next(), Some(Err("gone")));
    /// assert_eq!(stream.blocking_next(), None);
    /// ```
    fn try_into_stream<P>(self, policy: P) -> TryIntoStream<Self::Item, Self::Error, P>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
        P: Policy,
    {
        TryIntoStream::new(self, policy)
    }

    /// A future of the first value: `Ok(None)` when the source ends without one. Subscribes at once
    /// and unsubscribes with the first value; dropping the future unsubscribes too.
    ///
    /// ```
    /// use fanline::ObservableExt;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let first = source.first_value();
    /// tx.next(7);
    /// tx.next(8);
    /// # futures::executor::block_on(async move {
    /// let Ok(value) = first.await; // the source cannot fail
    /// assert_eq!(value, Some(7));
    /// # });
    /// ```
    fn first_value(self) -> FirstValue<Self::Item, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FirstValue::new(self)
    }

    /// A future of the last value: ready when the source ends, `Ok(None)` when it ends without a
    /// value. Subscribes at once; dropping the future unsubscribes. Keeps one value and takes no lock
    /// per value.
    ///
    /// ```
    /// use fanline::ObservableExt;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let last = source.last_value();
    /// tx.next(7);
    /// tx.next(8);
    /// tx.complete();
    /// assert_eq!(last.blocking_wait(), Ok(Some(8)));
    /// ```
    fn last_value(self) -> LastValue<Self::Item, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        LastValue::new(self)
    }
}

impl<S: IntoObservable> ObservableExt for S {}
