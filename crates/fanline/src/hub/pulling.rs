//! What receivers that pull one element at a time have in common.

use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::Observer;
use crate::hub::{Ended, HubError, TryRecvError};

/// A consumer that always finds elements gives way to other tasks after so many (hazard 9).
const RUN: u32 = 128;

/// How far a receiver is: still taking, or at which end.
pub(crate) struct Pulling<E> {
    end: Option<Ended<E>>,
    /// Elements before other tasks have their turn.
    run: u32,
}

impl<E> Pulling<E> {
    pub(crate) fn new() -> Self {
        Self {
            end: None,
            run: RUN,
        }
    }

    /// The next element; `None` at the end, which is remembered. `pull` leaves the waker when there is
    /// nothing.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        context: &Context<'_>,
        pull: impl FnOnce(Option<&Waker>) -> Poll<Result<T, Ended<E>>>,
    ) -> Poll<Option<T>> {
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        if self.run == 0 {
            self.run = RUN;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match pull(Some(context.waker())) {
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

    /// The next element if there is one now.
    pub(crate) fn try_next<T>(
        &mut self,
        pull: impl FnOnce(Option<&Waker>) -> Poll<Result<T, Ended<E>>>,
    ) -> Result<T, TryRecvError<E>> {
        if self.end.is_none() {
            match pull(None) {
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

    /// Whether the end was seen.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The error that it ended with, if it was seen and was one.
    pub(crate) fn error(&self) -> Option<&HubError<E>> {
        self.end.as_ref().and_then(Ended::error)
    }
}

/// Calls an observer with every element of a receiver, and with the end, until then or until it wants
/// no more.
pub(crate) async fn attach<R, O, E>(
    mut receiver: R,
    mut observer: O,
    error: impl Fn(&R) -> Option<&HubError<E>>,
) where
    R: Stream + Unpin,
    O: Observer<R::Item, HubError<E>>,
{
    while !observer.is_closed() {
        let next =
            std::future::poll_fn(|context| std::pin::Pin::new(&mut receiver).poll_next(context));
        match next.await {
            Some(value) => observer.next_owned(value),
            None => {
                match error(&receiver) {
                    None => observer.complete(),
                    Some(error) => observer.error(error),
                }
                return;
            }
        }
    }
}
