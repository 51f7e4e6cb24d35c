//! The consumer's end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};

use super::core::Shared;
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Ended, HubError, TryRecvError};

/// A consumer that always finds elements gives way to other tasks after so many.
const RUN: u32 = 128;

/// The consuming end of a merge hub. Dropping it closes the hub: producers are told, and what waits is
/// dropped.
pub struct MergeReceiver<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    end: Option<Ended<E>>,
    /// Elements before other tasks have their turn.
    run: u32,
}

impl<T, E> MergeReceiver<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self {
            shared,
            end: None,
            run: RUN,
        }
    }

    /// The next element; `None` after the end, of which [`error`](Self::error) tells more.
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
        if self.end.is_none() {
            match self.shared.poll_next(None) {
                Poll::Ready(Ok(value)) => return Ok(value),
                Poll::Ready(Err(end)) => self.end = Some(end),
                Poll::Pending => return Err(TryRecvError::Empty),
            }
        }
        Err(match self.error() {
            None => TryRecvError::Completed,
            Some(error) => TryRecvError::Failed(error.clone()),
        })
    }

    /// Calls an observer with every element, and with the end, until then or until it wants no more.
    pub async fn attach<O: Observer<T, HubError<E>>>(mut self, mut observer: O) {
        while !observer.is_closed() {
            match self.next().await {
                Some(value) => observer.next_owned(value),
                None => {
                    match self.error() {
                        None => observer.complete(),
                        Some(error) => observer.error(error),
                    }
                    return;
                }
            }
        }
    }

    /// Why there are no more elements, after the end was seen; `None` before, and after completion.
    pub fn error(&self) -> Option<&HubError<E>> {
        match &self.end {
            None | Some(Ended::Completed) => None,
            Some(Ended::Error(error)) => Some(error),
        }
    }

    /// How many elements wait.
    pub fn lag(&self) -> usize {
        self.shared.len()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<T>> {
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        if self.run == 0 {
            self.run = RUN;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.shared.poll_next(Some(context.waker())) {
            Poll::Ready(Ok(value)) => {
                self.run -= 1;
                Poll::Ready(Some(value))
            }
            Poll::Ready(Err(end)) => {
                self.end = Some(end);
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.run = RUN;
                Poll::Pending
            }
        }
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
        self.end.is_some()
    }
}

impl<T, E> Unpin for MergeReceiver<T, E> {}

impl<T, E> Drop for MergeReceiver<T, E> {
    fn drop(&mut self) {
        self.shared.desert();
    }
}

impl<T, E> fmt::Debug for MergeReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeReceiver")
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
