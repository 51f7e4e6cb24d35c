//! `retry_when` and `repeat_when`: an observable decides when the source is subscribed to again.

use alloc::sync::Arc;

use super::series::{Series, Step};
use super::unicast::{Feed, Unicast};
use super::upstreams::Upstreams;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`retry_when`](crate::CombineExt::retry_when).
///
/// Emits the values of the source. When the source fails, the observable that `handler` received emits the
/// error. The observable that `handler` returned then decides: when it emits a value, the source is
/// subscribed to again; when it completes or fails, so does this observable.
///
/// `handler` is called once, at the subscription. Values that its observable emits while the source is
/// subscribed have no effect. If it ends while the source is subscribed, the end takes effect at the next
/// error. The stack does not grow with the number of attempts.
///
/// [`retry_with`](crate::CombineExt::retry_with) is shorter if only a delay is needed.
///
/// ```
/// use fanline::prelude::*;
///
/// // Tries three times, then completes.
/// fanline::of(1)
///     .with_error_type()
///     .concat(fanline::throw("offline"))
///     .retry_when(|errors| errors.take(2).with_error_type())
///     .count()
///     .subscribe(|count| assert_eq!(*count, 3))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct RetryWhen<S, F> {
    source: S,
    handler: F,
}

impl<S, F> RetryWhen<S, F> {
    pub(super) fn new(source: S, handler: F) -> Self {
        Self { source, handler }
    }
}

impl<S, R, F> Observable for RetryWhen<S, F>
where
    S: Observable<Item: 'static, Error: Clone + Send + 'static> + Clone + Send + 'static,
    R: IntoObservable<Error = S::Error>,
    F: FnOnce(Unicast<S::Error>) -> R,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        subscribe::<_, AfterError, _, _, _>(self.source, self.handler, observer)
    }
}

/// The observable returned by [`repeat_when`](crate::CombineExt::repeat_when).
///
/// Emits the values of the source. When the source completes, the observable that `handler` received emits
/// `()`. The observable that `handler` returned then decides: when it emits a value, the source is subscribed
/// to again; when it completes or fails, so does this observable.
///
/// `handler` is called once, at the subscription. Values that its observable emits while the source is
/// subscribed have no effect. If it ends while the source is subscribed, the end takes effect at the next
/// completion. Fails at once when the source fails. The stack does not grow with the number of runs.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let clock = time.clone();
/// let guard = fanline::of("poll")
///     .repeat_when(move |ends| ends.delay_on(Duration::from_secs(60), clock))
///     .subscribe(|what| println!("{what}"));
/// time.advance_by(Duration::from_secs(120)); // poll poll poll
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct RepeatWhen<S, F> {
    source: S,
    handler: F,
}

impl<S, F> RepeatWhen<S, F> {
    pub(super) fn new(source: S, handler: F) -> Self {
        Self { source, handler }
    }
}

impl<S, R, F> Observable for RepeatWhen<S, F>
where
    S: Observable<Item: 'static, Error: Clone + Send + 'static> + Clone + Send + 'static,
    R: IntoObservable<Error = S::Error>,
    F: FnOnce(Unicast<()>) -> R,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        subscribe::<_, AfterCompletion, _, _, _>(self.source, self.handler, observer)
    }
}

/// The end of the source after which the handler decides, and the value that the handler receives for it.
trait Trigger<E>: Send + 'static {
    type Signal: Clone + Send + 'static;

    fn error(error: &E) -> Option<Self::Signal>;

    fn completion() -> Option<Self::Signal>;
}

struct AfterError;

impl<E: Clone + Send + 'static> Trigger<E> for AfterError {
    type Signal = E;

    fn error(error: &E) -> Option<E> {
        Some(error.clone())
    }

    fn completion() -> Option<E> {
        None
    }
}

struct AfterCompletion;

impl<E> Trigger<E> for AfterCompletion {
    type Signal = ();

    fn error(_error: &E) -> Option<()> {
        None
    }

    fn completion() -> Option<()> {
        Some(())
    }
}

fn subscribe<S, K, R, F, O>(source: S, handler: F, observer: O) -> Guard
where
    S: Observable<Item: 'static, Error: Clone + Send + 'static> + Clone + Send + 'static,
    K: Trigger<S::Error>,
    R: IntoObservable<Error = S::Error>,
    F: FnOnce(Unicast<K::Signal>) -> R,
    O: Observer<S::Item, S::Error> + Send + 'static,
{
    let upstreams = Arc::new(Upstreams::default());
    let guard = upstreams.guard();
    let (feed, signals) = Feed::new(None);
    let decisions = handler(signals).into_observable();
    let parking = Arc::new(Parking(Mutex::new(Parked {
        waiting: None,
        verdict: None,
    })));
    if let Some(key) = upstreams.reserve() {
        let subscription = decisions.subscribe_with(Decisions {
            parking: Arc::clone(&parking),
            upstreams: Arc::clone(&upstreams),
        });
        upstreams.set(key, subscription);
    }
    if let Some(key) = upstreams.reserve() {
        let series = Series::begin(Attempt::<S, O, K> {
            source,
            observer,
            feed,
            parking,
            upstreams: Arc::clone(&upstreams),
        });
        upstreams.set(key, series);
    }
    guard
}

/// A subscription to the source, or the state for the next one.
struct Attempt<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    K: Trigger<S::Error>,
{
    source: S,
    observer: O,
    feed: Feed<K::Signal, core::convert::Infallible>,
    parking: Arc<Parking<Self, S::Error>>,
    upstreams: Arc<Upstreams>,
}

/// The place of the attempt between two subscriptions.
struct Parking<P, E>(Mutex<Parked<P, E>>);

struct Parked<P, E> {
    /// The next attempt, which waits for a value of the handler's observable.
    waiting: Option<(P, Arc<Series<P>>)>,
    /// The end of the handler's observable. `None` while it is open.
    verdict: Option<Result<(), E>>,
}

impl<S, O, K> Step for Attempt<S, O, K>
where
    S: Observable<Item: 'static, Error: Clone + Send + 'static> + Clone + Send + 'static,
    O: Observer<S::Item, S::Error> + Send + 'static,
    K: Trigger<S::Error>,
{
    fn start(self, series: &Arc<Series<Self>>) -> Guard {
        self.source.clone().subscribe_with(AttemptObserver {
            attempt: Some(self),
            series: Arc::clone(series),
        })
    }
}

impl<S, O, K> Attempt<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    O: Observer<S::Item, S::Error>,
    K: Trigger<S::Error>,
{
    fn end(mut self, verdict: Result<(), S::Error>) {
        match verdict {
            Ok(()) => self.observer.complete(),
            Err(error) => self.observer.error(&error),
        }
        self.upstreams.close();
    }
}

struct AttemptObserver<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    Attempt<S, O, K>: Step,
    K: Trigger<S::Error>,
{
    /// `None` after the source has ended.
    attempt: Option<Attempt<S, O, K>>,
    series: Arc<Series<Attempt<S, O, K>>>,
}

impl<S, O, K> AttemptObserver<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    Attempt<S, O, K>: Step,
    O: Observer<S::Item, S::Error>,
    K: Trigger<S::Error>,
{
    fn ended(&mut self, signal: Option<K::Signal>, end: Result<(), &S::Error>) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        let Some(signal) = signal else {
            attempt.end(end.map_err(Clone::clone));
            return;
        };
        let feed = attempt.feed.clone();
        let parking = Arc::clone(&attempt.parking);
        let mut parked = lock(&parking.0);
        if let Some(verdict) = parked.verdict.take() {
            drop(parked);
            attempt.end(verdict);
        } else {
            // Parked before the signal, because the handler may decide at once.
            parked.waiting = Some((attempt, Arc::clone(&self.series)));
            drop(parked);
            feed.next_owned(signal);
        }
    }
}

impl<S, O, K> Observer<S::Item, S::Error> for AttemptObserver<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    Attempt<S, O, K>: Step,
    O: Observer<S::Item, S::Error>,
    K: Trigger<S::Error>,
{
    #[inline]
    fn next(&mut self, value: &S::Item) {
        if let Some(attempt) = &mut self.attempt {
            attempt.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: S::Item) {
        if let Some(attempt) = &mut self.attempt {
            attempt.observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[S::Item]) {
        if let Some(attempt) = &mut self.attempt {
            attempt.observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &S::Error) {
        self.ended(K::error(error), Err(error));
    }

    fn complete(&mut self) {
        self.ended(K::completion(), Ok(()));
    }

    fn is_closed(&self) -> bool {
        self.series.is_closed()
            || self
                .attempt
                .as_ref()
                .is_none_or(|attempt| attempt.observer.is_closed())
    }
}

impl<S, O, K> Drop for AttemptObserver<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    Attempt<S, O, K>: Step,
    K: Trigger<S::Error>,
{
    fn drop(&mut self) {
        // The source has dropped its observer without an end, so no decision can follow.
        if let Some(attempt) = &self.attempt {
            attempt.upstreams.close();
        }
    }
}

/// The observer of the handler's observable.
struct Decisions<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    K: Trigger<S::Error>,
{
    parking: Arc<Parking<Attempt<S, O, K>, S::Error>>,
    upstreams: Arc<Upstreams>,
}

impl<S, O, K> Decisions<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    O: Observer<S::Item, S::Error>,
    K: Trigger<S::Error>,
{
    fn ended(&self, verdict: Result<(), S::Error>) {
        let mut parked = lock(&self.parking.0);
        match parked.waiting.take() {
            Some((attempt, _)) => {
                drop(parked);
                attempt.end(verdict);
            }
            None => parked.verdict = Some(verdict),
        }
    }
}

impl<T, S, O, K> Observer<T, S::Error> for Decisions<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    Attempt<S, O, K>: Step,
    O: Observer<S::Item, S::Error>,
    K: Trigger<S::Error>,
{
    fn next(&mut self, _value: &T) {
        let waiting = lock(&self.parking.0).waiting.take();
        if let Some((attempt, series)) = waiting {
            series.start_next(attempt);
        }
    }

    fn error(&mut self, error: &S::Error) {
        self.ended(Err(error.clone()));
    }

    fn complete(&mut self) {
        self.ended(Ok(()));
    }

    fn is_closed(&self) -> bool {
        self.upstreams.is_closed()
    }
}

impl<S, O, K> Drop for Decisions<S, O, K>
where
    S: Observable<Error: Clone + Send + 'static>,
    K: Trigger<S::Error>,
{
    fn drop(&mut self) {
        // Without decisions a waiting attempt would wait forever.
        let waiting = {
            let mut parked = lock(&self.parking.0);
            parked.waiting.take()
        };
        if waiting.is_some() {
            self.upstreams.close();
        }
    }
}
