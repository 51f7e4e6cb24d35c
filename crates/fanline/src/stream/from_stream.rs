use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::task::{Poller, spawn};
use crate::{Guard, Observable, Observer, Scheduler};

/// Creates an observable of the values of `stream`, polled on a worker of `scheduler`. It completes when
/// the stream ends.
///
/// Polling begins at the subscription: the stream's waker schedules a run on the worker. A run emits at most
/// 64 values and then yields, so a stream that always has a value ready does not starve other work on its
/// thread. Nothing is buffered. Unsubscribing drops the stream at once, or if a run is in progress, at the
/// end of that run.
///
/// If the stream panics, the subscription ends without a call to the observer; `scheduler` handles the
/// panic.
///
/// The observable can be subscribed to only once; it can be cloned before that if the stream is `Clone`. Each
/// subscription makes three allocations: for the stream, its task, and the worker's handle.
///
/// ```
/// use fanline::{ObservableExt, from_stream, scheduler::NewThread, stream::Unbounded};
///
/// let source = from_stream(futures::stream::iter([1, 2, 3]), NewThread);
/// let doubled = source.map(|value| value * 2).into_stream(Unbounded);
/// assert_eq!(doubled.blocking_iter().collect::<Vec<_>>(), [2, 4, 6]);
/// ```
pub fn from_stream<S, Sch>(stream: S, scheduler: Sch) -> FromStream<S, Sch>
where
    S: Stream + Send + 'static,
    Sch: Scheduler,
{
    FromStream { stream, scheduler }
}

/// Creates an observable like [`from_stream`], but from a stream of results: at an `Err`, the observable
/// fails with that error.
///
/// ```
/// use fanline::{ObservableExt, scheduler::NewThread, stream::Unbounded, try_from_stream};
///
/// let lines = futures::stream::iter([Ok("one"), Err("gone"), Ok("two")]);
/// let stream = try_from_stream(lines, NewThread).try_into_stream(Unbounded);
/// assert_eq!(stream.blocking_iter().collect::<Vec<_>>(), [Ok("one"), Err("gone")]);
/// ```
pub fn try_from_stream<S, T, E, Sch>(stream: S, scheduler: Sch) -> TryFromStream<S, Sch>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    Sch: Scheduler,
{
    TryFromStream { stream, scheduler }
}

/// Creates an observable that emits the value of `future` and then completes. The future is polled on a
/// worker of `scheduler`, from the subscription on; unsubscribing drops the future.
///
/// ```
/// use fanline::{ObservableExt, from_future, scheduler::NewThread};
///
/// let answer = from_future(async { 42 }, NewThread);
/// assert_eq!(answer.last_value().blocking_wait(), Ok(Some(42)));
/// ```
pub fn from_future<F, Sch>(future: F, scheduler: Sch) -> FromFuture<F, Sch>
where
    F: Future + Send + 'static,
    Sch: Scheduler,
{
    FromFuture { future, scheduler }
}

/// Creates an observable like [`from_future`], but from a future of a result: for an `Err`, the observable
/// fails with that error.
///
/// ```
/// use fanline::{ObservableExt, scheduler::NewThread, try_from_future};
///
/// let answer = try_from_future(async { Err::<u32, _>("unknown") }, NewThread);
/// assert_eq!(answer.last_value().blocking_wait(), Err("unknown"));
/// ```
pub fn try_from_future<F, T, E, Sch>(future: F, scheduler: Sch) -> TryFromFuture<F, Sch>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
    Sch: Scheduler,
{
    TryFromFuture { future, scheduler }
}

/// An observable of a stream; see [`from_stream`].
#[derive(Clone, Debug)]
pub struct FromStream<S, Sch> {
    stream: S,
    scheduler: Sch,
}

/// An observable of a stream of results; see [`try_from_stream`].
#[derive(Clone, Debug)]
pub struct TryFromStream<S, Sch> {
    stream: S,
    scheduler: Sch,
}

/// An observable of a future; see [`from_future`].
#[derive(Clone, Debug)]
pub struct FromFuture<F, Sch> {
    future: F,
    scheduler: Sch,
}

/// An observable of a future of a result; see [`try_from_future`].
#[derive(Clone, Debug)]
pub struct TryFromFuture<F, Sch> {
    future: F,
    scheduler: Sch,
}

impl<S, Sch> Observable for FromStream<S, Sch>
where
    S: Stream + Send + 'static,
    Sch: Scheduler,
{
    type Item = S::Item;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, Infallible> + Send + 'static,
    {
        let poller = OfStream(Box::pin(self.stream));
        spawn(poller, observer, self.scheduler.worker())
    }
}

impl<S, T, E, Sch> Observable for TryFromStream<S, Sch>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    Sch: Scheduler,
{
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let poller = OfResults(Box::pin(self.stream));
        spawn(poller, observer, self.scheduler.worker())
    }
}

impl<F, Sch> Observable for FromFuture<F, Sch>
where
    F: Future + Send + 'static,
    Sch: Scheduler,
{
    type Item = F::Output;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<F::Output, Infallible> + Send + 'static,
    {
        let poller = OfFuture(Some(Box::pin(self.future)));
        spawn(poller, observer, self.scheduler.worker())
    }
}

impl<F, T, E, Sch> Observable for TryFromFuture<F, Sch>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
    Sch: Scheduler,
{
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let poller = OfResult(Some(Box::pin(self.future)));
        spawn(poller, observer, self.scheduler.worker())
    }
}

struct OfStream<S>(Pin<Box<S>>);

impl<S: Stream + Send + 'static> Poller for OfStream<S> {
    type Item = S::Item;
    type Error = Infallible;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<S::Item, Infallible>>> {
        self.0.as_mut().poll_next(context).map(|next| next.map(Ok))
    }
}

struct OfResults<S>(Pin<Box<S>>);

impl<S, T, E> Poller for OfResults<S>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
{
    type Item = T;
    type Error = E;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, E>>> {
        self.0.as_mut().poll_next(context)
    }
}

/// The future, dropped when it has its value.
struct OfFuture<F>(Option<Pin<Box<F>>>);

impl<F: Future + Send + 'static> Poller for OfFuture<F> {
    type Item = F::Output;
    type Error = Infallible;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<F::Output, Infallible>>> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let value = ready!(future.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(Some(Ok(value)))
    }
}

/// The future, dropped when it has its result.
struct OfResult<F>(Option<Pin<Box<F>>>);

impl<F, T, E> Poller for OfResult<F>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    type Item = T;
    type Error = E;

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, E>>> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let result = ready!(future.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(Some(result))
    }
}
