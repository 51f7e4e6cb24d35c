//! A consumer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};

use super::shared::{Seat, Shared};
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::pulling::{self, Pulling};
use crate::hub::{BoxError, HubError, TryRecvError};

/// A consuming end of a partition hub: the elements that the partitioner chose it for, in the order in
/// which they were sent. Dropping it leaves; what becomes of the elements that wait for it is
/// [an option](super::LeftElements).
pub struct PartitionReceiver<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    seat: Seat<T>,
    pulling: Pulling<E>,
}

impl<T, E> PartitionReceiver<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        let receiver = Self {
            seat: shared.join(),
            shared,
            pulling: Pulling::new(),
        };
        // Elements may wait for it. Should the partitioner panic, it leaves.
        receiver.shared.route();
        receiver
    }

    /// The next element; `None` after the end, of which [`error`](Self::error) tells more. Dropping the
    /// future before it is done loses nothing.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|context| self.poll(context)).await
    }

    /// As [`next`](Self::next), and holds up this thread instead of a task.
    pub fn blocking_recv(&mut self) -> Option<T> {
        block_on(|context| self.poll(context))
    }

    /// The next element if there is one now.
    ///
    /// # Errors
    ///
    /// When there is none yet, and at the end.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError<E>> {
        self.pulling
            .try_next(|waker| self.shared.poll_next(&mut self.seat, waker))
    }

    /// Calls an observer with every element, and with the end, until then or until it wants no more.
    pub async fn attach<O: Observer<T, HubError<E>>>(self, observer: O) {
        pulling::attach(self, observer, Self::error).await;
    }

    /// Why there are no more elements, after the end was seen; `None` before, and after completion.
    pub fn error(&self) -> Option<&HubError<E>> {
        self.pulling.error()
    }

    /// How many elements wait for it.
    pub fn lag(&self) -> usize {
        self.seat.lane().queued()
    }

    /// What the partitioner knows it by.
    pub fn id(&self) -> i64 {
        self.seat.lane().id
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<T>> {
        self.pulling.poll(context, |waker| {
            self.shared.poll_next(&mut self.seat, waker)
        })
    }
}

impl<T, E> Stream for PartitionReceiver<T, E> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll(context)
    }
}

impl<T, E> FusedStream for PartitionReceiver<T, E> {
    fn is_terminated(&self) -> bool {
        self.pulling.has_ended()
    }
}

impl<T, E> Unpin for PartitionReceiver<T, E> {}

impl<T, E> Drop for PartitionReceiver<T, E> {
    fn drop(&mut self) {
        self.shared.drop_seat(&mut self.seat);
    }
}

impl<T, E> fmt::Debug for PartitionReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionReceiver")
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
