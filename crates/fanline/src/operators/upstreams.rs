//! Guards of the subscriptions and scheduled actions of an operator.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, Observer};

/// Stores the guards of an operator's subscriptions and scheduled actions. Each guard is stored until its key
/// is finished, or until all are closed.
///
/// A key is reserved before the subscription and its guard is set afterward, because a source may end during
/// the subscription. `set` and `finish` may come in either order. A guard that is set after its key was
/// finished, or after all were closed, is dropped at once. Guards are dropped outside the lock.
#[derive(Default)]
pub(super) struct Upstreams {
    slots: Mutex<Slots>,
    /// Whether all subscriptions are closed. Sources that emit in a loop read it to stop. Relaxed, because
    /// decisions are made under the lock.
    closed: AtomicBool,
}

#[derive(Default)]
struct Slots {
    closed: bool,
    next_key: u64,
    /// The guards by key. `None` for a key that is reserved, but whose guard is not set yet.
    guards: BTreeMap<u64, Option<Guard>>,
}

impl Upstreams {
    /// Reserves a key for a subscription; `None` if all are closed.
    pub(super) fn reserve(&self) -> Option<u64> {
        let mut slots = lock(&self.slots);
        if slots.closed {
            return None;
        }
        let key = slots.next_key;
        slots.next_key += 1;
        slots.guards.insert(key, None);
        Some(key)
    }

    /// Stores the guard of a key. If the key is already finished, drops the guard and returns `false`.
    pub(super) fn set(&self, key: u64, guard: Guard) -> bool {
        match lock(&self.slots).guards.get_mut(&key) {
            Some(slot) => {
                *slot = Some(guard);
                true
            }
            None => false,
        }
    }

    /// Removes the key and drops its guard. Returns `false` if the guard has not been set; then
    /// [`set`](Self::set) returns `false` to the subscribing thread.
    pub(super) fn finish(&self, key: u64) -> bool {
        let slot = lock(&self.slots).guards.remove(&key);
        matches!(slot, Some(Some(_)))
    }

    /// Removes all keys but one, and drops their guards.
    pub(super) fn close_others(&self, key: u64) {
        let others = {
            let mut slots = lock(&self.slots);
            let retained = slots.guards.remove_entry(&key);
            let others = core::mem::take(&mut slots.guards);
            slots.guards.extend(retained);
            others
        };
        drop(others);
    }

    /// Drops all guards, and each later guard when it is set.
    pub(super) fn close(&self) {
        drop(self.take_all());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn take_all(&self) -> BTreeMap<u64, Option<Guard>> {
        self.closed.store(true, Ordering::Relaxed);
        let mut slots = lock(&self.slots);
        slots.closed = true;
        core::mem::take(&mut slots.guards)
    }

    pub(super) fn close_and_wait(&self) {
        self.take_all()
            .into_values()
            .flatten()
            .for_each(Guard::wait_and_close);
    }

    /// Returns a guard that drops all stored guards.
    pub(super) fn guard(self: &Arc<Self>) -> Guard {
        Guard::registered(Arc::clone(self) as Arc<dyn Registry>, 0)
    }
}

impl Registry for Upstreams {
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        self.close_and_wait();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}

/// An observer that closes the upstreams when its source ends. After the upstreams were closed, the observer
/// reports that it is closed.
pub(super) struct UntilClosed<O> {
    pub(super) observer: O,
    pub(super) upstreams: Arc<Upstreams>,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for UntilClosed<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.observer.next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.observer.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.observer.error(error);
        self.upstreams.close();
    }

    fn complete(&mut self) {
        self.observer.complete();
        self.upstreams.close();
    }

    fn is_closed(&self) -> bool {
        self.upstreams.is_closed() || self.observer.is_closed()
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Upstreams;
    use crate::Guard;

    fn counted(drops: &Arc<AtomicU32>) -> Guard {
        let drops = Arc::clone(drops);
        Guard::new(move || {
            drops.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[test]
    fn guard_is_dropped_when_key_finishes_before_or_after_set() {
        let drops = Arc::new(AtomicU32::new(0));
        let upstreams = Upstreams::default();
        let early = upstreams.reserve().unwrap();
        assert!(!upstreams.finish(early), "no guard yet");
        assert!(!upstreams.set(early, counted(&drops)));
        assert_eq!(drops.load(Ordering::Relaxed), 1);

        let late = upstreams.reserve().unwrap();
        assert!(upstreams.set(late, counted(&drops)));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(upstreams.finish(late));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn close_drops_present_and_later_guards() {
        let drops = Arc::new(AtomicU32::new(0));
        let upstreams = Upstreams::default();
        let (there, coming) = (upstreams.reserve().unwrap(), upstreams.reserve().unwrap());
        assert!(upstreams.set(there, counted(&drops)));
        upstreams.close();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(!upstreams.set(coming, counted(&drops)));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
        assert_eq!(upstreams.reserve(), None);
    }

    #[test]
    fn close_others_drops_all_but_one() {
        let drops = Arc::new(AtomicU32::new(0));
        let upstreams = Upstreams::default();
        let keys: Vec<u64> = (0..3).map(|_| upstreams.reserve().unwrap()).collect();
        for &key in &keys {
            assert!(upstreams.set(key, counted(&drops)));
        }
        upstreams.close_others(keys[1]);
        assert_eq!(drops.load(Ordering::Relaxed), 2);
        assert!(upstreams.finish(keys[1]), "still present");
    }
}
