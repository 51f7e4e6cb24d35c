//! What the guards of a subject for one thread reach, also on other threads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread::ThreadId;

use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// The operations of a guard on a subject of unknown type, on the subject's own thread.
pub(super) trait ByKey {
    fn remove(&self, key: u64);

    fn contains(&self, key: u64) -> bool;
}

thread_local! {
    /// The subjects of this thread by number, so that a guard that returns to this thread finds its
    /// subject.
    static SUBJECTS: RefCell<HashMap<u64, Weak<dyn ByKey>>> = RefCell::default();
}

/// The state that the guards of a local subject reach, also on other threads.
pub(super) struct GuardState {
    thread: ThreadId,
    number: u64,
    pub(super) any_abandoned: AtomicBool,
    /// Read by guards on other threads. Relaxed: the result may be outdated when the guard uses it.
    pub(super) has_ended: AtomicBool,
    abandoned: Mutex<Vec<u64>>,
}

impl GuardState {
    pub(super) fn register(subject: Weak<dyn ByKey>) -> Arc<Self> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        // Relaxed: the number only has to be unique.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        SUBJECTS.with_borrow_mut(|subjects| subjects.insert(number, subject));
        Arc::new(Self {
            thread: std::thread::current().id(),
            number,
            any_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            abandoned: Mutex::new(Vec::new()),
        })
    }

    /// Removes the subject from the table of its thread. The subject calls this, because the last reference to
    /// this state may be dropped on another thread.
    pub(super) fn unregister(&self) {
        // Fails only if the thread is ending and has dropped `SUBJECTS`.
        let _ = SUBJECTS.try_with(|subjects| subjects.borrow_mut().remove(&self.number));
    }

    /// Returns the subject, if this is its thread and it still exists.
    fn find(&self) -> Option<Rc<dyn ByKey>> {
        if std::thread::current().id() != self.thread {
            return None;
        }
        SUBJECTS
            .try_with(|subjects| subjects.borrow().get(&self.number).and_then(Weak::upgrade))
            .ok()
            .flatten()
    }

    pub(super) fn take_abandoned(&self) -> Vec<u64> {
        let mut abandoned = lock(&self.abandoned);
        self.any_abandoned.store(false, Ordering::Relaxed);
        std::mem::take(&mut *abandoned)
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
