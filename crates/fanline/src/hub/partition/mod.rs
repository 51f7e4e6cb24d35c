//! The partition hub: one producer, and each element for one consumer, whom a partitioner chooses.
//!
//! Each consumer has a queue of its own, in which it is the only reader and whoever has the [turn](turn)
//! the only writer; elements that nobody was chosen for yet are *pending* ([router]). Usually it is the
//! producer who has the turn, for the time of one element. A consumer that comes, goes, or makes room
//! that was waited for writes that down and asks for the turn; if another has it, that one does it
//! ([shared]). So the partitioner sees elements in order, one at a time, and never under a lock; neither
//! does any waker, clone or drop.

mod consumers;
mod lane;
#[cfg(all(test, fanline_loom))]
mod models;
mod options;
mod receiver;
mod router;
mod sender;
mod shared;
mod turn;

use std::fmt;
use std::sync::Arc;

pub use consumers::{Consumer, Consumers, ConsumersIter};
pub use options::{FullConsumer, LeftElements, PartitionOptions, Partitioner};
pub use receiver::PartitionReceiver;
pub use sender::PartitionSender;

use super::broadcast::{KillSwitch, Switch};
use super::{BoxError, OptionsError};
use options::check;
use shared::Shared;

/// A hub of `capacity` elements in all, with a stateless partitioner: it is given the number of
/// consumers and an element, and answers with a consumer's index in the order in which they came. A
/// negative index drops the element.
///
/// While there is no consumer, elements are kept, and the partitioner is asked when there is one.
///
/// ```
/// # futures::executor::block_on(async {
/// let (mut tx, hub) = fanline::hub::partition::<i64>(256, |count, value| value % count as i64);
/// let (mut even, mut odd) = (hub.subscribe(), hub.subscribe());
/// for value in 1..=4 {
///     tx.send(value).await?;
/// }
/// drop(tx);
/// assert_eq!(even.next().await, Some(2));
/// assert_eq!(even.next().await, Some(4));
/// assert_eq!(even.next().await, None);
/// assert_eq!(odd.next().await, Some(1));
/// # Ok::<(), fanline::hub::SendError<i64>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// When `capacity` is 0 or more than [`CAPACITY_MAX`](super::CAPACITY_MAX). Later, in the call that
/// has the partitioner choose, when it answers with an index that there is not.
pub fn partition<T>(
    capacity: usize,
    choose: impl FnMut(usize, &T) -> i64 + Send + 'static,
) -> (PartitionSender<T>, PartitionHub<T>) {
    let options = PartitionOptions {
        capacity,
        ..PartitionOptions::default()
    };
    partition_with(options, Partitioner::by_index(choose))
}

/// A hub of `capacity` elements in all, with a partitioner that knows the consumers: who they are, and
/// how many elements wait for each. It answers with a consumer's id; a negative one drops the element.
///
/// ```
/// // Whoever has the least to do gets the next element.
/// let (mut tx, hub) = fanline::hub::partition_stateful::<u32>(64, |consumers, _| {
///     consumers.iter().min_by_key(|consumer| consumer.queued).unwrap().id
/// });
/// let (mut a, mut b) = (hub.subscribe(), hub.subscribe());
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!((a.try_recv().unwrap(), b.try_recv().unwrap()), (1, 2));
/// ```
///
/// # Panics
///
/// As [`partition`].
pub fn partition_stateful<T>(
    capacity: usize,
    choose: impl FnMut(&Consumers, &T) -> i64 + Send + 'static,
) -> (PartitionSender<T>, PartitionHub<T>) {
    let options = PartitionOptions {
        capacity,
        ..PartitionOptions::default()
    };
    partition_with(options, Partitioner::by_id(choose))
}

/// A hub with these options.
///
/// # Panics
///
/// When an option is out of its range; the message names it. [`try_partition_with`] gives an error
/// instead.
pub fn partition_with<T>(
    options: PartitionOptions,
    partitioner: Partitioner<T>,
) -> (PartitionSender<T>, PartitionHub<T>) {
    partition_with_error(options, partitioner)
}

/// A hub with these options that fails with errors of the type `E`.
///
/// # Panics
///
/// As [`partition_with`].
pub fn partition_with_error<T, E>(
    options: PartitionOptions,
    partitioner: Partitioner<T>,
) -> (PartitionSender<T, E>, PartitionHub<T, E>) {
    match try_partition_with(options, partitioner) {
        Ok(ends) => ends,
        Err(error) => panic!("{error}"),
    }
}

/// A hub with these options.
///
/// # Errors
///
/// When an option is out of its range; the error names it.
#[expect(
    clippy::type_complexity,
    reason = "two ends, each with the type of what goes through it"
)]
pub fn try_partition_with<T, E>(
    options: PartitionOptions,
    partitioner: Partitioner<T>,
) -> Result<(PartitionSender<T, E>, PartitionHub<T, E>), OptionsError> {
    check(&options)?;
    let shared = Arc::new(Shared::new(options, partitioner));
    Ok((
        PartitionSender::new(shared.clone()),
        PartitionHub { shared },
    ))
}

/// Where consumers come from; see [`partition`]. Clones are handles of the same hub.
///
/// When all handles and receivers are gone, the hub is closed for its producer.
pub struct PartitionHub<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> PartitionHub<T, E> {
    /// A new consumer, the last in order.
    pub fn subscribe(&self) -> PartitionReceiver<T, E> {
        PartitionReceiver::new(self.shared.clone())
    }

    /// How many consumers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers()
    }

    /// Who they are now. How many elements wait for each is looked up when it is asked.
    pub fn consumers(&self) -> Consumers {
        self.shared.consumers()
    }

    /// How many elements are in the hub, those included that nobody was chosen for yet.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no element is in the hub.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Something to end the hub with from elsewhere.
    pub fn kill_switch(&self) -> KillSwitch<E>
    where
        T: Send + 'static,
        E: Send + Sync + 'static,
    {
        let shared: Arc<dyn Switch<E>> = self.shared.clone();
        KillSwitch::new(&shared)
    }
}

impl<T, E> Clone for PartitionHub<T, E> {
    fn clone(&self) -> Self {
        self.shared.add_hub();
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, E> Drop for PartitionHub<T, E> {
    fn drop(&mut self) {
        self.shared.remove_hub();
    }
}

impl<T, E> fmt::Debug for PartitionHub<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionHub")
            .field("consumers", &self.consumers())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
