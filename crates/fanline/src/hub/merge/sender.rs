//! A producer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_sink::Sink;

use super::shared::{Desk, Shared};
use crate::hub::blocking::block_on;
use crate::hub::feeding::{Feeding, Producer};
use crate::hub::{BoxError, Closed, SendError, TrySendError};
use crate::{Guard, IntoObservable, Observable};

/// A producer that always finds room gives way to other tasks after so many elements.
const RUN: u32 = 128;

/// A producing end of a merge hub. Dropping it leaves; what it has sent is received all the same. A
/// clone is another producer, with places of its own.
///
/// `send`, `feed` and their likes wait while as many of its elements wait for the consumer as may, or
/// of all producers together. Elements are there for a consumer that looks at once; one that sleeps is
/// woken by [`flush`](Self::flush), with each [`send`](Self::send), and when there is no room. Feeding
/// several elements and flushing once costs one wake-up for all of them.
///
/// It is a [`Sink`] too, which feeds, and whose `close` leaves.
pub struct MergeSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    /// Nothing once it has left.
    desk: Option<Desk<T>>,
    /// Elements before other tasks have their turn.
    run: u32,
}

impl<T, E> MergeSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        let desk = shared.join();
        Self {
            shared,
            desk,
            run: RUN,
        }
    }

    /// Waits for a place and sends; a consumer that sleeps is woken.
    ///
    /// Dropping the future before it is done drops the element, unsent, and gives up its place in line.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.feed(value).await?;
        self.flush();
        Ok(())
    }

    /// Waits for a place and sends; a consumer that sleeps is woken by the next [`flush`](Self::flush),
    /// or when there is no room.
    ///
    /// Dropping the future before it is done drops the element, unsent, and gives up its place in line.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let place = poll_fn(|context| waiting.sender.poll_place(context)).await;
        waiting.is_over = true;
        match place {
            Ok(()) => waiting.sender.append(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Wakes the consumer, if it sleeps. Does not wait for anybody.
    #[inline]
    pub fn flush(&mut self) {
        self.shared.flush();
    }

    /// As [`send`](Self::send), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.blocking_feed(value)?;
        self.flush();
        Ok(())
    }

    /// As [`feed`](Self::feed), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        let place = match self.place_now() {
            Poll::Ready(place) => place,
            Poll::Pending => block_on(|context| self.poll_place(context)),
        };
        match place {
            Ok(()) => self.append(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Sends if there is a place now that nobody waits for; a consumer that sleeps is woken.
    ///
    /// # Errors
    ///
    /// When there is no place, or the hub is closed; the element comes back.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.place_now() {
            Poll::Ready(Ok(())) => {
                self.append(value).map_err(TrySendError::Closed)?;
                self.flush();
                Ok(())
            }
            Poll::Ready(Err(Closed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends all that a stream yields, and leaves after it. The consumer is woken when there is no room
    /// and whenever the stream has nothing ready.
    ///
    /// # Errors
    ///
    /// When the hub is closed, while the stream is silent too; the stream is dropped, with the element
    /// that it had yielded.
    pub async fn attach<S>(mut self, stream: S) -> Result<(), Closed>
    where
        S: Stream<Item = T>,
    {
        let mut stream = std::pin::pin!(stream);
        loop {
            let next = poll_fn(|context| {
                let next = stream.as_mut().poll_next(context);
                if next.is_pending() {
                    self.flush();
                    // The hub may be closed while the stream is silent.
                    if self.poll_closed(context).is_ready() {
                        return Poll::Ready(Err(Closed));
                    }
                }
                next.map(Ok)
            });
            match next.await? {
                Some(value) => self.feed(value).await.map_err(|_| Closed)?,
                None => return Ok(()),
            }
        }
    }

    /// Sends all that an observable emits (a subject, a chain of operators), and leaves after it; an
    /// error is this producer's [failure](Self::fail).
    ///
    /// What emits has no way to wait but to wait: its thread is held up while there is no room. So the
    /// consumer must not depend on the same thread. When the hub is closed the source is unsubscribed
    /// with the next that it emits.
    ///
    /// ```
    /// let (mut subject, source) = fanline::subject::<u32>();
    /// let (hub, mut rx) = fanline::hub::merge::<u32>(16);
    /// let guard = hub.producer().attach_source(source);
    /// subject.next(1);
    /// subject.complete();
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(hub.producer_count(), 0);
    /// # drop(guard);
    /// ```
    pub fn attach_source<S>(self, source: S) -> Guard
    where
        S: IntoObservable<Item = T>,
        S::Error: Clone + Into<E>,
        T: Clone + Send + 'static,
        E: Send + Sync + 'static,
    {
        source.into_observable().subscribe_with(Feeding::new(self))
    }

    /// Leaves. The hub goes on, and so do the other producers.
    pub fn complete(self) {
        drop(self);
    }

    /// Leaves, since this producer's source has failed: the hub remembers it as its
    /// [last failure](super::MergeHub::last_failure), and goes on for the others.
    pub fn fail(mut self, error: impl Into<E>) {
        self.leave_with(error.into());
    }

    /// Whether nothing is taken from this producer any more.
    pub fn is_closed(&self) -> bool {
        self.desk.is_none() || self.shared.is_closed()
    }

    fn poll_place(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        let Some(desk) = &mut self.desk else {
            return Poll::Ready(Err(Closed));
        };
        if self.run == 0 {
            self.run = RUN;
            self.shared.flush();
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let place = self.shared.poll_place(desk, Some(context.waker()));
        self.run = if place.is_ready() { self.run - 1 } else { RUN };
        place
    }

    fn place_now(&mut self) -> Poll<Result<(), Closed>> {
        match &mut self.desk {
            Some(desk) => self.shared.poll_place(desk, None),
            None => Poll::Ready(Err(Closed)),
        }
    }

    fn poll_closed(&self, context: &Context<'_>) -> Poll<()> {
        match &self.desk {
            Some(desk) => self.shared.poll_closed(desk, context.waker()),
            None => Poll::Ready(()),
        }
    }

    fn append(&mut self, value: T) -> Result<(), T> {
        match &mut self.desk {
            Some(desk) => self.shared.append(desk, value),
            None => Err(value),
        }
    }

    /// Does not wait any more.
    fn give_back(&mut self) {
        if let Some(desk) = &mut self.desk {
            self.shared.give_back(desk);
        }
    }

    fn leave(&mut self) {
        if let Some(desk) = self.desk.take() {
            self.shared.leave(desk, None);
        }
    }

    fn leave_with(&mut self, failure: E) {
        if let Some(desk) = self.desk.take() {
            self.shared.leave(desk, Some(failure));
        }
    }
}

/// A send that may be dropped while it waits, or with a place that it does not use.
struct Waiting<'a, T, E> {
    sender: &'a mut MergeSender<T, E>,
    is_over: bool,
}

impl<T, E> Drop for Waiting<'_, T, E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.sender.give_back();
        }
    }
}

impl<T, E> Sink<T> for MergeSender<T, E> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().poll_place(context)
    }

    /// Uses the place that `poll_ready` has got.
    ///
    /// # Panics
    ///
    /// When `poll_ready` was not ready before, and there is no place.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        let this = self.get_mut();
        match this.place_now() {
            Poll::Ready(Ok(())) => this.append(value).map_err(|_| Closed),
            Poll::Ready(Err(Closed)) => Err(Closed),
            Poll::Pending => panic!("`start_send` needs a `poll_ready` that was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().leave();
        Poll::Ready(Ok(()))
    }
}

impl<T: Send, E: Send + Sync> Producer<T, E> for MergeSender<T, E> {
    fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        Self::blocking_feed(self, value)
    }

    fn flush(&mut self) {
        Self::flush(self);
    }

    fn complete(&mut self) {
        self.leave();
    }

    fn fail(&mut self, error: E) {
        self.leave_with(error);
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

impl<T, E> Unpin for MergeSender<T, E> {}

impl<T, E> Clone for MergeSender<T, E> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<T, E> Drop for MergeSender<T, E> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T, E> fmt::Debug for MergeSender<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeSender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
