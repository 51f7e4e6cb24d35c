//! Options of a partition hub, and partitioners.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::consumers::Consumers;
use super::shared::Shared;
use super::{PartitionHub, PartitionSender};
use crate::Scheduler;
use crate::hub::timer::Timer;
use crate::hub::{BoxError, CAPACITY_MAX, OptionsError};

/// A builder of a partition hub; see [`PartitionHub::options`].
///
/// ```
/// use fanline::hub::{OnFull, PartitionHub, Partitioner};
///
/// let (mut tx, hub) = PartitionHub::<u64>::options()
///     .per_consumer(1)
///     .on_full(OnFull::Reroute)
///     .build(Partitioner::by_index(|_, _| 0));
/// let (mut first, mut second) = (hub.subscribe(), hub.subscribe());
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap(); // the queue of the first is full
/// assert_eq!(first.try_recv().unwrap(), 1);
/// assert_eq!(second.try_recv().unwrap(), 2);
/// ```
#[must_use = "options do nothing until `build` is called"]
pub struct PartitionOptions<T, E = BoxError> {
    rules: Rules,
    types: PhantomData<fn() -> (T, E)>,
}

/// The options of a hub.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) capacity: usize,
    pub(super) per_consumer: Option<usize>,
    pub(super) on_full: OnFull,
    pub(super) on_leave: OnLeave,
    pub(super) start_after: Option<usize>,
    pub(super) timer: Timer,
}

impl<T, E> PartitionOptions<T, E> {
    pub(super) fn new() -> Self {
        Self {
            rules: Rules {
                capacity: 256,
                per_consumer: None,
                on_full: OnFull::default(),
                on_leave: OnLeave::default(),
                start_after: None,
                timer: Timer::default(),
            },
            types: PhantomData,
        }
    }

    /// Sets the largest number of elements in the hub, for all consumers together; from 1 to
    /// [`CAPACITY_MAX`]. The default is 256.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.rules.capacity = capacity;
        self
    }

    /// Sets the number of elements that can be queued for one consumer; from 1 to [`CAPACITY_MAX`]. The
    /// default is the hub's capacity. Then one stalled consumer can fill the whole hub.
    pub fn per_consumer(mut self, count: usize) -> Self {
        self.rules.per_consumer = Some(count);
        self
    }

    /// Sets the treatment of an element whose consumer's queue is full. The default is
    /// [`OnFull::Wait`].
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.rules.on_full = on_full;
        self
    }

    /// Sets the treatment of the elements of a consumer that leaves. The default is
    /// [`OnLeave::Reroute`].
    pub fn on_leave(mut self, on_leave: OnLeave) -> Self {
        self.rules.on_leave = on_leave;
        self
    }

    /// Sets the number of consumers, at least 1, that must be subscribed at the same time before elements are
    /// routed. Until then elements are accepted and stored. The default is 1.
    pub fn start_after(mut self, consumers: usize) -> Self {
        self.rules.start_after = Some(consumers);
        self
    }

    /// Sets the scheduler whose time the `_timeout` methods use. The default is the process's
    /// [`ThreadPool`](crate::scheduler::ThreadPool), which starts on first use.
    pub fn scheduler(mut self, scheduler: impl Scheduler) -> Self {
        self.rules.timer = Timer::on(scheduler);
        self
    }

    /// Builds the hub.
    ///
    /// # Panics
    ///
    /// If an option is out of range; the message names it. [`try_build`](Self::try_build) returns an error
    /// instead.
    pub fn build(self, partitioner: Partitioner<T>) -> (PartitionSender<T, E>, PartitionHub<T, E>) {
        match self.try_build(partitioner) {
            Ok(ends) => ends,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the hub, or returns an error.
    ///
    /// # Errors
    ///
    /// If an option is out of range; the error names it.
    #[expect(
        clippy::type_complexity,
        reason = "two ends, each with its element and error type"
    )]
    pub fn try_build(
        self,
        partitioner: Partitioner<T>,
    ) -> Result<(PartitionSender<T, E>, PartitionHub<T, E>), OptionsError> {
        self.rules.check()?;
        let shared = Arc::new(Shared::new(self.rules, partitioner));
        Ok((
            PartitionSender::new(shared.clone()),
            PartitionHub { shared },
        ))
    }
}

impl<T, E> Clone for PartitionOptions<T, E> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            types: PhantomData,
        }
    }
}

impl<T, E> fmt::Debug for PartitionOptions<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartitionOptions")
            .field(&self.rules)
            .finish()
    }
}

/// The treatment of an element whose consumer's queue is [full](PartitionOptions::per_consumer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// The element waits for room, and all later elements wait until it has room.
    #[default]
    Wait,
    /// The element goes to the consumer with the shortest queue. If all queues are full, it waits.
    Reroute,
    /// The element is dropped, although the consumer's queue has older elements.
    DropNewest,
}

/// The treatment of elements that are queued for a consumer when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLeave {
    /// Reroutes the elements: the partitioner chooses again for each of them, before it chooses for later
    /// elements.
    #[default]
    Reroute,
    /// The elements are dropped.
    Drop,
}

impl Rules {
    fn check(&self) -> Result<(), OptionsError> {
        OptionsError::check_range("capacity", self.capacity, 1, CAPACITY_MAX)?;
        if let Some(count) = self.per_consumer {
            OptionsError::check_range("per_consumer", count, 1, CAPACITY_MAX)?;
        }
        if let Some(count) = self.start_after {
            OptionsError::check_range("start_after", count, 1, usize::MAX)?;
        }
        Ok(())
    }
}

/// The function that chooses the consumer of each element. It is not called while there is no consumer.
///
/// ```
/// use fanline::hub::{PartitionHub, Partitioner};
///
/// // A session stays with one consumer as long as the set of consumers does not change.
/// let by_session = Partitioner::by_id(|consumers, session: &u64| {
///     consumers.id_at(usize::try_from(*session).unwrap_or(0))
/// });
/// let (mut tx, hub) = PartitionHub::<u64>::options().build(by_session);
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
