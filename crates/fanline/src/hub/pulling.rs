//! The state that the receivers of the merge and partition hubs share. They pull one element at a time.

use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::Observer;
use crate::hub::{Ended, HubError, RecvError, TryRecvError};

/// Number of elements in a row after which a consumer yields, so that other tasks of its executor run.
const RUN: u32 = 128;

/// The state of a receiver: the end of the hub, if the receiver has seen it, and the number of elements
/// before the next yield.
pub(crate) struct Pulling<E> {
    end: Option<Ended<E>>,
    /// Elements left before the receiver yields to other tasks.
    run: u32,
}

impl<E> Pulling<E> {
    pub(crate) fn new() -> Self {
        Self {
            end: None,
            run: RUN,
        }
    }

    /// Returns the next element, or `None` at the end of the hub, and stores that end. If there is no
    /// element, `pull` registers the waker.
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

    /// Returns the outcome of [`poll`](Self::poll) with the reason why there is no element.
    pub(crate) fn received<T>(&self, value: Option<T>) -> Result<T, RecvError<E>> {
        value.ok_or_else(|| match self.error() {
            None => RecvError::Completed,
            Some(error) => RecvError::Failed(error.clone()),
        })
    }

    /// Returns the next element, if one is available now.
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

    /// Returns whether the receiver has seen the end of the hub.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the error, if the receiver has seen the hub fail.
    pub(crate) fn error(&self) -> Option<&HubError<E>> {
        self.end.as_ref().and_then(Ended::error)
    }
}

/// Calls an observer with every element of a receiver, and then with the completion or the error of the hub.
/// Stops earlier if the observer is closed.
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
