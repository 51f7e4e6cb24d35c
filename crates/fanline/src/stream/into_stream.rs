use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::park::block_on;
use super::policy::OverflowPolicy;
use super::queue::{Receiver, Taken, subscribe};
use crate::IntoObservable;

/// The values of a source that cannot fail, as a stream; made by
/// [`into_stream`](crate::ObservableExt::into_stream).
///
/// The stream ends after the source has completed or was disposed of, or after the source's producer was
/// dropped. Queued values are yielded before the stream ends. Dropping the stream unsubscribes, and drops the
/// queued values.
///
/// [`next`](IntoStream::next) and `poll_next` are cancel safe: a value leaves the queue only when it is
/// yielded. After the stream has ended, they return `None`.
///
/// [`into_stream`](crate::ObservableExt::into_stream) subscribes at once. Its `policy` determines how many
/// values the queue between source and consumer holds; see [`stream`](crate::stream) for the choice.
/// [`try_into_stream`](crate::ObservableExt::try_into_stream) is for sources that can fail.
///
/// ```
/// use fanline::{ObservableExt, stream::Unbounded};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let mut stream = source.into_stream(Unbounded);
/// tx.next(1);
/// tx.next(2);
/// tx.complete();
/// # futures::executor::block_on(async move {
/// assert_eq!(stream.next().await, Some(1));
/// assert_eq!(stream.next().await, Some(2));
/// assert_eq!(stream.next().await, None);
/// # });
/// ```
pub struct IntoStream<T, P> {
    receiver: Receiver<T, std::convert::Infallible>,
    policy: PhantomData<fn() -> P>,
}

/// The values of a source that can fail, as a stream; made by
/// [`try_into_stream`](crate::ObservableExt::try_into_stream).
///
/// Like [`IntoStream`], but each item is in an `Ok`. If the source fails, its error is the last item.
///
/// ```
/// use fanline::{ObservableExt, stream::Unbounded};
///
/// let subject = fanline::Subject::<u32, &str>::with_error();
/// let mut stream = subject.clone().try_into_stream(Unbounded);
/// subject.next(1);
/// subject.error("gone");
/// assert_eq!(stream.blocking_next(), Some(Ok(1)));
/// assert_eq!(stream.blocking_next(), Some(Err("gone")));
/// assert_eq!(stream.blocking_next(), None);
/// ```
pub struct TryIntoStream<T, E, P> {
    receiver: Receiver<T, E>,
    policy: PhantomData<fn() -> P>,
}

impl<T, P: OverflowPolicy> IntoStream<T, P> {
    pub(crate) fn new<S>(source: S, policy: P) -> Self
    where
        S: IntoObservable<Item = T, Error = std::convert::Infallible>,
        T: Clone + Send + 'static,
    {
        Self {
            receiver: subscribe(source, policy.rule().0, |sender| sender),
            policy: PhantomData,
        }
    }

    /// Returns the next item, or `None` after the stream has ended.
    pub async fn next(&mut self) -> Option<P::Item<T>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Blocks this thread until the next item arrives or the stream ends. Returns the item, or `None` if the
    /// stream has ended.
    ///
    /// Do not call it in asynchronous code: it would block all other tasks of the thread.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let mut stream = source.into_stream(Unbounded);
    /// let producer = std::thread::spawn(move || tx.next(1)); // and drops it: the end
    /// assert_eq!(stream.blocking_next(), Some(1));
    /// assert_eq!(stream.blocking_next(), None);
    /// # producer.join().unwrap();
    /// ```
    pub fn blocking_next(&mut self) -> Option<P::Item<T>> {
        block_on(|context| self.poll_item(context))
    }

    /// Returns an iterator over the items, which blocks its thread until each one arrives.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let stream = source.into_stream(Unbounded);
    /// tx.next_slice(&[1, 2]);
    /// tx.complete();
    /// assert_eq!(stream.blocking_iter().sum::<u32>(), 3);
    /// ```
    pub fn blocking_iter(self) -> BlockingIter<Self> {
        BlockingIter { stream: self }
    }

    fn poll_item(&mut self, context: &Context<'_>) -> Poll<Option<P::Item<T>>> {
        loop {
            match std::task::ready!(self.receiver.poll(context)) {
                Taken::Event(event) => {
                    if let Some(item) = P::item(event) {
                        return Poll::Ready(Some(item));
                    }
                }
                Taken::Error(never) => match never {},
                Taken::End => return Poll::Ready(None),
            }
        }
    }
}

impl<T, P> IntoStream<T, P> {
    /// Returns the number of values that the policy has dropped so far.
    pub fn lost(&self) -> u64 {
        self.receiver.lost()
    }
}

impl<T, E, P: OverflowPolicy> TryIntoStream<T, E, P> {
    pub(crate) fn new<S>(source: S, policy: P) -> Self
    where
        S: IntoObservable<Item = T, Error = E>,
        T: Clone + Send + 'static,
        E: Clone + Send + 'static,
    {
        Self {
            receiver: subscribe(source, policy.rule().0, |sender| sender),
            policy: PhantomData,
        }
    }

    /// Returns the next item, or `None` after the stream has ended.
    pub async fn next(&mut self) -> Option<Result<P::Item<T>, E>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Blocks this thread until the next item arrives or the stream ends; see [`IntoStream::blocking_next`].
    pub fn blocking_next(&mut self) -> Option<Result<P::Item<T>, E>> {
        block_on(|context| self.poll_item(context))
    }

    /// Returns an iterator over the items, which blocks its thread until each one arrives.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let subject = fanline::Subject::<u32, &str>::with_error();
    /// let stream = subject.clone().try_into_stream(Unbounded);
    /// subject.next(1);
    /// subject.error("gone");
    /// assert_eq!(stream.blocking_iter().collect::<Result<Vec<_>, _>>(), Err("gone"));
    /// ```
    pub fn blocking_iter(self) -> BlockingIter<Self> {
        BlockingIter { stream: self }
    }

    fn poll_item(&mut self, context: &Context<'_>) -> Poll<Option<Result<P::Item<T>, E>>> {
        loop {
            match std::task::ready!(self.receiver.poll(context)) {
                Taken::Event(event) => {
                    if let Some(item) = P::item(event) {
                        return Poll::Ready(Some(Ok(item)));
                    }
                }
                Taken::Error(error) => return Poll::Ready(Some(Err(error))),
                Taken::End => return Poll::Ready(None),
            }
        }
    }
}

impl<T, E, P> TryIntoStream<T, E, P> {
    /// Returns the number of values that the policy has dropped so far.
    pub fn lost(&self) -> u64 {
        self.receiver.lost()
    }
}

impl<T, P: OverflowPolicy> Stream for IntoStream<T, P> {
    type Item = P::Item<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context)
    }

    /// Returns the number of queued values as the lower bound, and no upper bound.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.receiver.ready(), None)
    }
}

impl<T, E, P: OverflowPolicy> Stream for TryIntoStream<T, E, P> {
    type Item = Result<P::Item<T>, E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context)
    }

    /// Returns the number of queued values as the lower bound, and no upper bound.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.receiver.ready(), None)
    }
}

// Values and errors move in and out of the queue. They are never pinned in the queue.
impl<T, P> Unpin for IntoStream<T, P> {}
impl<T, E, P> Unpin for TryIntoStream<T, E, P> {}

impl<T, P> std::fmt::Debug for IntoStream<T, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntoStream")
            .field("ready", &self.receiver.ready())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

impl<T, E, P> std::fmt::Debug for TryIntoStream<T, E, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TryIntoStream")
            .field("ready", &self.receiver.ready())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

/// An iterator over a stream that blocks its thread until each item arrives; made by
/// [`IntoStream::blocking_iter`] and [`TryIntoStream::blocking_iter`].
#[derive(Debug)]
pub struct BlockingIter<S> {
    stream: S,
}

impl<S: Stream + Unpin> Iterator for BlockingIter<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        block_on(|context| Pin::new(&mut self.stream).poll_next(context))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}
