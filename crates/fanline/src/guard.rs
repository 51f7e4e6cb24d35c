//! Subscriptions as values: [`Guard`].

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;

/// A subscription or a scheduled action. Dropping it unsubscribes.
///
/// Unsubscribing is idempotent and works from any thread and from inside the observer's own callback. It does
/// not wait: when it returns, a call of the observer that another thread has begun, or is about to make, may
/// still run. No later value is delivered. To wait for the end of such a call, use
/// [`unsubscribe_and_wait`](Guard::unsubscribe_and_wait). The observer is dropped at once if nothing is being
/// emitted. Otherwise the emission in progress drops the observer, or at the latest the next emission.
///
/// ```
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source.subscribe(|value| println!("{value}"));
/// assert!(tx.has_observers());
/// drop(guard);
/// assert!(!tx.has_observers());
///
/// source.subscribe(|value| println!("{value}")).detach();
/// tx.next(1); // printed: the subscription outlives its guard
/// ```
#[must_use = "dropping a guard unsubscribes; call `detach` to keep the subscription"]
#[derive(Default)]
pub struct Guard {
    parts: Parts,
}

#[derive(Default)]
enum Parts {
    /// Nothing to undo.
    #[default]
    Closed,
    /// A registration with a weak reference to the registry. A source owns its observers, and an operator's
    /// guard may be inside such an observer. A strong reference would make this a cycle.
    Registered {
        registry: Weak<dyn Registry>,
        key: u64,
    },
    /// A registration with a strong reference to the registry. Only for a registry that drops the user's
    /// values even while guards exist.
    Joined {
        registry: Arc<dyn Registry>,
        key: u64,
    },
    Action(Box<dyn FnOnce() + Send + Sync>),
    Many(Vec<Guard>),
}

/// A set of registrations, each under a key that is never reused.
pub(crate) trait Registry: Send + Sync {
    /// Undoes the registration, if it still exists.
    fn remove(&self, key: u64);

    /// Undoes the registration for a guard with a strong reference to the registry, and releases the
    /// reference.
    fn remove_last(self: Arc<Self>, key: u64) {
        self.remove(key);
    }

    /// Undoes the registration, and waits until calls of the observer that are in progress on other threads
    /// have returned. The default implementation does not wait.
    fn remove_and_wait(&self, key: u64) {
        self.remove(key);
    }

    /// Returns whether the registration still exists.
    fn contains(&self, key: u64) -> bool;
}

impl Guard {
    /// Returns a guard with nothing to undo, for a subscription that is already over.
    pub const fn closed() -> Self {
        Self {
            parts: Parts::Closed,
        }
    }

    /// Returns a guard that runs `action` once, when it is dropped or unsubscribed.
    pub fn new(action: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self {
            parts: Parts::Action(Box::new(action)),
        }
    }

    pub(crate) fn registered(registry: Arc<dyn Registry>, key: u64) -> Self {
        let registry = Arc::downgrade(&registry);
        Self {
            parts: Parts::Registered { registry, key },
        }
    }

    pub(crate) fn joined(registry: Arc<dyn Registry>, key: u64) -> Self {
        Self {
            parts: Parts::Joined { registry, key },
        }
    }

    /// Unsubscribes, like dropping the guard.
    pub fn unsubscribe(self) {
        drop(self);
    }

    /// Unsubscribes, and returns when no call of the observer is running on another thread.
    ///
    /// Blocks for as long as a call in progress takes. From inside the observer itself, or from inside
    /// another observer of the same emission, it returns at once, because it cannot wait for its own caller.
    /// Do not call it while holding a lock that the observer takes. For a guard made by [`Guard::new`], this
    /// only runs the guard's action.
    #[cfg(feature = "std")]
    pub fn unsubscribe_and_wait(self) {
        self.wait_and_close();
    }

    pub(crate) fn wait_and_close(mut self) {
        match core::mem::take(&mut self.parts) {
            Parts::Registered { registry, key } => {
                if let Some(registry) = registry.upgrade() {
                    registry.remove_and_wait(key);
                }
            }
            Parts::Joined { registry, key } => registry.remove_and_wait(key),
            Parts::Many(guards) => guards.into_iter().for_each(Self::wait_and_close),
            Parts::Action(action) => action(),
            Parts::Closed => {}
        }
    }

    /// Consumes the guard without unsubscribing: the subscription lasts until its source ends.
    pub fn detach(mut self) {
        match core::mem::take(&mut self.parts) {
            Parts::Many(guards) => guards.into_iter().for_each(Self::detach),
            Parts::Closed | Parts::Registered { .. } | Parts::Joined { .. } | Parts::Action(_) => {}
        }
    }

    /// Adds a subscription that is unsubscribed together with this one.
    pub fn add(&mut self, child: Guard) {
        match &mut self.parts {
            Parts::Many(guards) => guards.push(child),
            Parts::Closed => *self = child,
            Parts::Registered { .. } | Parts::Joined { .. } | Parts::Action(_) => {
                let own = core::mem::take(self);
                self.parts = Parts::Many(vec![own, child]);
            }
        }
    }

    /// Returns whether the subscription is over: the source has ended or has dropped the observer. A guard
    /// made by [`Guard::new`] is never closed.
    pub fn is_closed(&self) -> bool {
        match &self.parts {
            Parts::Closed => true,
            Parts::Registered { registry, key } => registry
                .upgrade()
                .is_none_or(|registry| !registry.contains(*key)),
            Parts::Joined { registry, key } => !registry.contains(*key),
            Parts::Action(_) => false,
            Parts::Many(guards) => guards.iter().all(Self::is_closed),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        match core::mem::take(&mut self.parts) {
            Parts::Registered { registry, key } => {
                if let Some(registry) = registry.upgrade() {
                    registry.remove(key);
                }
            }
            Parts::Joined { registry, key } => registry.remove_last(key),
            Parts::Action(action) => action(),
            // Each part unsubscribes when it is dropped.
            Parts::Many(_) | Parts::Closed => {}
        }
    }
}

impl core::fmt::Debug for Guard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Guard")
            .field("closed", &self.is_closed())
            .finish()
    }
}
