//! Operators: observables made of observables.

mod map;

pub use map::Map;

use std::convert::Infallible;

use crate::stream::{FirstValue, IntoStream, LastValue, Policy, TryIntoStream};
use crate::{BoxObservable, IntoObservable, Observable};

/// The operators, on everything that can be turned into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // Each group of methods stands under its heading, alphabetically where nothing else decides.

    // -- Transforming

    /// Emits what `f` makes of each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    // -- Filtering

    // -- Folding

    // -- Combining

    // -- Errors

    // -- Time

    // -- Threads

    // -- Multicast

    // -- Looking on

    // -- Other shapes

    /// Hides the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }

    /// The values as an asynchronous stream, which holds between the source and its consumer what
    /// `policy` says; see [`stream`](crate::stream) for the choice. Subscribes at once; dropping the
    /// stream unsubscribes.
    ///
    /// The stream ends after the source's completion, and when the source goes away without one.
    /// [`try_into_stream`](ObservableExt::try_into_stream) is for sources that can fail.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let mut stream = source.into_stream(Unbounded);
    /// tx.next(1);
    /// tx.next(2);
    /// tx.complete();
    /// # futures::executor::block_on(async move {
    /// assert_eq!(stream.next().await, Some(1));
    /// assert_eq!(stream.next().await, Some(2));
    /// assert_eq!(stream.next().await, None);
    /// # });
    /// ```
    fn into_stream<P>(self, policy: P) -> IntoStream<Self::Item, P>
    where
        Self: IntoObservable<Error = Infallible>,
        Self::Item: Clone + Send + 'static,
        P: Policy,
    {
        IntoStream::new(self, policy)
    }

    /// [`into_stream`](ObservableExt::into_stream) for a source that can fail: what the source emits
    /// comes as `Ok`, its error as the last item.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::Unbounded};
    ///
    /// let subject = fanline::Subject::<u32, &str>::with_error();
    /// let mut stream = subject.clone().try_into_stream(Unbounded);
    /// subject.next(1);
    /// subject.error("gone");
    /// assert_eq!(stream.blocking_next(), Some(Ok(1)));
    /// assert_eq!(stream.blocking_next(), Some(Err("gone")));
    /// assert_eq!(stream.blocking_next(), None);
    /// ```
    fn try_into_stream<P>(self, policy: P) -> TryIntoStream<Self::Item, Self::Error, P>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
        P: Policy,
    {
        TryIntoStream::new(self, policy)
    }

    /// A future of the first value: `Ok(None)` when the source ends without one. Subscribes at once
    /// and unsubscribes with the first value; dropping the future unsubscribes too.
    ///
    /// ```
    /// use fanline::ObservableExt;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let first = source.first_value();
    /// tx.next(7);
    /// tx.next(8);
    /// # futures::executor::block_on(async move {
    /// let Ok(value) = first.await; // the source cannot fail
    /// assert_eq!(value, Some(7));
    /// # });
    /// ```
    fn first_value(self) -> FirstValue<Self::Item, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FirstValue::new(self)
    }

    /// A future of the last value: ready when the source ends, `Ok(None)` when it ends without a
    /// value. Subscribes at once; dropping the future unsubscribes. Keeps one value and takes no lock
    /// per value.
    ///
    /// ```
    /// use fanline::ObservableExt;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let last = source.last_value();
    /// tx.next(7);
    /// tx.next(8);
    /// tx.complete();
    /// assert_eq!(last.blocking_wait(), Ok(Some(8)));
    /// ```
    fn last_value(self) -> LastValue<Self::Item, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        LastValue::new(self)
    }
}

impl<S: IntoObservable> ObservableExt for S {}
