//! The operators that depend on time.

use core::time::Duration;

use crate::operators::*;
use crate::scheduler::ThreadPool;
use crate::{IntoObservable, Scheduler};

/// The operators that depend on time, for every type that converts into an
/// [`Observable`](crate::Observable).
///
/// Each operator has two forms. The short one uses the process's thread pool, [`ThreadPool::global`]. The one
/// whose name ends in `_on` takes a [`Scheduler`]: a pool or an event loop of your own, or
/// [`VirtualTime`](crate::scheduler::VirtualTime) in tests.
///
/// # Threads
///
/// A worker of the scheduler emits what is due later, and the source's thread emits everything else, such as
/// errors. Their calls never overlap, and neither thread waits: if one is in a call, it makes the other's call
/// next. So the source's thread may emit what is due, and the worker may emit what has just arrived. Put
/// [`observe_on`](crate::ObservableExt::observe_on) behind the operator if one worker must make all calls.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let (mut keys, typed) = fanline::subject::<char>();
/// let searches = typed.clone().debounce(Duration::from_millis(300)).subscribe(|key| println!("{key}"));
///
/// let time = VirtualTime::new();
/// let tested = typed.debounce_on(Duration::from_millis(300), time.clone()).subscribe(|key| println!("{key}"));
/// keys.next('a');
/// time.advance_by(Duration::from_millis(300)); // a
/// # drop((searches, tested));
/// ```
pub trait TimeExt: IntoObservable {
    /// Emits the values of each `period` as one `Vec`. On completion, also emits the values of the last,
    /// incomplete period.
    fn buffer_time(self, period: Duration) -> BufferTime<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferTime::new(
            self.into_observable(),
            period,
            usize::MAX,
            ThreadPool::global(),
        )
    }

    /// Like [`buffer_time`](Self::buffer_time), with the time of `scheduler`.
    fn buffer_time_on<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> BufferTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// Like [`buffer_time`](Self::buffer_time), but also emits after `count` values.
    fn buffer_time_or_count(
        self,
        period: Duration,
        count: usize,
    ) -> BufferTime<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferTime::new(self.into_observable(), period, count, ThreadPool::global())
    }

    /// Like [`buffer_time_or_count`](Self::buffer_time_or_count), with the time of `scheduler`.
    fn buffer_time_or_count_on<C: Scheduler>(
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

    /// Emits the values of each `period` as an observable, until the source ends.
    fn window_time(self, period: Duration) -> WindowTime<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowTime::new(
            self.into_observable(),
            period,
            usize::MAX,
            ThreadPool::global(),
        )
    }

    /// Like [`window_time`](Self::window_time), with the time of `scheduler`.
    fn window_time_on<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> WindowTime<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowTime::new(self.into_observable(), period, usize::MAX, scheduler)
    }

    /// Like [`window_time`](Self::window_time), with at most `count` values each.
    fn window_time_or_count(
        self,
        period: Duration,
        count: usize,
    ) -> WindowTime<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowTime::new(self.into_observable(), period, count, ThreadPool::global())
    }

    /// Like [`window_time_or_count`](Self::window_time_or_count), with the time of `scheduler`.
    fn window_time_or_count_on<C: Scheduler>(
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

    /// Emits a value if no other follows within `quiet`, and the last one on completion.
    fn debounce(self, quiet: Duration) -> Debounce<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Debounce::new(self.into_observable(), quiet, ThreadPool::global())
    }

    /// Like [`debounce`](Self::debounce), with the time of `scheduler`.
    fn debounce_on<C: Scheduler>(
        self,
        quiet: Duration,
        scheduler: C,
    ) -> Debounce<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Debounce::new(self.into_observable(), quiet, scheduler)
    }

    /// Delays values and completion by `delay`, but not errors.
    fn delay(self, delay: Duration) -> Delay<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Delay::new(self.into_observable(), delay, ThreadPool::global())
    }

    /// Like [`delay`](Self::delay), with the time of `scheduler`.
    fn delay_on<C: Scheduler>(self, delay: Duration, scheduler: C) -> Delay<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Delay::new(self.into_observable(), delay, scheduler)
    }

    /// Delays the subscription to the source by `delay`.
    fn delay_subscription(self, delay: Duration) -> DelaySubscription<Self::Observable, ThreadPool>
    where
        Self::Observable: Send + 'static,
    {
        DelaySubscription::new(self.into_observable(), delay, ThreadPool::global())
    }

    /// Like [`delay_subscription`](Self::delay_subscription), on a worker of `scheduler`.
    fn delay_subscription_on<C: Scheduler>(
        self,
        delay: Duration,
        scheduler: C,
    ) -> DelaySubscription<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        DelaySubscription::new(self.into_observable(), delay, scheduler)
    }

    /// Emits the latest new value every `period`. Completes or fails with the source.
    fn sample(self, period: Duration) -> SampleEvery<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SampleEvery::new(self.into_observable(), period, ThreadPool::global())
    }

    /// Like [`sample`](Self::sample), with the time of `scheduler`.
    fn sample_on<C: Scheduler>(
        self,
        period: Duration,
        scheduler: C,
    ) -> SampleEvery<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SampleEvery::new(self.into_observable(), period, scheduler)
    }

    /// Emits the first value of each `period`, the last value, or both.
    fn throttle(self, period: Duration, edge: Edge) -> Throttle<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Throttle::new(self.into_observable(), period, edge, ThreadPool::global())
    }

    /// Like [`throttle`](Self::throttle), with the time of `scheduler`.
    fn throttle_on<C: Scheduler>(
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

    /// Fails with the result of `error` if the next value does not arrive within `limit`.
    fn timeout<F>(self, limit: Duration, error: F) -> Timeout<Self::Observable, ThreadPool, F>
    where
        F: FnOnce() -> Self::Error + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Timeout::new(self.into_observable(), limit, ThreadPool::global(), error)
    }

    /// Like [`timeout`](Self::timeout), with the time of `scheduler`.
    fn timeout_on<C: Scheduler, F>(
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

    /// Emits the values that arrive within `duration`, then completes.
    fn take_for(self, duration: Duration) -> TakeFor<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TakeFor::new(self.into_observable(), duration, ThreadPool::global())
    }

    /// Like [`take_for`](Self::take_for), with the time of `scheduler`.
    fn take_for_on<C: Scheduler>(
        self,
        duration: Duration,
        scheduler: C,
    ) -> TakeFor<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TakeFor::new(self.into_observable(), duration, scheduler)
    }

    /// Drops the values that arrive within `duration`.
    fn skip_for(self, duration: Duration) -> SkipFor<Self::Observable, ThreadPool>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SkipFor::new(self.into_observable(), duration, ThreadPool::global())
    }

    /// Like [`skip_for`](Self::skip_for), with the time of `scheduler`.
    fn skip_for_on<C: Scheduler>(
        self,
        duration: Duration,
        scheduler: C,
    ) -> SkipFor<Self::Observable, C>
    where
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SkipFor::new(self.into_observable(), duration, scheduler)
    }

    /// Emits the values of the last `duration` when the source completes.
    fn take_last_for(self, duration: Duration) -> TakeLastFor<Self::Observable, ThreadPool>
    where
        Self::Item: Clone + Send + 'static,
    {
        TakeLastFor::new(self.into_observable(), duration, ThreadPool::global())
    }

    /// Like [`take_last_for`](Self::take_last_for), with the time of `scheduler`.
    fn take_last_for_on<C: Scheduler>(
        self,
        duration: Duration,
        scheduler: C,
    ) -> TakeLastFor<Self::Observable, C>
    where
        Self::Item: Clone + Send + 'static,
    {
        TakeLastFor::new(self.into_observable(), duration, scheduler)
    }

    /// Drops the values that arrive within `duration` before the completion.
    fn skip_last_for(self, duration: Duration) -> SkipLastFor<Self::Observable, ThreadPool>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLastFor::new(self.into_observable(), duration, ThreadPool::global())
    }

    /// Like [`skip_last_for`](Self::skip_last_for), with the time of `scheduler`.
    fn skip_last_for_on<C: Scheduler>(
        self,
        duration: Duration,
        scheduler: C,
    ) -> SkipLastFor<Self::Observable, C>
    where
        Self::Item: Clone + Send + 'static,
    {
        SkipLastFor::new(self.into_observable(), duration, scheduler)
    }

    /// Switches to `fallback` if the next value does not arrive within `limit`.
    fn timeout_with<B>(
        self,
        limit: Duration,
        fallback: B,
    ) -> TimeoutWith<Self::Observable, B::Observable, ThreadPool>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        B::Observable: Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TimeoutWith::new(
            self.into_observable(),
            limit,
            fallback.into_observable(),
            ThreadPool::global(),
        )
    }

    /// Like [`timeout_with`](Self::timeout_with), with the time of `scheduler`.
    fn timeout_with_on<C: Scheduler, B>(
        self,
        limit: Duration,
        fallback: B,
        scheduler: C,
    ) -> TimeoutWith<Self::Observable, B::Observable, C>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        B::Observable: Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TimeoutWith::new(
            self.into_observable(),
            limit,
            fallback.into_observable(),
            scheduler,
        )
    }
}

impl<S: IntoObservable> TimeExt for S {}
