//! The producing end of a partition hub.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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
use crate::hub::{BoxError, Ended, HubClosed, HubError, SendError, SendTimeoutError, TrySendError};
use crate::{Guard, IntoObservable, Observable};

/// Number of elements in a row after which the producer yields, so that other tasks of its executor run.
const RUN: u32 = 128;

/// The producing end of a partition hub; see [`partition`](super::partition()). Dropping it completes the
/// hub. If the drop is part of a panic, consumers get [`HubError::Abandoned`] instead.
///
/// `send`, `feed`, and their variants wait while the hub is full. A consumer that polls finds new elements at
/// once. Waiting consumers are woken by [`flush`](Self::flush), with each [`send`](Self::send), and when
/// there is no room. If you feed several elements and flush once, each consumer is woken once for all of
/// them.
///
/// The sender is also a [`Sink`], which feeds elements, and whose `close` completes the hub.
pub struct PartitionSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    state: SenderState,
    /// Number of elements that may still be sent before the next yield.
    run: u32,
}

impl<T, E> PartitionSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self {
            shared,
            state: SenderState::default(),
            run: RUN,
        }
    }

    /// Waits for room, sends an element to the consumer that the partitioner chooses, and wakes that
    /// consumer.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// If the partitioner panics or returns a consumer that does not exist; the element is lost.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.room().await {
            Ok(()) => self.push(value, true).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Waits for room, and sends an element to the consumer that the partitioner chooses. That consumer is
    /// woken by the next [`flush`](Self::flush), or when there is no room.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.room().await {
            Ok(()) => self.push(value, false).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Does the same as [`send`](Self::send), but gives up when the hub has been full for `timeout`. With a
    /// timeout of zero it does not wait. The time is that of the hub's
    /// [`scheduler`](super::PartitionOptions::scheduler).
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent.
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
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
        let room =
            poll_fn(|context| deadline.poll(context, |context| waiting.sender.poll_room(context)));
        let room = room.await;
        waiting.is_over = room.is_some();
        drop(waiting);
        self.send_in_time(value, room)
    }

    /// Does the same as [`send_timeout`](Self::send_timeout), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
    pub fn blocking_send_timeout(
        &mut self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut deadline = Deadline::new(self.shared.timer(), timeout);
        let room = block_on(|context| deadline.poll(context, |context| self.poll_room(context)));
        if room.is_none() {
            self.shared.stop_waiting();
        }
        self.send_in_time(value, room)
    }

    fn send_in_time(
        &mut self,
        value: T,
        room: Option<Result<(), HubClosed>>,
    ) -> Result<(), SendTimeoutError<T>> {
        match room {
            Some(Ok(())) => self.push(value, true).map_err(SendTimeoutError::Closed),
            Some(Err(HubClosed)) => Err(SendTimeoutError::Closed(value)),
            // The last poll may have yielded although there was room.
            None => Ok(self.try_send(value)?),
        }
    }

    /// Waits for room for one element, and returns a permit that sends it without waiting. So an element need
    /// not exist before there is room for it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, nothing is reserved. A permit that is dropped
    /// leaves the room to the next element.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (mut tx, hub) = fanline::hub::partition::<String>(16, |_, _| 0);
    /// let mut rx = hub.subscribe();
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
    pub async fn reserve(&mut self) -> Result<PartitionPermit<'_, T, E>, HubClosed> {
        self.room().await?;
        Ok(PartitionPermit { sender: self })
    }

    /// Returns a permit for one element if there is room now.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed.
    pub fn try_reserve(&mut self) -> Result<PartitionPermit<'_, T, E>, TrySendError<()>> {
        match self.shared.poll_room(&mut self.state, None) {
            Poll::Ready(Ok(())) => Ok(PartitionPermit { sender: self }),
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(())),
            Poll::Pending => Err(TrySendError::Full(())),
        }
    }

    /// Waits until the hub accepts no more elements. Wakes waiting consumers first, as
    /// [`flush`](Self::flush) does.
    ///
    /// Cancel safe: dropping the future has no effect.
    pub async fn closed(&mut self) {
        self.flush();
        poll_fn(|context| self.shared.poll_closed(context.waker())).await;
    }

    /// Wakes waiting consumers that have new elements. Never blocks.
    pub fn flush(&mut self) {
        self.shared.flush();
    }

    /// Does the same as [`send`](Self::send), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.blocking_room() {
            Ok(()) => self.push(value, true).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Does the same as [`feed`](Self::feed), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
    pub fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.blocking_room() {
            Ok(()) => self.push(value, false).map_err(SendError),
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Sends an element if there is room now.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.shared.poll_room(&mut self.state, None) {
            Poll::Ready(Ok(())) => self.push(value, true).map_err(TrySendError::Closed),
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends every item of a stream, and then completes. Consumers are woken when there is no room and
    /// whenever the stream is pending.
    ///
    /// # Errors
    ///
    /// If the hub is closed, even while the stream is pending. The stream is dropped, and so is an item that
    /// was not sent.
    ///
    /// # Panics
    ///
    /// In the same cases as [`send`](Self::send).
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
                    if self.shared.poll_closed(context.waker()).is_ready() {
                        return Poll::Ready(Err(HubClosed));
                    }
                }
                next.map(Ok)
            });
            match next.await? {
                Some(value) => self.feed(value).await.map_err(|_| HubClosed)?,
                None => {
                    self.complete();
                    return Ok(());
                }
            }
        }
    }

    /// Sends to the hub every value that an observable (a subject or a chain of operators) emits, and its
    /// completion or error.
    ///
    /// An observable can wait only by blocking: its thread blocks while there is no room. So consumers must
    /// not depend on the same thread. When the hub is closed, the source is unsubscribed at its next value.
    ///
    /// ```
    /// let (mut subject, source) = fanline::subject::<u32>();
    /// let (tx, hub) = fanline::hub::partition::<u32>(16, |_, _| 0);
    /// let mut rx = hub.subscribe();
    /// let guard = tx.attach_source(source);
    /// subject.next(1);
    /// subject.complete();
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
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

    /// Completes the hub. Consumers get the elements that were sent, and then the completion. Has no effect
    /// if the hub has already ended.
    pub fn complete(&mut self) {
        self.shared.end(Ended::Completed);
    }

    /// Fails the hub. Consumers get the error at once, before elements that they have not received. Has no
    /// effect if the hub has already ended.
    pub fn fail(&mut self, error: impl Into<E>) {
        let error = HubError::Failed(Arc::new(error.into()));
        self.shared.end(Ended::Error(error));
    }

    /// Returns whether the hub accepts no more elements.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Waits for room. Dropping the future removes its waker.
    async fn room(&mut self) -> Result<(), HubClosed> {
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let room = poll_fn(|context| waiting.sender.poll_room(context)).await;
        waiting.is_over = true;
        room
    }

    fn blocking_room(&mut self) -> Result<(), HubClosed> {
        match self.shared.poll_room(&mut self.state, None) {
            Poll::Ready(room) => room,
            Poll::Pending => block_on(|context| self.poll_room(context)),
        }
    }

    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), HubClosed>> {
        if self.run == 0 {
            self.run = RUN;
            self.shared.flush();
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let room = self
            .shared
            .poll_room(&mut self.state, Some(context.waker()));
        self.run = if room.is_ready() { self.run - 1 } else { RUN };
        room
    }

    fn push(&mut self, value: T, flushes: bool) -> Result<(), T> {
        self.shared.push(&mut self.state, value, flushes)
    }
}

/// A drop guard of a send. If the future is dropped, the guard removes its waker.
struct Waiting<'a, T, E> {
    sender: &'a mut PartitionSender<T, E>,
    is_over: bool,
}

impl<T, E> Drop for Waiting<'_, T, E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.sender.shared.stop_waiting();
        }
    }
}

/// Room for one element in a partition hub; made by [`PartitionSender::reserve`]. Dropping the permit leaves the
/// room to the next element.
#[must_use = "a permit that is dropped sends nothing"]
pub struct PartitionPermit<'a, T, E = BoxError> {
    /// The sender has room, and only the sender uses it up.
    sender: &'a mut PartitionSender<T, E>,
}

impl<T, E> PartitionPermit<'_, T, E> {
    /// Sends an element to the consumer that the partitioner chooses, and wakes that consumer. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`PartitionSender::send`].
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        self.sender.push(value, true).map_err(SendError)
    }

    /// Sends an element to the consumer that the partitioner chooses. That consumer is woken by the next
    /// [`flush`](PartitionSender::flush), or when there is no room. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    ///
    /// # Panics
    ///
    /// In the same cases as [`PartitionSender::send`].
    pub fn feed(self, value: T) -> Result<(), SendError<T>> {
        self.sender.push(value, false).map_err(SendError)
    }
}

impl<T, E> fmt::Debug for PartitionPermit<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionPermit").finish_non_exhaustive()
    }
}

impl<T, E> Sink<T> for PartitionSender<T, E> {
    type Error = HubClosed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().poll_room(context)
    }

    /// Feeds an element.
    ///
    /// # Panics
    ///
    /// If `poll_ready` was not ready before and there is no room, and in the same cases as
    /// [`PartitionSender::send`].
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), HubClosed> {
        let this = self.get_mut();
        match this.shared.poll_room(&mut this.state, None) {
            Poll::Ready(Ok(())) => this.push(value, false).map_err(|_| HubClosed),
            Poll::Ready(Err(HubClosed)) => Err(HubClosed),
            Poll::Pending => panic!("`start_send` called before `poll_ready` was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().complete();
        Poll::Ready(Ok(()))
    }
}

impl<T: Send, E: Send + Sync> Producer<T, E> for PartitionSender<T, E> {
    fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        Self::blocking_feed(self, value)
    }

    fn flush(&mut self) {
        Self::flush(self);
    }

    fn complete(&mut self) {
        Self::complete(self);
    }

    fn fail(&mut self, error: E) {
        Self::fail(self, error);
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

impl<T, E> Unpin for PartitionSender<T, E> {}

impl<T, E> Drop for PartitionSender<T, E> {
    fn drop(&mut self) {
        let is_panicking = std::thread::panicking();
        let end = if is_panicking {
            Ended::Error(HubError::Abandoned)
        } else {
            Ended::Completed
        };
        let finish = || {
            self.shared.stop_waiting();
            if !self.shared.end(end) {
                // The hub had ended before. A panic may have left recorded changes that are not applied, so
                // apply them.
                self.shared.route();
            }
        };
        // User code may panic. Then resume the panic, unless this thread is already panicking.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(finish))
            && !is_panicking
        {
            resume_unwind(panic);
        }
    }
}

impl<T, E> fmt::Debug for PartitionSender<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionSender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
