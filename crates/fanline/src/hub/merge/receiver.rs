//! The consuming end of a merge hub.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::{FusedStream, Stream};

use super::list::Head;
use super::shared::Shared;
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::deadline::Deadline;
use crate::hub::pulling::{self, Pulling};
use crate::hub::{BoxError, HubError, RecvError, RecvTimeoutError, TryRecvError};

/// The consuming end of a merge hub. Dropping it closes the hub: producers see it closed, and queued elements
/// are dropped.
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

    /// Returns the next element, or `None` after the hub has ended; see [`error`](Self::error). Cancel safe:
    /// a future that is dropped before it is ready has received nothing.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Returns the next element, or the reason why there is none. Cancel safe, like [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// If the hub has ended.
    pub async fn recv(&mut self) -> Result<T, RecvError<E>> {
        let value = self.next().await;
        self.pulling.received(value)
    }

    /// Does the same as [`recv`](Self::recv), but gives up when no element has arrived for `timeout`. With a
    /// timeout of zero it does not wait. The time is that of the hub's [`scheduler`](super::MergeOptions::scheduler).
    ///
    /// # Errors
    ///
    /// If no element arrived in time, or if the hub has ended.
    pub async fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError<E>> {
        let mut deadline = Deadline::new(self.shared.timer(), timeout);
        let value = poll_fn(|context| deadline.poll(context, |context| self.poll(context))).await;
        self.received_in_time(value)
    }

    /// Does the same as [`recv_timeout`](Self::recv_timeout), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If no element arrived in time, or if the hub has ended.
    pub fn blocking_recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError<E>> {
        let mut deadline = Deadline::new(self.shared.timer(), timeout);
        let value = block_on(|context| deadline.poll(context, |context| self.poll(context)));
        self.received_in_time(value)
    }

    fn received_in_time(&mut self, value: Option<Option<T>>) -> Result<T, RecvTimeoutError<E>> {
        match value {
            Some(value) => Ok(self.pulling.received(value)?),
            // The last poll may have yielded although there was an element.
            None => Ok(self.try_recv()?),
        }
    }

    /// Does the same as [`next`](Self::next), but blocks the thread.
    pub fn blocking_recv(&mut self) -> Option<T> {
        block_on(|context| self.poll(context))
    }

    /// Returns the next element, if one is available now.
    ///
    /// # Errors
    ///
    /// If no element is available, or if the hub has ended.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError<E>> {
        self.pulling
            .try_next(|waker| self.shared.poll_next(&mut self.head, waker))
    }

    /// Calls an observer with every element, and then with the completion or the error of the hub. Stops
    /// earlier if the observer is closed.
    pub async fn attach<O: Observer<T, HubError<E>>>(self, observer: O) {
        pulling::attach(self, observer, Self::error).await;
    }

    /// Returns the error, if the consumer has seen the hub fail. Before that, and after completion, returns
    /// `None`.
    pub fn error(&self) -> Option<&HubError<E>> {
        self.pulling.error()
    }

    /// Returns whether the consumer has seen the end of the hub. No element follows then.
    pub fn has_ended(&self) -> bool {
        self.pulling.has_ended()
    }

    /// Returns the number of queued elements. Takes time proportional to the number of producers.
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
        self.shared.drop_receiver(&mut self.head);
    }
}

impl<T, E> fmt::Debug for MergeReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeReceiver")
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
