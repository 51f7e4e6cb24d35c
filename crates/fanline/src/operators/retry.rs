use core::time::Duration;

use super::resubscribe::{Attempt, Decision, NoWait, OnWorker, Policy};
use super::series::Series;
use crate::{Guard, Observable, Observer, Scheduler};

/// The observable returned by [`retry`](crate::CombineExt::retry).
///
/// Subscribes to a clone of the source again when it fails, at most `times` times (`usize::MAX` means no
/// limit). Passes the error of the last attempt on.
///
/// The values of failed attempts are emitted too. Completes with the first attempt that completes. The stack
/// does not grow with the number of attempts. Stores no values. A source that fails at once is retried at
/// once; [`retry_with`](crate::CombineExt::retry_with) waits between attempts.
///
/// Holds a clone of the source until this observable ends, or until the guard is dropped. This is harmless
/// for subjects and their sources: a subject ends and drops its observers when its last handle or its
/// producer is dropped. But a detached subscription to this observable keeps a
/// [`Connectable`](crate::operators::Connectable) alive even if it is not connected.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("offline").retry(3).on_error_return(|_| 0).subscribe(|_| ()).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Retry<S> {
    source: S,
    times: usize,
}

impl<S> Retry<S> {
    pub(super) fn new(source: S, times: usize) -> Self {
        Self { source, times }
    }
}

impl<S> Observable for Retry<S>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Series::begin(Attempt {
            source: self.source,
            observer,
            policy: RetryPolicy { left: self.times },
            wait: NoWait,
            delay: None,
        })
    }
}

struct RetryPolicy {
    left: usize,
}

impl<E> Policy<E> for RetryPolicy {
    fn after_error(&mut self, _error: &E) -> Decision {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Decision::Resubscribe
            }
            None => Decision::Stop,
        }
    }

    fn after_completion(&mut self) -> Decision {
        Decision::Stop
    }
}

/// The delays of [`retry_with`](crate::CombineExt::retry_with) before each new attempt, and the number
/// of attempts.
///
/// The delays are not random: there is no jitter.
///
/// ```
/// use std::time::Duration;
/// use fanline::operators::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_millis(100))
///     .max_delay(Duration::from_millis(500))
///     .max_attempts(5);
/// let waits: Vec<u128> = (0..6).map_while(|n| backoff.delay(n)).map(|d| d.as_millis()).collect();
/// assert_eq!(waits, [100, 200, 400, 500, 500]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    factor: u32,
    max_delay: Duration,
    max_attempts: usize,
    reset_on_value: bool,
}

impl Backoff {
    /// Returns a backoff with the same delay before each attempt, and no limit of attempts.
    pub const fn constant(delay: Duration) -> Self {
        Self {
            first: delay,
            factor: 1,
            max_delay: Duration::MAX,
            max_attempts: usize::MAX,
            reset_on_value: false,
        }
    }

    /// Returns a backoff with a delay that doubles after each attempt, and no limit of attempts.
    pub const fn exponential(first: Duration) -> Self {
        Self {
            factor: 2,
            ..Self::constant(first)
        }
    }

    /// Sets the factor by which the delay grows after each attempt.
    ///
    /// # Panics
    ///
    /// If `factor` is 0.
    #[must_use]
    pub const fn factor(self, factor: u32) -> Self {
        assert!(factor > 0, "`factor` must be at least 1");
        Self { factor, ..self }
    }

    /// Sets the maximum delay.
    #[must_use]
    pub const fn max_delay(self, max_delay: Duration) -> Self {
        Self { max_delay, ..self }
    }

    /// Sets the maximum number of new attempts before the error is passed on.
    #[must_use]
    pub const fn max_attempts(self, max_attempts: usize) -> Self {
        Self {
            max_attempts,
            ..self
        }
    }

    /// Resets the number of failed attempts after each value, for sources that fail only occasionally.
    #[must_use]
    pub const fn reset_on_value(self) -> Self {
        Self {
            reset_on_value: true,
            ..self
        }
    }

    /// Returns the delay before the next new attempt, or `None` if no attempt is left. `failed` is the number
    /// of new attempts that have failed so far.
    pub fn delay(&self, failed: usize) -> Option<Duration> {
        if failed >= self.max_attempts {
            return None;
        }
        let factor = u32::try_from(failed)
            .ok()
            .and_then(|failed| self.factor.checked_pow(failed))
            .unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.max_delay))
    }
}

/// The observable returned by [`retry_with`](crate::CombineExt::retry_with).
///
/// Like [`retry`](crate::CombineExt::retry), but waits on `scheduler` before each new attempt; `backoff`
/// determines the delays and the number of attempts.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, operators::Backoff, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let backoff = Backoff::exponential(Duration::from_secs(1)).max_attempts(2);
/// let guard = fanline::throw::<u32, _>("offline")
///     .retry_with_on(backoff, time.clone())
///     .on_error_return(|_| 0)
///     .subscribe(|value| println!("{value}"));
/// time.advance_by(Duration::from_secs(2));
/// assert!(!guard.is_closed());
/// time.advance_by(Duration::from_secs(1));
/// assert!(guard.is_closed());
/// ```
#[derive(Clone, Debug)]
pub struct RetryWith<S, C> {
    source: S,
    backoff: Backoff,
    scheduler: C,
}

impl<S, C> RetryWith<S, C> {
    pub(super) fn new(source: S, backoff: Backoff, scheduler: C) -> Self {
        Self {
            source,
            backoff,
            scheduler,
        }
    }
}

impl<S, C> Observable for RetryWith<S, C>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Series::begin(Attempt {
            source: self.source,
            observer,
            policy: BackoffPolicy {
                backoff: self.backoff,
                failed: 0,
            },
            wait: OnWorker(self.scheduler.worker()),
            delay: None,
        })
    }
}

struct BackoffPolicy {
    backoff: Backoff,
    failed: usize,
}

impl<E> Policy<E> for BackoffPolicy {
    fn after_error(&mut self, _error: &E) -> Decision {
        match self.backoff.delay(self.failed) {
            Some(delay) => {
                self.failed += 1;
                Decision::ResubscribeAfter(delay)
            }
            None => Decision::Stop,
        }
    }

    fn after_completion(&mut self) -> Decision {
        Decision::Stop
    }

    fn on_value(&mut self) {
        if self.backoff.reset_on_value {
            self.failed = 0;
        }
    }
}
