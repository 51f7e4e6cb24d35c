//! A producing end of a merge hub.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;

use super::shared::{SenderState, Shared};
use crate::hub::blocking::block_on;
use crate::hub::deadline::Deadline;
use crate::hub::feeding::{Feeding, Producer};
use crate::hub::{BoxError, HubClosed, SendError, SendTimeoutError, TrySendError};
use crate::{Guard, IntoObservable, Observable};

/// Number of elements in a row after which a producer yields, so that other tasks of its executor run.
const RUN: u32 = 128;

/// A producing end of a merge hub. Dropping it leaves the hub; elements that it has sent are still received.
/// A clone is another producer, with its own limit.
///
/// `send`, `feed`, and their variants wait while this producer has `per_producer` elements queued, or all
/// producers together have `total` elements queued. A consumer that polls finds new elements at once. A
/// waiting consumer is woken by [`flush`](Self::flush), with each [`send`](Self::send), and when there is no
/// room. If you feed several elements and flush once, the consumer is woken once for all of them.
///
/// The sender is also a [`Sink`], which feeds elements, and whose `close` leaves the hub.
pub struct MergeSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    /// `None` after the producer has left.
    state: Option<SenderState<T>>,
    /// Number of elements that may still be sent before the next yield.
    run: u32,
}

impl<T, E> MergeSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        let state = shared.join();
        Self {
            shared,
            state,
            run: RUN,
        }
    }

    /// Waits for room, sends an element, and wakes a waiting consumer.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent, and the producer leaves
    /// the wait queue.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.feed(value).await?;
        self.flush();
        Ok(())
    }

    /// Waits for room and sends an element. A waiting consumer is woken by the next [`flush`](Self::flush),
    /// or when there is no room.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent, and the producer leaves
    /// the wait queue.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let permit = poll_fn(|context| waiting.sender.poll_permit(context)).await;
        waiting.is_over = true;
        match permit {
            Ok(()) => waiting.sender.append(value).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Does the same as [`send`](Self::send), but gives up when there has been no room for `timeout`. With a
    /// timeout of zero it does not wait. The time is that of the hub's
    /// [`scheduler`](super::MergeOptions::scheduler).
    ///
    /// If the future is dropped before it is ready, or after a timeout, the producer leaves the wait queue.
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    pub async fn send_timeout(
        &mut self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut deadline = Deadline::new(self.shared.timer(), timeout);
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let permit = poll_fn(|context| {
            deadline.poll(context, |context| waiting.sender.poll_permit(context))
        });
        let permit = permit.await;
        waiting.is_over = permit.is_some();
        drop(waiting);
        self.send_in_time(value, permit)
    }

    /// Does the same as [`send_timeout`](Self::send_timeout), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    pub fn blocking_send_timeout(
        &mut self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut deadline = Deadline::new(self.shared.timer(), timeout);
        let permit =
            block_on(|context| deadline.poll(context, |context| self.poll_permit(context)));
        if permit.is_none() {
            self.give_back();
        }
        self.send_in_time(value, permit)
    }

    fn send_in_time(
        &mut self,
        value: T,
        permit: Option<Result<(), HubClosed>>,
    ) -> Result<(), SendTimeoutError<T>> {
        match permit {
            Some(Ok(())) => {
                self.append(value).map_err(SendTimeoutError::Closed)?;
                self.flush();
                Ok(())
            }
            Some(Err(HubClosed)) => Err(SendTimeoutError::Closed(value)),
            // The last poll may have yielded although there was room.
            None => Ok(self.try_send(value)?),
        }
    }

    /// Waits for room for one element, and returns a permit that sends it without waiting. So an element need
    /// not exist before there is room for it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the producer leaves the wait queue. A permit
    /// that is dropped leaves its room to the next element, of any producer.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (hub, mut rx) = fanline::hub::merge::<String>(16);
    /// let mut tx = hub.producer();
    /// let permit = tx.reserve().await?;
    /// permit.send("made only now".to_owned()).unwrap();
    /// assert_eq!(rx.next().await.as_deref(), Some("made only now"));
    /// # Ok::<(), fanline::hub::HubClosed>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the hub is closed.
    pub async fn reserve(&mut self) -> Result<MergePermit<'_, T, E>, HubClosed> {
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let permit = poll_fn(|context| waiting.sender.poll_permit(context)).await;
        waiting.is_over = true;
        drop(waiting);
        permit.map(|()| MergePermit { sender: self })
    }

    /// Returns a permit for one element if there is room now and no other producer waits for room.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed.
    pub fn try_reserve(&mut self) -> Result<MergePermit<'_, T, E>, TrySendError<()>> {
        match self.try_permit() {
            Poll::Ready(Ok(())) => Ok(MergePermit { sender: self }),
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(())),
            Poll::Pending => Err(TrySendError::Full(())),
        }
    }

    /// Waits until the hub accepts no more elements from this producer. Wakes a waiting consumer first, as
    /// [`flush`](Self::flush) does.
    ///
    /// Cancel safe: dropping the future has no effect.
    pub async fn closed(&mut self) {
        self.flush();
        poll_fn(|context| self.poll_closed(context)).await;
    }

    /// Wakes a waiting consumer. Never blocks.
    #[inline]
    pub fn flush(&mut self) {
        self.shared.flush();
    }

    /// Does the same as [`send`](Self::send), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.blocking_feed(value)?;
        self.flush();
        Ok(())
    }

    /// Does the same as [`feed`](Self::feed), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    pub fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        let permit = match self.try_permit() {
            Poll::Ready(permit) => permit,
            Poll::Pending => block_on(|context| self.poll_permit(context)),
        };
        match permit {
            Ok(()) => self.append(value).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Sends an element and wakes a waiting consumer, if there is room and no other producer waits for room.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed; the error contains the element.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.try_permit() {
            Poll::Ready(Ok(())) => {
                self.append(value).map_err(TrySendError::Closed)?;
                self.flush();
                Ok(())
            }
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends every item of a stream, and then leaves the hub. The consumer is woken when there is no room and
    /// whenever the stream is pending.
    ///
    /// # Errors
    ///
    /// If the hub is closed, even while the stream is pending. The stream is dropped, and so is an item that
    /// was not sent.
    pub async fn attach<S>(mut self, stream: S) -> Result<(), HubClosed>
    where
        S: Stream<Item = T>,
    {
        let mut stream = std::pin::pin!(stream);
        loop {
            let next = poll_fn(|context| {
                let next = stream.as_mut().poll_next(context);
                if next.is_pending() {
                    self.flush();
                    // Check, because the hub may be closed while the stream is pending.
                    if self.poll_closed(context).is_ready() {
                        return Poll::Ready(Err(HubClosed));
                    }
                }
                next.map(Ok)
            });
            match next.await? {
                Some(value) => self.feed(value).await.map_err(|_| HubClosed)?,
                None => return Ok(()),
            }
        }
    }

    /// Sends every value that an observable (a subject or a chain of operators) emits, and then leaves the
    /// hub. An error becomes this producer's [failure](Self::fail).
    ///
    /// An observable can wait only by blocking: its thread blocks while there is no room. So the consumer
    /// must not depend on the same thread. When the hub is closed, the source is unsubscribed at its next
    /// value.
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

    /// Leaves the hub, which continues for the other producers.
    pub fn complete(self) {
        drop(self);
    }

    /// Leaves the hub because of an error. The hub stores it as its [last
    /// failure](super::MergeHub::last_failure), and continues for the other producers.
    pub fn fail(mut self, error: impl Into<E>) {
        self.leave_with(error.into());
    }

    /// Returns whether the hub accepts no more elements from this producer.
    pub fn is_closed(&self) -> bool {
        self.state.is_none() || self.shared.is_closed()
    }

    fn poll_permit(&mut self, context: &Context<'_>) -> Poll<Result<(), HubClosed>> {
        let Some(state) = &mut self.state else {
            return Poll::Ready(Err(HubClosed));
        };
        if self.run == 0 {
            self.run = RUN;
            self.shared.flush();
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let permit = self.shared.poll_permit(state, Some(context.waker()));
        self.run = if permit.is_ready() { self.run - 1 } else { RUN };
        permit
    }

    fn try_permit(&mut self) -> Poll<Result<(), HubClosed>> {
        match &mut self.state {
            Some(state) => self.shared.poll_permit(state, None),
            None => Poll::Ready(Err(HubClosed)),
        }
    }

    fn poll_closed(&self, context: &Context<'_>) -> Poll<()> {
        match &self.state {
            Some(state) => self.shared.poll_closed(state, context.waker()),
            None => Poll::Ready(()),
        }
    }

    fn append(&mut self, value: T) -> Result<(), T> {
        match &mut self.state {
            Some(state) => self.shared.append(state, value),
            None => Err(value),
        }
    }

    /// Leaves the wait queue, and releases an unused permit.
    fn give_back(&mut self) {
        if let Some(state) = &mut self.state {
            self.shared.give_back(state);
        }
    }

    fn leave(&mut self) {
        if let Some(state) = self.state.take() {
            self.shared.leave(state, None);
        }
    }

    fn leave_with(&mut self, failure: E) {
        if let Some(state) = self.state.take() {
            self.shared.leave(state, Some(failure));
        }
    }
}

/// A drop guard of a send. If the future is dropped, the guard leaves the wait queue and releases an unused
/// permit.
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

/// Room for one element in a merge hub; made by [`MergeSender::reserve`]. Dropping the permit leaves its room to
/// the next element, of any producer.
#[must_use = "a permit that is dropped sends nothing"]
pub struct MergePermit<'a, T, E = BoxError> {
    /// The sender has the permit.
    sender: &'a mut MergeSender<T, E>,
}

impl<T, E> MergePermit<'_, T, E> {
    /// Sends an element, and wakes a waiting consumer. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        self.sender.append(value).map_err(SendError)?;
        self.sender.flush();
        Ok(())
    }

    /// Sends an element. A waiting consumer is woken by the next [`flush`](MergeSender::flush), or when there
    /// is no room. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    pub fn feed(self, value: T) -> Result<(), SendError<T>> {
        self.sender.append(value).map_err(SendError)
    }
}

impl<T, E> Drop for MergePermit<'_, T, E> {
    /// Releases the permit, unless an element has used it.
    fn drop(&mut self) {
        self.sender.give_back();
    }
}

impl<T, E> fmt::Debug for MergePermit<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergePermit").finish_non_exhaustive()
    }
}

impl<T, E> Sink<T> for MergeSender<T, E> {
    type Error = HubClosed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().poll_permit(context)
    }

    /// Uses the permit that `poll_ready` acquired.
    ///
    /// # Panics
    ///
    /// If `poll_ready` was not ready before, and there is no room.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), HubClosed> {
        let this = self.get_mut();
        match this.try_permit() {
            Poll::Ready(Ok(())) => this.append(value).map_err(|_| HubClosed),
            Poll::Ready(Err(HubClosed)) => Err(HubClosed),
            Poll::Pending => panic!("`start_send` called before `poll_ready` was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
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
