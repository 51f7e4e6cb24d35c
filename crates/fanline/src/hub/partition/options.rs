//! Options of a partition hub, and partitioners.

use std::fmt;

use super::consumers::Consumers;
use crate::hub::{CAPACITY_MAX, OptionsError};

/// Options of [`partition_with`](crate::hub::partition_with).
///
/// ```
/// use fanline::hub::{FullConsumer, PartitionOptions, Partitioner, partition_with};
///
/// let (mut tx, hub) = partition_with::<u64>(
///     PartitionOptions {
///         per_consumer: Some(1),
///         full_consumer: FullConsumer::Reroute,
///         ..PartitionOptions::default()
///     },
///     Partitioner::by_index(|_, _| 0),
/// );
/// let (mut first, mut second) = (hub.subscribe(), hub.subscribe());
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap(); // the queue of the first is full
/// assert_eq!(first.try_recv().unwrap(), 1);
/// assert_eq!(second.try_recv().unwrap(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct PartitionOptions {
    /// Largest number of elements in the hub, for all consumers together; from 1 to [`CAPACITY_MAX`]. The
    /// default is 256.
    pub capacity: usize,
    /// Number of elements that can be queued for one consumer; at least 1. `None`, the default, means
    /// `capacity`. With `None`, one stalled consumer can fill the whole hub.
    pub per_consumer: Option<usize>,
    /// Treatment of an element whose consumer's queue is full.
    pub full_consumer: FullConsumer,
    /// Treatment of the elements of a consumer that leaves.
    pub left_elements: LeftElements,
    /// Number of consumers, at least 1, that must be subscribed at the same time before elements are routed.
    /// Until then elements are accepted and stored. `None`, the default, means 1.
    pub start_after: Option<usize>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        Self {
            capacity: 256,
            per_consumer: None,
            full_consumer: FullConsumer::Wait,
            left_elements: LeftElements::Reroute,
            start_after: None,
        }
    }
}

/// The treatment of an element whose consumer's queue is [full](PartitionOptions::per_consumer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullConsumer {
    /// The element waits for room, and all later elements wait until it has room.
    #[default]
    Wait,
    /// The element goes to the consumer with the shortest queue. If all queues are full, it waits.
    Reroute,
    /// The element is dropped.
    Drop,
}

/// The treatment of elements that are queued for a consumer when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftElements {
    /// Reroutes the elements: the partitioner chooses again for each of them, before it chooses for later
    /// elements.
    #[default]
    Reroute,
    /// The elements are dropped.
    Drop,
}

pub(super) fn check(options: &PartitionOptions) -> Result<(), OptionsError> {
    OptionsError::check_range("capacity", options.capacity, 1, CAPACITY_MAX)?;
    if let Some(count) = options.per_consumer {
        OptionsError::check_range("per_consumer", count, 1, CAPACITY_MAX)?;
    }
    if let Some(count) = options.start_after {
        OptionsError::check_range("start_after", count, 1, usize::MAX)?;
    }
    Ok(())
}

/// The function that chooses the consumer of each element. It is not called while there is no consumer.
///
/// ```
/// use fanline::hub::{PartitionOptions, Partitioner, partition_with};
///
/// // A session stays with one consumer as long as the set of consumers does not change.
/// let by_session = Partitioner::by_id(|consumers, session: &u64| {
///     consumers.id_at(usize::try_from(*session).unwrap_or(0))
/// });
/// let (mut tx, hub) = partition_with(PartitionOptions::default(), by_session);
/// let (mut even, mut odd) = (hub.subscribe(), hub.subscribe());
/// tx.try_send(3).unwrap();
/// assert!(even.try_recv().is_err());
/// assert_eq!(odd.try_recv().unwrap(), 3);
/// ```
pub struct Partitioner<T> {
    pub(super) by: By<T>,
}

pub(super) enum By<T> {
    Index(Choose<T>),
    Id(ChooseAmong<T>),
}

type Choose<T> = Box<dyn FnMut(usize, &T) -> i64 + Send>;
type ChooseAmong<T> = Box<dyn FnMut(&Consumers, &T) -> i64 + Send>;

impl<T> Partitioner<T> {
    /// Returns a partitioner that chooses an index. It gets the number of consumers and an element, and
    /// returns the index of a consumer in the order of subscription. A negative index drops the element.
    pub fn by_index(choose: impl FnMut(usize, &T) -> i64 + Send + 'static) -> Self {
        Self {
            by: By::Index(Box::new(choose)),
        }
    }

    /// Returns a partitioner that chooses an id. It gets the consumers and an element. A negative id drops
    /// the element. Each query of the consumers takes constant time, however many consumers there are.
    pub fn by_id(choose: impl FnMut(&Consumers, &T) -> i64 + Send + 'static) -> Self {
        Self {
            by: By::Id(Box::new(choose)),
        }
    }

    /// Returns a partitioner that chooses each consumer in turn.
    pub fn round_robin() -> Self {
        let mut next = 0_usize;
        Self::by_id(move |consumers, _| {
            let id = consumers.id_at(next);
            next = next.wrapping_add(1);
            id
        })
    }

    /// Returns a partitioner that chooses the consumer with the fewest queued elements. Among equals it
    /// chooses the one that subscribed first. It reads the counts of all consumers for each element.
    pub fn least_loaded() -> Self {
        Self::by_id(|consumers, _| {
            let least = consumers.iter().min_by_key(|consumer| consumer.queued);
            least.map_or(-1, |consumer| consumer.id)
        })
    }
}

impl<T> fmt::Debug for Partitioner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioner").finish_non_exhaustive()
    }
}
