//! The partition hub: one producer, and each element for one consumer, which a partitioner chooses.
//!
//! Each consumer has a queue of its own. The consumer is the queue's only reader, and the thread with
//! exclusive [access](combiner) to the router is its only writer. Elements without a chosen consumer are
//! *pending* ([router]). Usually the producer has the access, each time for one element. When a consumer
//! joins, leaves, or makes room that an element waits for, its thread records a change and requests the
//! access. If another thread has the access, that thread applies the change ([shared]). So the partitioner
//! sees elements in order, one at a time. No partitioner, waker, clone, or drop runs under a lock.

mod combiner;
mod consumers;
mod lane;
#[cfg(all(test, fanline_loom))]
mod models;
mod options;
mod receiver;
mod router;
mod sender;
mod shared;

use std::fmt;
use std::sync::Arc;

pub use consumers::{Consumer, Consumers, ConsumersIter};
pub use options::{OnFull, OnLeave, PartitionOptions, Partitioner};
pub use receiver::PartitionReceiver;
pub use sender::{PartitionPermit, PartitionSender};

use super::BoxError;
use super::broadcast::{KillSwitch, Switch};
use shared::Shared;

/// Returns a hub of `capacity` elements in total, with a stateless partitioner. The partitioner gets the
/// number of consumers and an element, and returns the index of a consumer in the order of subscription. A
/// negative index drops the element. [`PartitionHub::options`] sets other options and takes any
/// [`Partitioner`].
///
/// While there is no consumer, elements are stored. The partitioner is called for these elements when a
/// consumer has subscribed.
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
/// If `capacity` is 0 or more than [`CAPACITY_MAX`](super::CAPACITY_MAX). If the partitioner later returns an
/// index out of range, the call that runs it panics.
pub fn partition<T>(
    capacity: usize,
    choose: impl FnMut(usize, &T) -> i64 + Send + 'static,
) -> (PartitionSender<T>, PartitionHub<T>) {
    PartitionOptions::new()
        .capacity(capacity)
        .build(Partitioner::by_index(choose))
}

/// The handle that creates consumers; see [`partition`]. Clones are handles of the same hub.
///
/// When all handles and receivers are dropped, the hub is closed for its producer.
pub struct PartitionHub<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> PartitionHub<T, E> {
    /// Returns a builder of a hub. [`partition`] is shorter for a partitioner that needs only the number of
    /// consumers.
    ///
    /// ```
    /// use fanline::hub::{PartitionHub, Partitioner};
    ///
    /// // The consumer with the shortest queue gets the next element.
    /// let (mut tx, hub) = PartitionHub::<u32>::options()
    ///     .capacity(64)
    ///     .build(Partitioner::least_loaded());
    /// let (mut a, mut b) = (hub.subscribe(), hub.subscribe());
    /// tx.try_send(1).unwrap();
    /// tx.try_send(2).unwrap();
    /// assert_eq!((a.try_recv().unwrap(), b.try_recv().unwrap()), (1, 2));
    /// ```
    pub fn options() -> PartitionOptions<T, E> {
        PartitionOptions::new()
    }

    /// Returns a new consumer, which comes last in the partitioner's order.
    pub fn subscribe(&self) -> PartitionReceiver<T, E> {
        PartitionReceiver::new(self.shared.clone())
    }

    /// Returns the number of consumers.
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers()
    }

    /// Returns the current consumers. Their numbers of queued elements are read on each call.
    pub fn consumers(&self) -> Consumers {
        self.shared.consumers()
    }

    /// Returns the number of elements in the hub, including pending ones without a chosen consumer.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether no element is in the hub.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the hub accepts no more elements.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Returns a handle that can end the hub from any thread.
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
        self.shared.add_handle();
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, E> Drop for PartitionHub<T, E> {
    fn drop(&mut self) {
        self.shared.remove_handle();
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
