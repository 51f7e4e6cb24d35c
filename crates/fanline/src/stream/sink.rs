//! Producers and subjects as the end of a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;

use crate::policy::Policy;
use crate::subject::Entry;
use crate::{AsyncSubject, BehaviorSubject, Producer, ReplaySubject, Subject};

/// The subject that was sent to has ended: it was closed, completed, failed or disposed of.
///
/// ```
/// use fanline::{Subject, stream::Closed};
/// use futures::SinkExt;
///
/// # futures::executor::block_on(async {
/// let mut s = Subject::<u32>::new();
/// s.complete();
/// assert_eq!(s.send(1).await, Err(Closed));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the subject has ended")
    }
}

impl std::error::Error for Closed {}

/// Emits what it is sent, at once: a producer is always ready and has nothing to flush. Closing it
/// completes the subject; the producer then emits nothing more, and sending is an error.
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
/// As the producer's own methods: when an observer did, after everybody else has got the value.
impl<T, E, P: Policy, L: Entry<T, E>> Sink<T> for Producer<T, E, P, L> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(if self.has_ended() {
            Err(Closed)
        } else {
            Ok(())
        })
    }

    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        if self.has_ended() {
            return Err(Closed);
        }
        self.get_mut().next(value);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if !self.has_ended() {
            self.get_mut().complete_in_place();
        }
        Poll::Ready(Ok(()))
    }
}

// No value is pinned in it: they move on to the subject.
impl<T, E, P: Policy, L: Entry<T, E>> Unpin for Producer<T, E, P, L> {}

macro_rules! sink {
    ($name:ident, $handle:ty) => {
        /// Emits what it is sent: a subject is always ready and has nothing to flush. Closing it
        /// completes the subject, for all its handles. Sending to a subject that has ended is an error.
        impl<T, E> Sink<T> for $handle
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            type Error = Closed;

            fn poll_ready(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), Closed>> {
                Poll::Ready(if self.has_ended() {
                    Err(Closed)
                } else {
                    Ok(())
                })
            }

            fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
                // Asked for in `poll_ready`; ended since, the subject ignores the value.
                $name::next(&self, value);
                Ok(())
            }

            fn poll_flush(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), Closed>> {
                Poll::Ready(Ok(()))
            }

            fn poll_close(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<Result<(), Closed>> {
                $name::complete(&self);
                Poll::Ready(Ok(()))
            }
        }
    };
}

sink!(Subject, Subject<T, E>);
sink!(Subject, &Subject<T, E>);
sink!(BehaviorSubject, BehaviorSubject<T, E>);
sink!(BehaviorSubject, &BehaviorSubject<T, E>);
sink!(AsyncSubject, AsyncSubject<T, E>);
sink!(AsyncSubject, &AsyncSubject<T, E>);
sink!(ReplaySubject, ReplaySubject<T, E>);
sink!(ReplaySubject, &ReplaySubject<T, E>);
