//! Handles that neither send nor receive: `BroadcastHub` creates consumers, and `KillSwitch` ends a hub.

use std::fmt;
use std::sync::{Arc, Weak};

use super::options::{BroadcastOptions, Start};
use super::receiver::BroadcastReceiver;
use super::shared::Shared;
use crate::hub::{BoxError, Ended, HubError};

/// The handle that creates consumers; see [`broadcast`](super::broadcast()). Clones are handles of the same
/// hub.
///
/// When all handles and receivers are dropped, no consumer can subscribe any more, and the hub is closed for
/// its producer.
///
/// ```
/// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let rx = hub.subscribe();
/// tx.try_send(1).unwrap();
/// assert_eq!(hub.receiver_count(), 1);
/// assert_eq!(hub.lags(), [(rx.id(), 1)]);
/// drop((hub, rx));
/// assert!(tx.is_closed());
/// ```
pub struct BroadcastHub<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> BroadcastHub<T, E> {
    /// Returns a builder of a hub. [`broadcast`](super::broadcast()) is shorter if only the capacity is set.
    ///
    /// ```
    /// use fanline::hub::{BroadcastHub, Start};
    ///
    /// let (mut tx, hub) = BroadcastHub::<u64>::options()
    ///     .capacity(64)
    ///     .start(Start::Latest)
    ///     .build();
    /// tx.try_send(1).unwrap();
    /// assert!(hub.subscribe().try_recv().is_err());
    ///
    /// // The second type is the one of the producer's error.
    /// let (mut tx, hub) = BroadcastHub::<u64, i32>::options().build();
    /// tx.fail(7);
    /// # drop(hub);
    /// ```
    pub fn options() -> BroadcastOptions<T, E> {
        BroadcastOptions::new()
    }

    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self { shared }
    }

    /// Returns a new consumer, which starts where the hub's options say. If the hub has completed, the
    /// consumer gets the elements that are still stored, and then the completion. If the hub has failed, it
    /// gets only the error.
    pub fn subscribe(&self) -> BroadcastReceiver<T, E> {
        self.subscribe_at(self.shared.rules.start)
    }

    /// Returns a new consumer that starts at `start`.
    pub fn subscribe_at(&self, start: Start) -> BroadcastReceiver<T, E> {
        BroadcastReceiver::new(self.shared.clone(), start)
    }

    /// Returns the number of consumers.
    pub fn receiver_count(&self) -> usize {
        self.shared.consumers()
    }

    /// Returns the [`id`](BroadcastReceiver::id) of each consumer, and the number of elements that it is
    /// behind.
    pub fn lags(&self) -> Vec<(u64, usize)> {
        self.shared.lags()
    }

    /// Returns whether the hub has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Returns the number of elements that the hub can store.
    pub fn capacity(&self) -> usize {
        self.shared.rules.capacity
    }

    /// Returns a handle that can end the hub from any thread.
    pub fn kill_switch(&self) -> KillSwitch<E>
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static,
    {
        let shared: Arc<dyn Switch<E>> = self.shared.clone();
        KillSwitch::new(&shared)
    }
}

impl<T, E> Clone for BroadcastHub<T, E> {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, E> Drop for BroadcastHub<T, E> {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl<T, E> fmt::Debug for BroadcastHub<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastHub")
            .field("capacity", &self.capacity())
            .field("receiver_count", &self.receiver_count())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

/// A handle that ends a hub of any kind from any thread. Clones end the same hub. The handle does not keep
/// the hub alive.
///
/// Elements that the producer is sending at that moment may reach only some of the consumers.
///
/// ```
/// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let mut rx = hub.subscribe();
/// let switch = hub.kill_switch();
/// tx.try_send(1).unwrap();
/// assert!(switch.fail("enough"));
/// assert!(tx.try_send(2).is_err());
/// assert_eq!(rx.blocking_recv(), None); // a failure overtakes elements
/// assert_eq!(rx.error().unwrap().to_string(), "the producer failed: enough");
/// ```
pub struct KillSwitch<E = BoxError> {
    hub: Weak<dyn Switch<E>>,
}

/// A hub that can be ended.
pub(crate) trait Switch<E>: Send + Sync {
    fn end(&self, end: Ended<E>) -> bool;
    fn is_closed(&self) -> bool;
}

impl<T: Send + Sync, E: Send + Sync> Switch<E> for Shared<T, E> {
    fn end(&self, end: Ended<E>) -> bool {
        Self::end(self, end)
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

impl<E> KillSwitch<E> {
    pub(crate) fn new(hub: &Arc<dyn Switch<E>>) -> Self {
        Self {
            hub: Arc::downgrade(hub),
        }
    }

    /// Completes the hub: the hub accepts no more elements, and consumers still receive the elements that
    /// were sent. Returns whether this call ended the hub.
    pub fn complete(&self) -> bool {
        self.hub
            .upgrade()
            .is_some_and(|hub| hub.end(Ended::Completed))
    }

    /// Fails the hub: the hub accepts no more elements, and consumers receive no more. Returns whether this
    /// call ended the hub.
    pub fn fail(&self, error: impl Into<E>) -> bool {
        let error = HubError::Failed(Arc::new(error.into()));
        self.hub
            .upgrade()
            .is_some_and(|hub| hub.end(Ended::Error(error)))
    }

    /// Returns whether the hub has ended or has been dropped.
    pub fn is_closed(&self) -> bool {
        self.hub.upgrade().is_none_or(|hub| hub.is_closed())
    }
}

impl<E> Clone for KillSwitch<E> {
    fn clone(&self) -> Self {
        Self {
            hub: self.hub.clone(),
        }
    }
}

impl<E> fmt::Debug for KillSwitch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KillSwitch").finish_non_exhaustive()
    }
}
