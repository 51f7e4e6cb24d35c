//! The producer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_sink::Sink;

use super::core::Shared;
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Closed, Ended, HubError, SendError, TrySendError};

/// The producing end of a partition hub; see [`partition`](super::partition()). Dropping it completes the
/// hub; while its thread panics, consumers get [`HubError::Abandoned`] instead.
///
/// It is a [`Sink`] too, whose `close` completes.
pub struct PartitionSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> PartitionSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self { shared }
    }

    /// Waits for room in the hub, and sends to whom the partitioner chooses.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    ///
    /// # Panics
    ///
    /// When the partitioner does, or answers with a consumer that there is not; the element is lost.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        match poll_fn(|context| self.poll_room(context)).await {
            Ok(()) => self.shared.push(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// As [`send`](Self::send), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        match block_on(|context| self.poll_room(context)) {
            Ok(()) => self.shared.push(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Sends if there is room now.
    ///
    /// # Errors
    ///
    /// When there is no room, or the hub is closed; the element comes back.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.poll_room(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => self.shared.push(value).map_err(TrySendError::Closed),
            Poll::Ready(Err(Closed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends all that a stream yields, and completes after it.
    ///
    /// # Errors
    ///
    /// When the hub is closed.
    pub async fn attach<S>(mut self, stream: S) -> Result<(), Closed>
    where
        S: Stream<Item = T>,
    {
        let mut stream = std::pin::pin!(stream);
        while let Some(value) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            self.send(value).await.map_err(|_| Closed)?;
        }
        Ok(())
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

    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        let mut waker = Some(context.waker().clone());
        self.shared.poll_room(&mut waker)
    }
}

impl<T, E> Sink<T> for PartitionSender<T, E> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_room(context)
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        self.shared.push(value).map_err(|_| Closed)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().complete();
        Poll::Ready(Ok(()))
    }
}

impl<T, E> Unpin for PartitionSender<T, E> {}

impl<T, E> Drop for PartitionSender<T, E> {
    fn drop(&mut self) {
        self.shared.end(if std::thread::panicking() {
            Ended::Error(HubError::Abandoned)
        } else {
            Ended::Completed
        });
    }
}

impl<T, E> fmt::Debug for PartitionSender<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionSender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
