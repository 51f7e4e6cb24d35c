//! Handles that are no end: for subscribing, and for ending from elsewhere.

use std::fmt;
use std::sync::{Arc, Weak};

use super::options::Start;
use super::receiver::BroadcastReceiver;
use super::shared::Shared;
use crate::hub::{BoxError, Ended, HubError};

/// Where consumers come from; see [`broadcast`](super::broadcast()). Clones are handles of the same
/// hub.
///
/// When all handles and receivers are gone, nobody can come again, and the hub is closed for its
/// producer.
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
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        Self { shared }
    }

    /// A new consumer, which begins where the hub's options say. After the hub has completed it gets
    /// what the others have not all received, and the end; after a failure, that.
    pub fn subscribe(&self) -> BroadcastReceiver<T, E> {
        self.subscribe_at(self.shared.rules.start)
    }

    /// A new consumer, which begins there.
    pub fn subscribe_at(&self, start: Start) -> BroadcastReceiver<T, E> {
        BroadcastReceiver::new(self.shared.clone(), start)
    }

    /// How many consumers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.consumers()
    }

    /// How many elements each consumer is behind, with its [`id`](BroadcastReceiver::id).
    pub fn lags(&self) -> Vec<(u64, usize)> {
        self.shared.lags()
    }

    /// Whether the hub has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// How many elements the hub can keep.
    pub fn capacity(&self) -> usize {
        self.shared.rules.capacity
    }

    /// Something to end the hub with from elsewhere.
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

/// Ends a hub from elsewhere, whatever hub it is. Clones end the same one; keeping it keeps nothing
/// else.
///
/// Elements that the producer is sending at that moment reach some consumers or none.
///
/// ```
/// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let mut rx = hub.subscribe();
/// let switch = hub.kill_switch();
/// tx.try_send(1).unwrap();
/// assert!(switch.fail("enough"));
/// assert!(tx.try_send(2).is_err());
/// assert_eq!(rx.blocking_recv(), None); // a failure overtakes
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

    /// Completes the hub: nothing more is taken, and what was sent is received. Returns whether it had
    /// not ended before.
    pub fn complete(&self) -> bool {
        self.hub
            .upgrade()
            .is_some_and(|hub| hub.end(Ended::Completed))
    }

    /// Fails the hub: nothing more is taken or received. Returns whether it had not ended before.
    pub fn fail(&self, error: impl Into<E>) -> bool {
        let error = HubError::Failed(Arc::new(error.into()));
        self.hub
            .upgrade()
            .is_some_and(|hub| hub.end(Ended::Error(error)))
    }

    /// Whether the hub has ended, or is gone.
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
