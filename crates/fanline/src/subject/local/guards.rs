//! What the guards of a subject for one thread reach, also on other threads.

use alloc::rc::{Rc, Weak};
use alloc::sync::Arc;
use alloc::vec::Vec;

#[cfg(feature = "std")]
use std::{cell::RefCell, collections::HashMap, thread::ThreadId};

use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// The operations of a guard on a subject of unknown type, on the subject's own thread.
pub(super) trait ByKey {
    fn remove(&self, key: u64);

    fn contains(&self, key: u64) -> bool;
}

#[cfg(feature = "std")]
thread_local! {
    /// The subjects of this thread by number, so that a guard that returns to this thread finds its
    /// subject.
    static SUBJECTS: RefCell<HashMap<u64, Weak<dyn ByKey>>> = RefCell::default();
}

/// The state that the guards of a local subject reach, also on other threads.
pub(super) struct GuardState {
    #[cfg(feature = "std")]
    home: Home,
    any_abandoned: AtomicBool,
    /// Read by guards on other threads. Relaxed: the result may be outdated when the guard uses it.
    pub(super) has_ended: AtomicBool,
    abandoned: Mutex<Vec<u64>>,
}

/// The thread of a subject, and the subject's number there.
#[cfg(feature = "std")]
struct Home {
    thread: ThreadId,
    number: u64,
}

#[cfg(feature = "std")]
impl GuardState {
    /// Whether a guard on the thread of the subject finds it. Otherwise, all guards leave their keys in
    /// `abandoned`, because threads cannot be distinguished.
    pub(super) const FINDS_SUBJECT: bool = true;

    pub(super) fn register(subject: Weak<dyn ByKey>) -> Arc<Self> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        // Relaxed: the number only has to be unique.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        SUBJECTS.with_borrow_mut(|subjects| subjects.insert(number, subject));
        let thread = std::thread::current().id();
        Arc::new(Self {
            home: Home { thread, number },
            any_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            abandoned: Mutex::new(Vec::new()),
        })
    }

    /// Removes the subject from the table of its thread. The subject calls this, because the last reference to
    /// this state may be dropped on another thread.
    pub(super) fn unregister(&self) {
        // Fails only if the thread is ending and has dropped `SUBJECTS`.
        let _ = SUBJECTS.try_with(|subjects| subjects.borrow_mut().remove(&self.home.number));
    }

    /// Returns the subject, if this is its thread and it still exists.
    fn find(&self) -> Option<Rc<dyn ByKey>> {
        if std::thread::current().id() != self.home.thread {
            return None;
        }
        let number = self.home.number;
        SUBJECTS
            .try_with(|subjects| subjects.borrow().get(&number).and_then(Weak::upgrade))
            .ok()
            .flatten()
    }
}

#[cfg(not(feature = "std"))]
impl GuardState {
    pub(super) const FINDS_SUBJECT: bool = false;

    pub(super) fn register(_subject: Weak<dyn ByKey>) -> Arc<Self> {
        Arc::new(Self {
            any_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            abandoned: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn unregister(&self) {}

    fn find(&self) -> Option<Rc<dyn ByKey>> {
        None
    }
}

impl GuardState {
    #[inline]
    pub(super) fn has_abandoned(&self) -> bool {
        // Relaxed: the keys themselves are read under the lock. If this load misses the flag, the next emission
        // removes those observers.
        self.any_abandoned.load(Ordering::Relaxed)
    }

    pub(super) fn take_abandoned(&self) -> Vec<u64> {
        let mut abandoned = lock(&self.abandoned);
        self.any_abandoned.store(false, Ordering::Relaxed);
        core::mem::take(&mut *abandoned)
    }
}

impl Registry for GuardState {
    fn remove(&self, key: u64) {
        if let Some(subject) = self.find() {
            subject.remove(key);
        } else {
            let mut abandoned = lock(&self.abandoned);
            abandoned.push(key);
            self.any_abandoned.store(true, Ordering::Relaxed);
        }
    }

    fn contains(&self, key: u64) -> bool {
        match self.find() {
            Some(subject) => subject.contains(key),
            None => {
                !self.has_ended.load(Ordering::Relaxed) && !lock(&self.abandoned).contains(&key)
            }
        }
    }
}
