//! `take`, `skip`, `take_last`, and `skip_last` by time.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::forward::{complete, emit_all, forward};
use super::interval::timer_on;
use super::map_err::WithErrorType;
use super::skip_until::SkipUntil;
use super::take_until::TakeUntil;
use crate::{Guard, Observable, Observer, Scheduler, Time};

/// Defines the struct of an operator with a duration and a scheduler.
macro_rules! for_duration {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<S, C> {
            source: S,
            duration: Duration,
            scheduler: C,
        }

        impl<S, C> $name<S, C> {
            pub(super) fn new(source: S, duration: Duration, scheduler: C) -> Self {
                Self {
                    source,
                    duration,
                    scheduler,
                }
            }
        }
    };
}

for_duration! {
    /// The observable returned by [`take_for`](crate::TimeExt::take_for).
    ///
    /// Emits the values that arrive within `duration` after the subscription, then completes.
    ///
    /// Completes or fails earlier if the source does. Stores no values. [`TimeExt`](crate::TimeExt#threads) describes
    /// which thread completes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let _guard = source
    ///     .take_for_on(Duration::from_secs(1), time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// tx.next(1); // 1
    /// time.advance_by(Duration::from_secs(1));
    /// assert!(!tx.has_observers());
    /// ```
    TakeFor
}

impl<S, C> Observable for TakeFor<S, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let timer = WithErrorType::new(timer_on(self.duration, self.scheduler));
        TakeUntil::new(self.source, timer).subscribe_with(observer)
    }
}

for_duration! {
    /// The observable returned by [`skip_for`](crate::TimeExt::skip_for).
    ///
    /// Drops the values that arrive within `duration` after the subscription, and emits the later ones.
    ///
    /// Completes or fails with the source, even within `duration`. Stores no values.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let _guard = source
    ///     .skip_for_on(Duration::from_secs(1), time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// tx.next(1);
    /// time.advance_by(Duration::from_secs(1));
    /// tx.next(2); // 2
    /// ```
    SkipFor
}

impl<S, C> Observable for SkipFor<S, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let timer = WithErrorType::new(timer_on(self.duration, self.scheduler));
        SkipUntil::new(self.source, timer).subscribe_with(observer)
    }
}

for_duration! {
    /// The observable returned by [`take_last_for`](crate::TimeExt::take_last_for).
    ///
    /// When the source completes, emits the values that arrived within `duration` before, in order. A value
    /// whose age is exactly `duration` is emitted.
    ///
    /// Fails with the source, without the values. Emits on the thread of the source. Stores the values of
    /// `duration`; a value that has become too old is dropped when the next one arrives.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let _guard = source
    ///     .take_last_for_on(Duration::from_secs(1), time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// tx.next(1);
    /// time.advance_by(Duration::from_secs(2));
    /// tx.next(2);
    /// tx.complete(); // 2
    /// ```
    TakeLastFor
}

impl<S, C> Observable for TakeLastFor<S, C>
where
    S: Observable<Item: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(TakeLastForObserver {
            observer,
            recent: Recent::new(self.duration, self.scheduler),
        })
    }
}

/// Values with their times of arrival.
struct Recent<T, C> {
    values: VecDeque<(Time, T)>,
    duration: Duration,
    scheduler: C,
}

impl<T, C: Scheduler> Recent<T, C> {
    fn new(duration: Duration, scheduler: C) -> Self {
        Self {
            values: VecDeque::new(),
            duration,
            scheduler,
        }
    }

    fn push(&mut self, now: Time, value: T) {
        self.values.push_back((now, value));
    }

    /// Removes the oldest value if `is_old` holds for its age and the duration.
    fn pop_if(&mut self, now: Time, is_old: fn(Duration, Duration) -> bool) -> Option<T> {
        let (at, _) = self.values.front()?;
        if is_old(now.since(*at), self.duration) {
            self.values.pop_front().map(|(_, value)| value)
        } else {
            None
        }
    }
}

struct TakeLastForObserver<O, T, C> {
    observer: O,
    recent: Recent<T, C>,
}

impl<O, T, C: Scheduler> TakeLastForObserver<O, T, C> {
    fn trim(&mut self) -> Time {
        let now = self.recent.scheduler.now();
        while self.recent.pop_if(now, |age, limit| age > limit).is_some() {}
        now
    }
}

impl<T: Clone, E, C: Scheduler, O: Observer<T, E>> Observer<T, E> for TakeLastForObserver<O, T, C> {
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        let now = self.trim();
        self.recent.push(now, value);
    }

    fn complete(&mut self) {
        self.trim();
        let values = core::mem::take(&mut self.recent.values);
        if emit_all(
            &mut self.observer,
            values.into_iter().map(|(_, value)| value),
        ) {
            self.observer.complete();
        }
    }

    forward!(error, is_closed);
}

for_duration! {
    /// The observable returned by [`skip_last_for`](crate::TimeExt::skip_last_for).
    ///
    /// Drops the values that arrive within `duration` before the completion: a value is emitted when the next
    /// value or the completion finds that its age is at least `duration`.
    ///
    /// Fails with the source, at once. Emits on the thread of the source. Stores the values of `duration`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let _guard = source
    ///     .skip_last_for_on(Duration::from_secs(1), time.clone())
    ///     .subscribe(|value| println!("{value}"));
    /// tx.next(1);
    /// time.advance_by(Duration::from_secs(1));
    /// tx.next(2); // 1
    /// tx.complete();
    /// ```
    SkipLastFor
}

impl<S, C> Observable for SkipLastFor<S, C>
where
    S: Observable<Item: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(SkipLastForObserver {
            observer,
            recent: Recent::new(self.duration, self.scheduler),
        })
    }
}

struct SkipLastForObserver<O, T, C> {
    observer: O,
    recent: Recent<T, C>,
}

impl<O, T, C: Scheduler> SkipLastForObserver<O, T, C> {
    /// Emits the values that are old enough.
    fn emit<E>(&mut self) -> Time
    where
        O: Observer<T, E>,
    {
        let now = self.recent.scheduler.now();
        while !self.observer.is_closed()
            && let Some(value) = self.recent.pop_if(now, |age, limit| age >= limit)
        {
            self.observer.next_owned(value);
        }
        now
    }
}

impl<T: Clone, E, C: Scheduler, O: Observer<T, E>> Observer<T, E> for SkipLastForObserver<O, T, C> {
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        let now = self.emit();
        self.recent.push(now, value);
    }

    fn complete(&mut self) {
        self.emit();
        complete(&mut self.observer);
    }

    forward!(error, is_closed);
}
