use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::task::{Poller, spawn};
use crate::{Guard, Observable, Observer, Scheduler};

/// An observable of what `stream` yields, polled on a worker of `scheduler`; it completes when the
/// stream ends.
///
/// Nothing is polled before the subscription, and only there: the stream's waker schedules a turn of
/// the worker. A turn passes on at most 64 values and then lets the others on its thread have theirs,
/// so a stream that always has a value ready keeps nobody out. Nothing is buffered. Unsubscribing
/// drops the stream at once, or at the end of the turn that is running.
///
/// A stream that panics ends the subscription without a call to the observer; the panic goes where
/// `scheduler` lets panics go.
///
/// The observable is subscribed once; it can be cloned before that if the stream can. Each
/// subscription costs three allocations: for the stream, its task and the worker's handle.
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

/// [`from_stream`] for a stream of results: an `Err` is the observable's error, and the end.
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

/// An observable of the one value that `future` gives, which then completes. The future is polled on
/// a worker of `scheduler`, from the subscription on; unsubscribing drops it.
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

/// [`from_future`] for a future of a result: an `Err` is the observable's error.
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

/// See [`from_stream`].
#[derive(Clone, Debug)]
pub struct FromStream<S, Sch> {
    stream: S,
    scheduler: Sch,
}

/// See [`try_from_stream`].
#[derive(Clone, Debug)]
pub struct TryFromStream<S, Sch> {
    stream: S,
    scheduler: Sch,
}

/// See [`from_future`].
#[derive(Clone, Debug)]
pub struct FromFuture<F, Sch> {
    future: F,
    scheduler: Sch,
}

/// See [`try_from_future`].
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

/// Dropped with its value.
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

/// Dropped with its value.
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
