//! What is held for a consumer that is slower than its source.

use super::queue::{Rule, WhenFull};

/// How much waits between a source and the consumer of its stream, and what happens when that is
/// exceeded; see [`stream`](crate::stream#which-policy-do-i-want). Implemented by the policies of this module
/// alone.
pub trait Policy: Rules {
    /// What the stream yields for a source of `T`.
    type Item<T>;

    #[doc(hidden)]
    fn item<T>(event: Event<T>) -> Option<Self::Item<T>>;
}

pub(super) mod sealed {
    /// Keeps [`Policy`](super::Policy) to this module's own types.
    pub trait Rules {
        #[doc(hidden)]
        fn rule(&self) -> Rule;
    }

    /// How a queue behaves.
    #[derive(Clone, Copy, Debug)]
    pub struct Rule(pub(in crate::stream) super::Rule);

    /// What a queue has for its consumer.
    #[derive(Debug)]
    pub enum Event<T> {
        Value(T),
        /// So many values are missing here.
        Lost(u64),
        /// The queue was full and may not be; nothing follows.
        Overflow,
    }
}

use sealed::{Event, Rules};

/// Holds everything: nothing is lost and nobody waits. Memory is bounded only by how far the consumer
/// lags behind.
///
/// ```
/// use fanline::{ObservableExt, stream::Unbounded};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let stream = source.into_stream(Unbounded);
/// (0..1000).for_each(|value| tx.next(value));
/// tx.complete();
/// assert_eq!(stream.blocking_iter().count(), 1000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unbounded;

/// Holds the last value that the consumer has not seen: a newer one takes its place.
///
/// ```
/// use fanline::{ObservableExt, stream::Latest};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let mut stream = source.into_stream(Latest);
/// tx.next(1);
/// tx.next(2);
/// assert_eq!(stream.blocking_next(), Some(2));
/// assert_eq!(stream.lost(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latest;

impl Latest {
    /// Also yields [`Lagged`] in front of a value that took the place of others.
    pub fn report_lag(self) -> ReportLag<Self> {
        ReportLag(self)
    }
}

/// Holds at most so many values that the consumer has not seen, and does when there are more what the
/// constructor's name says.
///
/// ```
/// use fanline::{ObservableExt, stream::Bounded};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let oldest = source.clone().into_stream(Bounded::drop_oldest(2));
/// let newest = source.into_stream(Bounded::drop_newest(2));
/// tx.next_slice(&[1, 2, 3]);
/// tx.complete();
/// assert_eq!(oldest.blocking_iter().collect::<Vec<_>>(), [2, 3]);
/// assert_eq!(newest.blocking_iter().collect::<Vec<_>>(), [1, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded(Rule);

impl Bounded {
    /// The source waits while the queue is full: nothing is lost, and the call of `next` blocks its
    /// thread, and with it every other observer of the source, until the consumer has come for more and
    /// about half of the capacity is free, or has dropped the stream.
    ///
    /// The consumer must therefore be on another thread than the source; on a single-threaded executor
    /// it would wait for itself. What a source has ready when it is subscribed (retained values, an
    /// iterator's items) is taken whole, because the consumer cannot be there yet.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn block(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::Block))
    }

    /// The oldest value in the queue is dropped for the new one.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_oldest(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::DropOldest))
    }

    /// The new value is dropped while the queue is full.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_newest(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::DropNewest))
    }

    /// The stream unsubscribes, yields what it holds and then [`Overflow`], and ends.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::{Bounded, Overflow}};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let stream = source.into_stream(Bounded::fail(2));
    /// tx.next_slice(&[1, 2, 3]);
    /// assert_eq!(
    ///     stream.blocking_iter().collect::<Vec<_>>(),
    ///     [Ok(1), Ok(2), Err(Overflow)]
    /// );
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn fail(capacity: usize) -> FailWhenFull {
        FailWhenFull(Rule::bounded(capacity, WhenFull::Fail))
    }

    /// Also yields [`Lagged`] where values are missing.
    ///
    /// ```
    /// use fanline::{ObservableExt, stream::{Bounded, Lagged}};
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let stream = source.into_stream(Bounded::drop_oldest(2).report_lag());
    /// tx.next_slice(&[1, 2, 3, 4]);
    /// tx.complete();
    /// assert_eq!(
    ///     stream.blocking_iter().collect::<Vec<_>>(),
    ///     [Err(Lagged(2)), Ok(3), Ok(4)]
    /// );
    /// ```
    pub fn report_lag(self) -> ReportLag<Self> {
        ReportLag(self)
    }
}

/// Holds at most so many values and ends the stream when there are more; made by [`Bounded::fail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailWhenFull(Rule);

/// Drops as `P` does, and says so: made by [`Bounded::report_lag`] and [`Latest::report_lag`].
///
/// [`Lagged`] comes where the values are missing, and one stands for all that are missing in one
/// place. It is not an end: the values after it follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLag<P>(P);

/// So many values are missing here, because the consumer was too slow for its policy. The stream goes
/// on with the value after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lagged(pub u64);

impl std::fmt::Display for Lagged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the consumer lagged behind and missed {} values", self.0)
    }
}

impl std::error::Error for Lagged {}

/// The queue of a stream with [`Bounded::fail`] was full when a value arrived. It is the last item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overflow;

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the consumer was too slow and the queue of its stream is full")
    }
}

impl std::error::Error for Overflow {}

impl Rules for Unbounded {
    fn rule(&self) -> sealed::Rule {
        sealed::Rule(Rule::UNBOUNDED)
    }
}

impl Policy for Unbounded {
    type Item<T> = T;

    fn item<T>(event: Event<T>) -> Option<T> {
        only_value(event)
    }
}

impl Rules for Latest {
    fn rule(&self) -> sealed::Rule {
        sealed::Rule(Rule::bounded(1, WhenFull::DropOldest))
    }
}

impl Policy for Latest {
    type Item<T> = T;

    fn item<T>(event: Event<T>) -> Option<T> {
        only_value(event)
    }
}

impl Rules for Bounded {
    fn rule(&self) -> sealed::Rule {
        sealed::Rule(self.0)
    }
}

impl Policy for Bounded {
    type Item<T> = T;

    fn item<T>(event: Event<T>) -> Option<T> {
        only_value(event)
    }
}

impl Rules for FailWhenFull {
    fn rule(&self) -> sealed::Rule {
        sealed::Rule(self.0)
    }
}

impl Policy for FailWhenFull {
    type Item<T> = Result<T, Overflow>;

    fn item<T>(event: Event<T>) -> Option<Result<T, Overflow>> {
        match event {
            Event::Value(value) => Some(Ok(value)),
            Event::Overflow => Some(Err(Overflow)),
            Event::Lost(_) => None,
        }
    }
}

impl<P: Rules> Rules for ReportLag<P> {
    fn rule(&self) -> sealed::Rule {
        self.0.rule()
    }
}

impl<P: Rules> Policy for ReportLag<P> {
    type Item<T> = Result<T, Lagged>;

    fn item<T>(event: Event<T>) -> Option<Result<T, Lagged>> {
        match event {
            Event::Value(value) => Some(Ok(value)),
            Event::Lost(count) => Some(Err(Lagged(count))),
            Event::Overflow => None,
        }
    }
}

fn only_value<T>(event: Event<T>) -> Option<T> {
    match event {
        Event::Value(value) => Some(value),
        Event::Lost(_) | Event::Overflow => None,
    }
}
