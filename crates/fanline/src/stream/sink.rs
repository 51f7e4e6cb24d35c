//! Implementations of `Sink` for producers and subjects.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;

use crate::policy::{Flavor, Policy};
use crate::subject::Entry;
use crate::{Producer, SharedSubject};

/// The error of sending to a subject that has ended: a subject that was closed as a sink, has completed or
/// failed, or was disposed of.
///
/// ```
/// use fanline::{Subject, stream::SubjectEnded};
/// use futures::SinkExt;
///
/// # futures::executor::block_on(async {
/// let mut s = Subject::<u32>::new();
/// s.complete();
/// assert_eq!(s.send(1).await, Err(SubjectEnded));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubjectEnded;

impl std::fmt::Display for SubjectEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the subject has ended")
    }
}

impl std::error::Error for SubjectEnded {}

/// Emits each value at once: a producer is always ready and has nothing to flush. Closing it completes the
/// subject; later sends return an error.
///
/// ```
/// use futures::{SinkExt, StreamExt, stream};
///
/// let (tx, source) = fanline::subject::<u32>();
/// source.subscribe(|value| println!("{value}")).detach();
/// # futures::executor::block_on(async move {
/// // Emits 1, 2, 3 and completes.
/// stream::iter([1, 2, 3]).map(Ok).forward(tx).await.unwrap();
/// # });
/// assert!(source.has_ended());
/// ```
///
/// # Panics
///
/// If an observer panicked, after all others have received the value.
impl<T, E, P: Policy, L: Entry<T, E>> Sink<T> for Producer<T, E, P, L> {
    type Error = SubjectEnded;

    fn poll_ready(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Result<(), SubjectEnded>> {
        Poll::Ready(if self.has_ended() {
            Err(SubjectEnded)
        } else {
            Ok(())
        })
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), SubjectEnded> {
        if self.has_ended() {
            return Err(SubjectEnded);
        }
        self.get_mut().next(value);
        Ok(())
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Result<(), SubjectEnded>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Result<(), SubjectEnded>> {
        if !self.has_ended() {
            self.get_mut().complete_in_place();
        }
        Poll::Ready(Ok(()))
    }
}

// Values are moved to the subject. They are never pinned in the sink.
impl<T, E, P: Policy, L: Entry<T, E>> Unpin for Producer<T, E, P, L> {}

macro_rules! sink {
    ($handle:ty) => {
        /// Emits each value at once: a subject is always ready and has nothing to flush. Closing it
        /// completes the subject, for all its handles. Sending to a subject that has ended returns an
        /// error.
        impl<T, E, P> Sink<T> for $handle
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
            P: Flavor,
        {
            type Error = SubjectEnded;

            fn poll_ready(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), SubjectEnded>> {
                Poll::Ready(if self.has_ended() {
                    Err(SubjectEnded)
                } else {
                    Ok(())
                })
            }

            fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), SubjectEnded> {
                // `poll_ready` has checked that the subject has not ended. If it has ended since then, it
                // ignores the value.
                SharedSubject::next(&self, value);
                Ok(())
            }

            fn poll_flush(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), SubjectEnded>> {
                Poll::Ready(Ok(()))
            }

            fn poll_close(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), SubjectEnded>> {
                SharedSubject::complete(&self);
                Poll::Ready(Ok(()))
            }
        }
    };
}

sink!(SharedSubject<T, E, P>);
sink!(&SharedSubject<T, E, P>);
