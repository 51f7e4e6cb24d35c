//! A producer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_sink::Sink;

use super::core::Shared;
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Closed, SendError, TrySendError};

/// A producing end of a merge hub. Dropping it leaves; what it has sent is received all the same. A
/// clone is another producer, with places of its own.
///
/// It is a [`Sink`] too, whose `close` leaves.
pub struct MergeSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    /// Nothing once it has left.
    lane: Option<usize>,
}

impl<T, E> MergeSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        let lane = shared.join();
        Self { shared, lane }
    }

    /// Waits for a place and sends.
    ///
    /// Dropping the future before it is done drops the element, unsent, and gives up its place in line.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        let mut waiting = Waiting {
            sender: self,
            over: false,
        };
        let place = poll_fn(|context| waiting.sender.poll_place(context)).await;
        waiting.over = true;
        match place {
            Ok(()) => waiting.sender.push(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// As [`send`](Self::send), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        match block_on(|context| self.poll_place(context)) {
            Ok(()) => self.push(value).map_err(SendError),
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Sends if there is a place now, and nobody waits for it.
    ///
    /// # Errors
    ///
    /// When there is no place, or the hub is closed; the element comes back.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.poll_place(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => self.push(value).map_err(TrySendError::Closed),
            Poll::Ready(Err(Closed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => {
                self.give_back();
                Err(TrySendError::Full(value))
            }
        }
    }

    /// Sends all that a stream yields, and leaves after it.
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

    /// Leaves. The hub goes on, and so do the other producers.
    pub fn complete(self) {
        drop(self);
    }

    /// Leaves, since this producer's source has failed: the hub remembers it as its
    /// [last failure](super::MergeHub::last_failure), and goes on for the others.
    pub fn fail(mut self, error: impl Into<E>) {
        let error = error.into();
        if let Some(lane) = self.lane.take() {
            self.shared.leave(lane, Some(error));
        }
    }

    /// Whether nothing is taken from this producer any more.
    pub fn is_closed(&self) -> bool {
        self.lane.is_none() || self.shared.is_closed()
    }

    fn poll_place(&self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        let Some(lane) = self.lane else {
            return Poll::Ready(Err(Closed));
        };
        let mut waker = Some(context.waker().clone());
        self.shared.poll_place(lane, &mut waker)
    }

    fn push(&self, value: T) -> Result<(), T> {
        match self.lane {
            Some(lane) => self.shared.push(lane, value),
            None => Err(value),
        }
    }

    /// Does not wait any more.
    fn give_back(&self) {
        if let Some(lane) = self.lane {
            self.shared.give_back(lane);
        }
    }

    fn leave(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.shared.leave(lane, None);
        }
    }
}

/// A send that may be dropped while it waits, or with a place that it does not use.
struct Waiting<'a, T, E> {
    sender: &'a mut MergeSender<T, E>,
    over: bool,
}

impl<T, E> Drop for Waiting<'_, T, E> {
    fn drop(&mut self) {
        if !self.over {
            self.sender.give_back();
        }
    }
}

impl<T, E> Sink<T> for MergeSender<T, E> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_place(context)
    }

    /// Uses the place that `poll_ready` has got.
    ///
    /// # Panics
    ///
    /// When `poll_ready` was not ready before.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        let ready = self.poll_place(&Context::from_waker(Waker::noop()));
        match ready {
            Poll::Ready(Ok(())) => self.push(value).map_err(|_| Closed),
            Poll::Ready(Err(Closed)) => Err(Closed),
            Poll::Pending => panic!("`start_send` needs a `poll_ready` that was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().leave();
        Poll::Ready(Ok(()))
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
