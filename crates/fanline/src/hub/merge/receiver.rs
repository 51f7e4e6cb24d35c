//! The consumer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};

use super::list::Head;
use super::shared::Shared;
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::pulling::{self, Pulling};
use crate::hub::{BoxError, HubError, TryRecvError};

/// The consuming end of a merge hub. Dropping it closes the hub: producers are told, and what waits is
/// dropped.
pub struct MergeReceiver<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    head: Head<T>,
    pulling: Pulling<E>,
}

impl<T, E> MergeReceiver<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>, head: Head<T>) -> Self {
        Self {
            shared,
            head,
            pulling: Pulling::new(),
        }
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
            .try_next(|waker| self.shared.poll_next(&mut self.head, waker))
    }

    /// Calls an observer with every element, and with the end, until then or until it wants no more.
    pub async fn attach<O: Observer<T, HubError<E>>>(self, observer: O) {
        pulling::attach(self, observer, Self::error).await;
    }

    /// Why there are no more elements, after the end was seen; `None` before, and after completion.
    pub fn error(&self) -> Option<&HubError<E>> {
        self.pulling.error()
    }

    /// How many elements wait. It goes over all producers.
    pub fn lag(&self) -> usize {
        self.shared.len()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<T>> {
        self.pulling.poll(context, |waker| {
            self.shared.poll_next(&mut self.head, waker)
        })
    }
}

impl<T, E> Stream for MergeReceiver<T, E> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll(context)
    }
}

impl<T, E> FusedStream for MergeReceiver<T, E> {
    fn is_terminated(&self) -> bool {
        self.pulling.has_ended()
    }
}

impl<T, E> Unpin for MergeReceiver<T, E> {}

impl<T, E> Drop for MergeReceiver<T, E> {
    fn drop(&mut self) {
        self.shared.desert(&mut self.head);
    }
}

impl<T, E> fmt::Debug for MergeReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeReceiver")
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
