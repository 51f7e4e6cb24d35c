//! An observer that sends to a broadcast hub, for the end of a chain of operators.

use super::sender::BroadcastSender;
use crate::hub::BoxError;
use crate::{Guard, IntoObservable, Observable, Observer};

impl<T, E> BroadcastSender<T, E> {
    /// Sends to the hub every value that an observable (a subject or a chain of operators) emits, and its
    /// completion or error.
    ///
    /// An observable can wait only by blocking: its thread blocks while the hub is full. So either no
    /// consumer may depend on that thread, or the hub must never make its producer wait
    /// ([`OnSlow::DropOldest`](super::OnSlow::DropOldest) with
    /// [`OnEmpty::Drop`](super::OnEmpty::Drop)). When the hub is closed, the source is
    /// unsubscribed.
    ///
    /// ```
    /// let (mut subject, source) = fanline::subject::<u32>();
    /// let (tx, hub) = fanline::hub::broadcast::<u32>(16);
    /// let mut rx = hub.subscribe();
    /// let guard = tx.attach_source(source);
    /// subject.next(1);
    /// subject.complete();
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// # drop(guard);
    /// ```
    pub fn attach_source<S>(self, source: S) -> Guard
    where
        S: IntoObservable<Item = T>,
        S::Error: Clone + Into<E>,
        T: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
    {
        source.into_observable().subscribe_with(Feed(self))
    }
}

/// A hub's producer as an observer.
struct Feed<T, E = BoxError>(BroadcastSender<T, E>);

impl<T: Clone, E, X: Clone + Into<E>> Observer<T, X> for Feed<T, E> {
    fn next(&mut self, value: &T) {
        Observer::<T, X>::next_owned(self, value.clone());
    }

    fn next_owned(&mut self, value: T) {
        // If the hub is closed, the source finds out through `is_closed`.
        let _ = self.0.blocking_send(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        for value in values {
            if self.0.blocking_feed(value.clone()).is_err() {
                return;
            }
        }
        self.0.flush();
    }

    fn error(&mut self, error: &X) {
        self.0.fail(error.clone());
    }

    fn complete(&mut self) {
        self.0.complete();
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
