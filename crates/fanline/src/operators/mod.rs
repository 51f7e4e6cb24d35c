//! Operators: observables made of observables.

mod again;
mod catch;
mod combine_latest;
mod concat;
mod debounce;
mod delay;
mod delay_subscription;
mod exhaust_map;
mod flat_map;
mod flat_map_on;
mod funnel;
mod gate;
mod interval;
mod join;
mod map;
mod merge;
mod on_error_return;
mod race;
mod repeat;
mod retry;
mod sample;
mod sample_every;
mod serialize;
mod series;
mod signal;
mod skip_until;
mod switch_all;
mod switch_map;
mod take_until;
mod throttle;
mod timed;
mod timeout;
mod upstreams;
mod with_latest_from;
mod zip;

pub use catch::Catch;
pub use combine_latest::CombineLatest;
pub use concat::{Concat, ConcatAll, concat_all};
pub use debounce::Debounce;
pub use delay::Delay;
pub use delay_subscription::DelaySubscription;
pub use exhaust_map::ExhaustMap;
pub use flat_map::FlatMap;
pub use flat_map_on::FlatMapOn;
pub use interval::{Interval, Timer, interval, timer};
pub use map::Map;
pub use merge::{Merge, MergeAll, merge_all};
pub use on_error_return::OnErrorReturn;
pub use race::{Race, RaceAll, race_all};
pub use repeat::Repeat;
pub use retry::{Backoff, Retry, RetryWith};
pub use sample::Sample;
pub use sample_every::SampleEvery;
pub use serialize::{Serialize, Serialized};
pub use skip_until::SkipUntil;
pub use switch_all::SwitchAll;
pub use switch_map::SwitchMap;
pub use take_until::TakeUntil;
pub use throttle::{Edge, Throttle};
pub use timeout::Timeout;
pub use with_latest_from::WithLatestFrom;
pub use zip::Zip;

use std::time::Duration;

use crate::{BoxObservable, IntoObservable, Scheduler};

/// The operators, on everything that can be turned into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // Each group of methods stands under its heading, alphabetically where nothing else decides.

    // -- Transforming

    /// Emits what `f` makes of each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    // -- Filtering

    // -- Folding

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

    /// Goes on with the observable that `handler` makes of the error, when there is one.
    ///
    /// The result fails with what that fails with: [`Infallible`](std::convert::Infallible) if it
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

    // -- Multicast

    // -- Looking on

    // -- Other shapes

    /// Hides the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }
}

impl<S: IntoObservable> ObservableExt for S {}
