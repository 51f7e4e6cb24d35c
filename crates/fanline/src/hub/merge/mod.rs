//! The merge hub: any number of producers at any time, and one consumer of all their elements.
//!
//! Producers append to one [list], in the order of arrival, and the consumer reads it; neither takes a lock.
//! Each producer has a [lane], which counts its appended and taken elements and so bounds them.
//! [Permits](permits) bound the total of all producers. A lock protects the set of producers ([shared]). It
//! is not taken to send or receive an element, and no waker, clone, or drop runs under it.

mod lane;
mod list;
#[cfg(all(test, fanline_loom))]
mod models;
mod options;
mod permits;
mod receiver;
mod sender;
mod shared;

use std::fmt;
use std::sync::Arc;

pub use options::MergeOptions;
pub use receiver::MergeReceiver;
pub use sender::{MergePermit, MergeSender};

use super::BoxError;
use super::broadcast::{KillSwitch, Switch};
use shared::Shared;

/// Returns a hub that queues up to `per_producer` elements of each producer. [`MergeHub::options`] sets other
/// options.
///
/// Elements of one producer stay in order; elements of several producers are in the order of arrival. A
/// producer that completes, fails, or is dropped leaves the hub, which continues for the other producers. The
/// consumer's stream ends when the hub is [drained](MergeHub::drain) or killed, or when all producers and
/// handles are dropped.
///
/// ```
/// # futures::executor::block_on(async {
/// let (hub, mut rx) = fanline::hub::merge::<u64>(16);
/// let (mut a, mut b) = (hub.producer(), hub.producer());
/// a.send(1).await?;
/// b.send(2).await?;
/// drop(b);
/// a.send(3).await?;
/// hub.drain(); // no new producers; ends after the current ones
/// drop(a);
/// assert_eq!(rx.next().await, Some(1));
/// assert_eq!(rx.next().await, Some(2));
/// assert_eq!(rx.next().await, Some(3));
/// assert_eq!(rx.next().await, None);
/// # Ok::<(), fanline::hub::SendError<u64>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// If `per_producer` is 0 or more than [`CAPACITY_MAX`](super::CAPACITY_MAX).
pub fn merge<T>(per_producer: usize) -> (MergeHub<T>, MergeReceiver<T>) {
    MergeOptions::new().per_producer(per_producer).build()
}

/// The handle that creates producers; see [`merge`]. Clones are handles of the same hub.
///
/// ```
/// let (hub, mut rx) = fanline::hub::merge::<u64>(16);
/// let (mut good, bad) = (hub.producer(), hub.producer());
/// bad.fail("broken"); // other producers continue
/// good.try_send(1).unwrap();
/// assert_eq!(rx.try_recv().unwrap(), 1);
/// assert_eq!(hub.producer_count(), 1);
/// assert_eq!(hub.last_failure().unwrap().to_string(), "broken");
/// ```
pub struct MergeHub<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> MergeHub<T, E> {
    /// Returns a builder of a hub. [`merge`] is shorter if only `per_producer` is set.
    ///
    /// ```
    /// use fanline::hub::MergeHub;
    ///
    /// let (hub, mut rx) = MergeHub::<u64>::options().per_producer(4).total(100).build();
    /// hub.producer().try_send(1).unwrap();
    /// assert_eq!(rx.try_recv().unwrap(), 1);
    /// ```
    pub fn options() -> MergeOptions<T, E> {
        MergeOptions::new()
    }

    /// Returns a new producer. If the hub has ended or is draining, the producer is closed, and every send
    /// returns an error that contains the element.
    pub fn producer(&self) -> MergeSender<T, E> {
        MergeSender::new(self.shared.clone())
    }

    /// Accepts no new producers. The consumer's stream ends when the current producers have left and every
    /// element was received.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Returns a handle that can end the hub from any thread. If the handle completes the hub, the consumer
    /// still receives queued elements. If the handle fails the hub, queued elements are dropped. In both
    /// cases the producers are closed.
    pub fn kill_switch(&self) -> KillSwitch<E>
    where
        T: Send + 'static,
        E: Send + Sync + 'static,
    {
        let shared: Arc<dyn Switch<E>> = self.shared.clone();
        KillSwitch::new(&shared)
    }

    /// Returns the number of producers.
    pub fn producer_count(&self) -> usize {
        self.shared.producers()
    }

    /// Returns the number of queued elements. Takes time proportional to the number of producers.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether no element is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the error of the last producer that failed.
    pub fn last_failure(&self) -> Option<Arc<E>> {
        self.shared.last_failure()
    }

    /// Returns whether the hub accepts no more elements from any producer.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl<T, E> Clone for MergeHub<T, E> {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, E> Drop for MergeHub<T, E> {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl<T, E> fmt::Debug for MergeHub<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeHub")
            .field("producer_count", &self.producer_count())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
