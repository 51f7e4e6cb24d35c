//! Tasks: actions with their state, which their guards can cancel.

use alloc::sync::{Arc, Weak};
use core::ops::ControlFlow;
use core::time::Duration;
use std::thread::ThreadId;

use super::tasks::Key;
use crate::guard::Registry;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};
use crate::{Guard, Time};

/// A queued action, for a worker of type `W`. One allocation holds the action, its state, and the data of its
/// guard.
pub(super) trait Task<W>: Send + Sync {
    /// Runs the action, unless it was cancelled. Returns the due time of the next run.
    fn run(&self, worker: &W) -> Option<Time>;

    /// Returns whether the task was cancelled or is complete.
    fn is_cancelled(&self) -> bool;

    /// Returns the key under which the task is queued.
    fn key(&self) -> &TaskKey;
}

/// The queue of tasks that have not run yet. Implementations remove a task under their lock, and drop it
/// after they have released the lock.
pub(super) trait TaskQueue: Send + Sync {
    /// Drops the entry of a cancelled task, if it still exists. Reads `key` under the queue's lock, because
    /// the key of a periodic task changes.
    fn remove_cancelled(&self, key: &TaskKey);
}

/// A task and the guard that cancels it.
pub(super) type Scheduled<W> = (Arc<dyn Task<W>>, Guard);

/// Returns an action that runs once.
pub(super) fn once<W, S, A>(task_queue: Weak<dyn TaskQueue>, state: S, action: A) -> Scheduled<W>
where
    S: Send + 'static,
    A: FnOnce(S, &W) + Send + 'static,
{
    let task = Arc::new(Once(Slot::new(task_queue, (state, action))));
    let guard = Guard::registered(Arc::<Once<S, A>>::clone(&task), 0);
    (task, guard)
}

/// Returns an action that runs periodically, first at `due`.
pub(super) fn periodic<W, S, A>(
    task_queue: Weak<dyn TaskQueue>,
    due: Time,
    period: Duration,
    state: S,
    action: A,
) -> Scheduled<W>
where
    S: Send + 'static,
    A: FnMut(&mut S, &W) -> ControlFlow<()> + Send + 'static,
{
    let work = Periodically { state, action, due };
    let task = Arc::new(Periodic {
        slot: Slot::new(task_queue, work),
        period,
    });
    let guard = Guard::registered(Arc::<Periodic<S, A>>::clone(&task), 0);
    (task, guard)
}

struct Once<S, A>(Slot<(S, A)>);

impl<W, S, A> Task<W> for Once<S, A>
where
    S: Send,
    A: FnOnce(S, &W) + Send,
{
    fn run(&self, worker: &W) -> Option<Time> {
        let (state, action) = self.0.begin()?;
        let running = Running(&self.0);
        action(state, worker);
        drop(running);
        None
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_empty()
    }

    fn key(&self) -> &TaskKey {
        &self.0.key
    }
}

impl<S: Send, A: Send> Registry for Once<S, A> {
    fn remove(&self, _key: u64) {
        self.0.cancel();
    }

    fn remove_and_wait(&self, _key: u64) {
        self.0.cancel();
        self.0.wait_until_over();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.0.is_empty()
    }
}

struct Periodic<S, A> {
    slot: Slot<Periodically<S, A>>,
    period: Duration,
}

struct Periodically<S, A> {
    state: S,
    action: A,
    /// Due time of the next run; it does not depend on how late the previous run was.
    due: Time,
}

impl<W, S, A> Task<W> for Periodic<S, A>
where
    S: Send,
    A: FnMut(&mut S, &W) -> ControlFlow<()> + Send,
{
    fn run(&self, worker: &W) -> Option<Time> {
        let mut work = self.slot.begin()?;
        let running = Running(&self.slot);
        let flow = (work.action)(&mut work.state, worker);
        if flow.is_break() {
            return None;
        }
        work.due = work.due + self.period;
        let due = work.due;
        running.finish(work).then_some(due)
    }

    fn is_cancelled(&self) -> bool {
        self.slot.is_empty()
    }

    fn key(&self) -> &TaskKey {
        &self.slot.key
    }
}

impl<S: Send, A: Send> Registry for Periodic<S, A> {
    fn remove(&self, _key: u64) {
        self.slot.cancel();
    }

    fn remove_and_wait(&self, _key: u64) {
        self.slot.cancel();
        self.slot.wait_until_over();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.slot.is_empty()
    }
}

/// The state of a task until the task is complete or cancelled.
struct Slot<C> {
    work: Mutex<Work<C>>,
    over: Condvar,
    task_queue: Weak<dyn TaskQueue>,
    key: TaskKey,
}

/// The key under which a task is queued. Accessed under the queue's lock, so Relaxed suffices.
pub(super) struct TaskKey {
    due: AtomicU64,
    sequence: AtomicU64,
}

impl TaskKey {
    fn new() -> Self {
        Self {
            due: AtomicU64::new(0),
            sequence: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn set(&self, (due, sequence): Key) {
        self.due.store(due.as_nanos(), Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Key {
        (
            Time::from_nanos(self.due.load(Ordering::Relaxed)),
            self.sequence.load(Ordering::Relaxed),
        )
    }
}

enum Work<C> {
    Waiting(C),
    Running { thread: ThreadId, cancelled: bool },
    Over,
}

impl<C> Slot<C> {
    fn new(task_queue: Weak<dyn TaskQueue>, content: C) -> Self {
        Self {
            work: Mutex::new(Work::Waiting(content)),
            over: Condvar::new(),
            task_queue,
            key: TaskKey::new(),
        }
    }

    fn begin(&self) -> Option<C> {
        let running = Work::Running {
            thread: std::thread::current().id(),
            cancelled: false,
        };
        let mut work = lock(&self.work);
        match core::mem::replace(&mut *work, Work::Over) {
            Work::Waiting(content) => {
                *work = running;
                Some(content)
            }
            other => {
                *work = other;
                None
            }
        }
    }

    fn cancel(&self) {
        let mut work = lock(&self.work);
        let content = match core::mem::replace(&mut *work, Work::Over) {
            Work::Waiting(content) => content,
            Work::Running { thread, .. } => {
                *work = Work::Running {
                    thread,
                    cancelled: true,
                };
                return;
            }
            Work::Over => return,
        };
        drop(work);
        if let Some(task_queue) = self.task_queue.upgrade() {
            task_queue.remove_cancelled(&self.key);
        }
        drop(content);
    }

    /// Waits until a run in progress is over. Does not wait if the run is on the calling thread.
    fn wait_until_over(&self) {
        let current = std::thread::current().id();
        let mut work = lock(&self.work);
        while matches!(&*work, Work::Running { thread, .. } if *thread != current) {
            work = wait(&self.over, work);
        }
    }

    fn is_empty(&self) -> bool {
        !matches!(
            &*lock(&self.work),
            Work::Waiting(_)
                | Work::Running {
                    cancelled: false,
                    ..
                }
        )
    }
}

/// A guard for a run in progress. If it is dropped before [`finish`](Self::finish), for example by a panic of
/// the action, the task ends.
struct Running<'a, C>(&'a Slot<C>);

impl<C> Running<'_, C> {
    /// Ends a run of a periodic task. Returns false if the task was cancelled in the meantime.
    fn finish(self, content: C) -> bool {
        let mut work = lock(&self.0.work);
        if let Work::Running {
            cancelled: false, ..
        } = &*work
        {
            *work = Work::Waiting(content);
            return true;
        }
        drop(work);
        drop(content);
        false
    }
}

impl<C> Drop for Running<'_, C> {
    fn drop(&mut self) {
        let mut work = lock(&self.0.work);
        if matches!(&*work, Work::Running { .. }) {
            *work = Work::Over;
        }
        drop(work);
        self.0.over.notify_all();
    }
}
