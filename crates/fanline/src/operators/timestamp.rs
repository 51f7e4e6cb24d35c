use core::time::Duration;

use crate::operators::forward::forward;
use crate::{Clock, Guard, Observable, Observer, Time};

/// A value and its time of arrival; see [`ObservableExt::timestamp`](crate::ObservableExt::timestamp).
///
/// ```
/// use fanline::{Precise, prelude::*};
///
/// fanline::of(1).timestamp(Precise).subscribe(|at| println!("{} at {:?}", at.value, at.at)).detach();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Timestamped<T> {
    /// The value.
    pub value: T,
    /// The time of arrival.
    pub at: Time,
}

impl<T> Timestamped<T> {
    /// Creates a value that arrived at a given time, for example to compare with.
    pub const fn new(value: T, at: Time) -> Self {
        Self { value, at }
    }
}

/// A value and the time since the previous one; see
/// [`ObservableExt::time_interval`](crate::ObservableExt::time_interval).
///
/// ```
/// use fanline::{Precise, prelude::*};
///
/// fanline::of(1)
///     .time_interval(Precise)
///     .subscribe(|after| println!("{} after {:?}", after.value, after.interval))
///     .detach();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TimeInterval<T> {
    /// The value.
    pub value: T,
    /// The time since the previous value; for the first value, since the subscription.
    pub interval: Duration,
}

impl<T> TimeInterval<T> {
    /// Creates a value that arrived a given time after the previous one, for example to compare with.
    pub const fn new(value: T, interval: Duration) -> Self {
        Self { value, interval }
    }
}

/// The observable returned by [`timestamp`](crate::ObservableExt::timestamp).
///
/// Emits each value with its time of arrival, which is read from `clock`. Times never go back.
///
/// ```
/// use fanline::{Precise, prelude::*};
///
/// fanline::from_iter(["a", "b"])
///     .timestamp(Precise)
///     .pairwise()
///     .subscribe(|(earlier, later)| assert!(earlier.at <= later.at))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Timestamp<S, C> {
    source: S,
    clock: C,
}

impl<S, C> Timestamp<S, C> {
    pub(super) fn new(source: S, clock: C) -> Self {
        Self { source, clock }
    }
}

impl<S, C> Observable for Timestamp<S, C>
where
    S: Observable,
    S::Item: Clone,
    C: Clock,
{
    type Item = Timestamped<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(TimestampObserver {
            observer,
            clock: self.clock,
            latest: Time::ZERO,
        })
    }
}

struct TimestampObserver<O, C> {
    observer: O,
    clock: C,
    /// The latest reading. If the clock later returns an earlier time, this one is used instead.
    latest: Time,
}

impl<T, E, O, C> Observer<T, E> for TimestampObserver<O, C>
where
    T: Clone,
    O: Observer<Timestamped<T>, E>,
    C: Clock,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        let at = self.clock.now().max(self.latest);
        self.latest = at;
        self.observer.next_owned(Timestamped { value, at });
    }

    forward!(error, complete, is_closed);
}

/// The observable returned by [`time_interval`](crate::ObservableExt::time_interval).
///
/// Emits each value with the time since the previous one, measured by `clock`. For the first value, emits the
/// time since the subscription.
///
/// ```
/// use fanline::{Precise, prelude::*};
///
/// fanline::from_iter(["a", "b"])
///     .time_interval(Precise)
///     .subscribe(|after| println!("{} took {:?}", after.value, after.interval))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct WithInterval<S, C> {
    source: S,
    clock: C,
}

impl<S, C> WithInterval<S, C> {
    pub(super) fn new(source: S, clock: C) -> Self {
        Self { source, clock }
    }
}

impl<S, C> Observable for WithInterval<S, C>
where
    S: Observable,
    S::Item: Clone,
    C: Clock,
{
    type Item = TimeInterval<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let latest = self.clock.now();
        self.source.subscribe_with(IntervalObserver {
            observer,
            clock: self.clock,
            latest,
        })
    }
}

struct IntervalObserver<O, C> {
    observer: O,
    clock: C,
    latest: Time,
}

impl<T, E, O, C> Observer<T, E> for IntervalObserver<O, C>
where
    T: Clone,
    O: Observer<TimeInterval<T>, E>,
    C: Clock,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        let now = self.clock.now().max(self.latest);
        let interval = now.since(self.latest);
        self.latest = now;
        self.observer.next_owned(TimeInterval { value, interval });
    }

    forward!(error, complete, is_closed);
}
