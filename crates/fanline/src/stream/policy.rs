//! Policies for a consumer that is slower than its source.

use super::queue::{Rule, WhenFull};

/// The capacity of the queue between a source and the consumer of its stream, and what happens when the queue
/// is full; see [`stream`](crate::stream#choose-a-policy). Sealed: only the policies of this module implement
/// it.
pub trait OverflowPolicy: Rules {
    /// The item of the stream for a source of `T`.
    type Item<T>;

    #[doc(hidden)]
    fn item<T>(event: Event<T>) -> Option<Self::Item<T>>;
}

pub(super) mod sealed {
    /// Seals [`OverflowPolicy`](super::OverflowPolicy).
    pub trait Rules {
        #[doc(hidden)]
        fn rule(&self) -> Rule;
    }

    /// The rule of a queue.
    #[derive(Clone, Copy, Debug)]
    pub struct Rule(pub(in crate::stream) super::Rule);

    /// An event in a queue for its consumer.
    #[derive(Debug)]
    pub enum Event<T> {
        Value(T),
        /// At this position, values are missing. Contains their number.
        Lost(u64),
        /// The queue overflowed; nothing follows.
        Overflow,
    }
}

use sealed::{Event, Rules};

/// Queues all values: no value is lost, and the source never waits. The queue grows as long as the consumer
/// is slower than the source.
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

/// Queues only the last value: a newer one replaces it.
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
    /// Makes the stream also yield [`Lagged`] before a value that replaced others.
    pub fn report_lag(self) -> ReportLag<Self> {
        ReportLag(self)
    }
}

/// A queue with a capacity. The names of the constructors say what happens when the queue is full.
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
    /// Blocks the source while the queue is full. Nothing is lost, but the source's call of `next` blocks its
    /// thread, and so delays all other observers of the source. The source continues when the consumer has
    /// polled and about half of the capacity is free, or when the stream is dropped.
    ///
    /// The consumer must therefore not run on the source's thread; on a single-threaded executor it would
    /// deadlock. Values that are available at the subscription (retained values, an iterator's items) are all
    /// queued, even beyond the capacity, because the consumer cannot read them yet.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn block(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::Block))
    }

    /// When the queue is full, drops the oldest queued value and queues the new one.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_oldest(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::DropOldest))
    }

    /// When the queue is full, drops the new value.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_newest(capacity: usize) -> Self {
        Self(Rule::bounded(capacity, WhenFull::DropNewest))
    }

    /// Unsubscribes when the queue overflows: the stream yields the queued values, then [`Overflow`], and
    /// ends.
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

    /// Makes the stream also yield [`Lagged`] where values are missing.
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

/// A queue with a capacity that ends the stream when it overflows; made by [`Bounded::fail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailWhenFull(Rule);

/// A policy that drops values like `P` and reports them; made by [`Bounded::report_lag`] and
/// [`Latest::report_lag`].
///
/// The stream yields one [`Lagged`] at each position where values are missing. A [`Lagged`] does not end the
/// stream: later values follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLag<P>(P);

/// The number of values that are missing at this position, because the consumer was too slow for its policy.
/// The stream continues with the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lagged(pub u64);

impl std::fmt::Display for Lagged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the consumer lagged behind and missed {} values", self.0)
    }
}

impl std::error::Error for Lagged {}

/// The last item of a stream with [`Bounded::fail`] whose queue was full when a value arrived.
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

impl OverflowPolicy for Unbounded {
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

impl OverflowPolicy for Latest {
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

impl OverflowPolicy for Bounded {
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

impl OverflowPolicy for FailWhenFull {
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

impl<P: Rules> OverflowPolicy for ReportLag<P> {
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
