use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::{IntoStream, Latest};
use crate::IntoObservable;

/// The most recent value of a source that cannot fail, as an iterator that does not wait; made by
/// [`most_recent`](crate::ObservableExt::most_recent).
///
/// Each call of `next` returns a clone of the newest value, or of `initial` before the first value. So it
/// returns a value again if no newer one has arrived, and skips values that were replaced meanwhile. After
/// the source has completed or was dropped, the iterator returns a last value that it has not returned yet,
/// and then ends.
///
/// [`most_recent`](crate::ObservableExt::most_recent) subscribes at once; dropping the iterator unsubscribes.
///
/// ```
/// use fanline::ObservableExt;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let mut level = source.most_recent(0);
/// assert_eq!(level.next(), Some(0));
/// tx.next_slice(&[1, 2]);
/// assert_eq!((level.next(), level.next()), (Some(2), Some(2)));
/// tx.complete();
/// assert_eq!(level.next(), None);
/// ```
#[derive(Debug)]
#[must_use = "dropping the iterator unsubscribes"]
pub struct MostRecent<T> {
    value: T,
    newer: IntoStream<T, Latest>,
}

impl<T> MostRecent<T> {
    pub(crate) fn new<S>(source: S, initial: T) -> Self
    where
        S: IntoObservable<Item = T, Error = Infallible>,
        T: Clone + Send + 'static,
    {
        Self {
            value: initial,
            newer: IntoStream::new(source, Latest),
        }
    }

    /// Returns a reference to the newest value, or to `initial` before the first value. After the end, the
    /// last value stays.
    ///
    /// ```
    /// use fanline::ObservableExt;
    ///
    /// let (mut tx, source) = fanline::subject::<String>();
    /// let mut title = source.most_recent("untitled".to_owned());
    /// assert_eq!(title.value(), "untitled");
    /// tx.next("chapter 1".to_owned());
    /// drop(tx);
    /// assert_eq!(title.value(), "chapter 1");
    /// ```
    pub fn value(&mut self) -> &T {
        self.update();
        &self.value
    }

    /// Takes a newer value, if there is one. Returns whether more values may follow, or one was taken.
    fn update(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.newer).poll_next(&mut context) {
            Poll::Ready(Some(value)) => {
                self.value = value;
                true
            }
            Poll::Ready(None) => false,
            Poll::Pending => true,
        }
    }
}

impl<T: Clone> Iterator for MostRecent<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.update().then(|| self.value.clone())
    }
}

impl<T: Clone> std::iter::FusedIterator for MostRecent<T> {}
