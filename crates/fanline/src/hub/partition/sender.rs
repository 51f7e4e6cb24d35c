//! The producer's end.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_sink::Sink;

use super::shared::{Desk, Shared};
use crate::hub::blocking::block_on;
use crate::hub::feeding::{Feeding, Producer};
use crate::hub::{BoxError, Closed, Ended, HubError, SendError, TrySendError};
use crate::{Guard, IntoObservable, Observable};

/// A producer that always finds room gives way to other tasks after so many elements.
const RUN: u32 = 128;

/// The producing end of a partition hub; see [`partition`](super::partition()). Dropping it completes the
/// hub; while its thread panics, consumers get [`HubError::Abandoned`] instead.
///
/// `send`, `feed` and their likes wait while the hub has as many elements as it can. Elements are there
/// for a consumer that looks at once; those that sleep are woken by [`flush`](Self::flush), with each
/// [`send`](Self::send), and when there is no room. Feeding several elements and flushing once costs
/// each consumer one wake-up for all of them.
///
/// It is a [`Sink`] too, which feeds, and whose `close` completes.
pub struct PartitionSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    desk: Desk,
    /// Elements before other tasks have their turn.
    run: u32,
}

impl<T, E> PartitionSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self {
            shared,
            desk: Desk::default(),
            run: RUN,
        }
    }

    /// Waits for room in the hub, and sends to whom the partitioner chooses, who is woken.
    ///
    /// Dropping the future before it is done drops the element, unsent.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// When the partitioner does, or answers with a consumer that there is not; the element is lost.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.room().await {
            Ok(()) => self.push(value, true).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Waits for room in the hub, and sends to whom the partitioner chooses, who is woken by the next
    /// [`flush`](Self::flush), or when there is no room.
    ///
    /// Dropping the future before it is done drops the element, unsent.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.room().await {
            Ok(()) => self.push(value, false).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Wakes consumers who were sent something and sleep. Does not wait for anybody.
    pub fn flush(&mut self) {
        self.shared.flush();
    }

    /// As [`send`](Self::send), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.blocking_room() {
            Ok(()) => self.push(value, true).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// As [`feed`](Self::feed), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    pub fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match self.blocking_room() {
            Ok(()) => self.push(value, false).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Sends if there is room now.
    ///
    /// # Errors
    ///
    /// When there is no room, or the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.shared.poll_room(&mut self.desk, None) {
            Poll::Ready(Ok(())) => self.push(value, true).map_err(TrySendError::Closed),
            Poll::Ready(Err(Closed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends all that a stream yields, and completes after it. Consumers are woken when there is no room
    /// and whenever the stream has nothing ready.
    ///
    /// # Errors
    ///
    /// When the hub is closed, while the stream is silent too; the stream is dropped, with the element
    /// that it had yielded.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
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
                    if self.shared.poll_closed(context.waker()).is_ready() {
                        return Poll::Ready(Err(Closed));
                    }
                }
                next.map(Ok)
            });
            match next.await? {
                Some(value) => self.feed(value).await.map_err(|_| Closed)?,
                None => {
                    self.complete();
                    return Ok(());
                }
            }
        }
    }

    /// Sends all that an observable emits (a subject, a chain of operators), and its end.
    ///
    /// What emits has no way to wait but to wait: its thread is held up while there is no room. So
    /// consumers must not depend on the same thread. When the hub is closed the source is unsubscribed
    /// with the next that it emits.
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

    /// Says that there is no more. Consumers get what was sent before, and then the end. Does nothing
    /// after an end.
    pub fn complete(&mut self) {
        self.shared.end(Ended::Completed);
    }

    /// Says that the source has failed. Consumers get that at once, before what they have not received.
    /// Does nothing after an end.
    pub fn fail(&mut self, error: impl Into<E>) {
        let error = HubError::Failed(Arc::new(error.into()));
        self.shared.end(Ended::Error(error));
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Dropping the future forgets that anybody waits.
    async fn room(&mut self) -> Result<(), Closed> {
        let mut waiting = Waiting {
            sender: self,
            is_over: false,
        };
        let room = poll_fn(|context| waiting.sender.poll_room(context)).await;
        waiting.is_over = true;
        room
    }

    fn blocking_room(&mut self) -> Result<(), Closed> {
        match self.shared.poll_room(&mut self.desk, None) {
            Poll::Ready(room) => room,
            Poll::Pending => block_on(|context| self.poll_room(context)),
        }
    }

    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        if self.run == 0 {
            self.run = RUN;
            self.shared.flush();
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let room = self.shared.poll_room(&mut self.desk, Some(context.waker()));
        self.run = if room.is_ready() { self.run - 1 } else { RUN };
        room
    }

    fn push(&mut self, value: T, flushes: bool) -> Result<(), T> {
        self.shared.push(&mut self.desk, value, flushes)
    }
}

/// A send that may be dropped while it waits.
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

impl<T, E> Sink<T> for PartitionSender<T, E> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().poll_room(context)
    }

    /// Feeds the element.
    ///
    /// # Panics
    ///
    /// When `poll_ready` was not ready before, and there is no room; and as [`PartitionSender::send`].
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        let this = self.get_mut();
        match this.shared.poll_room(&mut this.desk, None) {
            Poll::Ready(Ok(())) => this.push(value, false).map_err(|_| Closed),
            Poll::Ready(Err(Closed)) => Err(Closed),
            Poll::Pending => panic!("`start_send` needs a `poll_ready` that was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
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
                // It has ended before: what a turn that panicked has left undone is done now.
                self.shared.route();
            }
        };
        // Users' code may panic, which is passed on: unless the thread does so already.
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
