//! The operators that depend on time.

use std::time::Duration;

use crate::operators::*;
use crate::scheduler::ThreadPool;
use crate::{IntoObservable, Scheduler};

/// The operators that depend on time, for every type that converts into an
/// [`Observable`](crate::Observable).
///
/// Each operator has two forms. The short one emits on a worker of the process's thread pool,
/// [`ThreadPool::global`]. The one whose name ends in `_on` takes a [`Scheduler`]: a pool or an event loop of
/// your own, or [`VirtualTime`](crate::scheduler::VirtualTime) in tests.
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

    /// Like [`buffer_time`](Self::buffer_time), on a worker of `scheduler`.
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

    /// Like [`buffer_time_or_count`](Self::buffer_time_or_count), on a worker of `scheduler`.
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

    /// Like [`window_time`](Self::window_time), on a worker of `scheduler`.
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

    /// Like [`window_time_or_count`](Self::window_time_or_count), on a worker of `scheduler`.
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

    /// Like [`debounce`](Self::debounce), on a worker of `scheduler`.
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

    /// Like [`delay`](Self::delay), on a worker of `scheduler`.
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

    /// Like [`sample`](Self::sample), on a worker of `scheduler`.
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

    /// Like [`throttle`](Self::throttle), on a worker of `scheduler`.
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

    /// Like [`timeout`](Self::timeout), on a worker of `scheduler`.
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
}

impl<S: IntoObservable> TimeExt for S {}
