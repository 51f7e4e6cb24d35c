use core::time::Duration;

use super::catch::Catch;
use super::map_err::MapErr;
use super::timeout::Timeout;
use crate::{Guard, Observable, Observer, Scheduler};

/// The observable returned by [`timeout_with`](crate::TimeExt::timeout_with).
///
/// Emits the values of the source. If no value arrives within `limit` after the subscription, or after the
/// previous value, unsubscribes from the source, subscribes to `fallback`, and emits its values.
///
/// Completes or fails with the source, or with `fallback` if that was subscribed to. Stores no values.
/// [`TimeExt`](crate::TimeExt#threads) describes which thread subscribes to `fallback`.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (tx, source) = fanline::subject::<&str>();
/// let guard = source
///     .timeout_with_on(Duration::from_secs(1), fanline::of("from the cache"), time.clone())
///     .subscribe(|value| println!("{value}"));
/// time.advance_by(Duration::from_secs(1)); // from the cache
/// assert!(!tx.has_observers());
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct TimeoutWith<S, B, C> {
    source: S,
    limit: Duration,
    fallback: B,
    scheduler: C,
}

impl<S, B, C> TimeoutWith<S, B, C> {
    pub(super) fn new(source: S, limit: Duration, fallback: B, scheduler: C) -> Self {
        Self {
            source,
            limit,
            fallback,
            scheduler,
        }
    }
}

impl<S, B, C> Observable for TimeoutWith<S, B, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item = S::Item, Error = S::Error> + Send + 'static,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        // `None` is the timeout, `Some` an error of the source.
        let source = MapErr::new(self.source, |error: &S::Error| Some(error.clone()));
        let fallback = self.fallback;
        Catch::new(
            Timeout::new(source, self.limit, self.scheduler, || None),
            move |error: &Option<S::Error>| match error {
                None => FallbackOrError::Fallback(fallback),
                Some(error) => FallbackOrError::Error(error.clone()),
            },
        )
        .subscribe_with(observer)
    }
}

enum FallbackOrError<B, E> {
    Fallback(B),
    Error(E),
}

impl<B: Observable> Observable for FallbackOrError<B, B::Error> {
    type Item = B::Item;
    type Error = B::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<B::Item, B::Error> + Send + 'static,
    {
        match self {
            Self::Fallback(fallback) => fallback.subscribe_with(observer),
            Self::Error(error) => crate::throw(error).subscribe_with(observer),
        }
    }
}
