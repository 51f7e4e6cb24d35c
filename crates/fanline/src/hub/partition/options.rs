//! What can be chosen about a partition hub, and who chooses.

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
/// tx.try_send(2).unwrap(); // the first has as many as it can have
/// assert_eq!(first.try_recv().unwrap(), 1);
/// assert_eq!(second.try_recv().unwrap(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct PartitionOptions {
    /// How many elements can be in the hub, for all consumers together; from 1 to
    /// [`CAPACITY_MAX`]. 256 by default.
    pub capacity: usize,
    /// How many elements can wait for one consumer; at least 1. `None`, the default, leaves it at
    /// `capacity`: then one consumer that stalls can come to hold everything.
    pub per_consumer: Option<usize>,
    /// What becomes of an element whose consumer has as many as it can have.
    pub full_consumer: FullConsumer,
    /// What becomes of the elements of a consumer that leaves.
    pub left_elements: LeftElements,
    /// Nobody is chosen before so many consumers are there at once; at least 1. Elements are taken
    /// meanwhile, and kept. `None`, the default, is the same as 1.
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

/// What becomes of an element whose consumer has [as many](PartitionOptions::per_consumer) as it can
/// have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullConsumer {
    /// It waits, and all elements after it.
    #[default]
    Wait,
    /// It goes to the consumer that has the fewest; it waits when all have as many as they can have.
    Reroute,
    /// It is dropped.
    Drop,
}

/// What becomes of the elements of a consumer that leaves before it has received them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftElements {
    /// The partitioner is asked again, before it is asked for later elements.
    #[default]
    Reroute,
    /// They are dropped.
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

/// Chooses the consumer of each element. It is never asked while there are none.
///
/// ```
/// use fanline::hub::{PartitionOptions, Partitioner, partition_with};
///
/// // Sessions stick to a consumer as long as the same ones are there.
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
    /// Chooses an index among so many consumers, in the order in which they came. Negative drops the
    /// element.
    pub fn by_index(choose: impl FnMut(usize, &T) -> i64 + Send + 'static) -> Self {
        Self {
            by: By::Index(Box::new(choose)),
        }
    }

    /// Chooses an id. Negative drops the element. What is not asked of the consumers costs nothing, so
    /// this takes the same time however many there are, if the choice does.
    pub fn by_id(choose: impl FnMut(&Consumers, &T) -> i64 + Send + 'static) -> Self {
        Self {
            by: By::Id(Box::new(choose)),
        }
    }

    /// To each in turn.
    pub fn round_robin() -> Self {
        let mut turn = 0_usize;
        Self::by_id(move |consumers, _| {
            let id = consumers.id_at(turn);
            turn = turn.wrapping_add(1);
            id
        })
    }

    /// To whoever has the fewest elements waiting, and among equals to who came first. It looks at all
    /// consumers for each element.
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
