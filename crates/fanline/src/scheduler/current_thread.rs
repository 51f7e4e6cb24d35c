use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::cell::Cell;
use core::ops::ControlFlow;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::task::{self, Task, TaskKey, TaskQueue};
use super::tasks::Tasks;
use super::{Scheduler, Worker};
use crate::sync::{Condvar, Mutex, lock, wait_timeout};
use crate::{Clock, Guard, Precise, Time};

/// A scheduler that runs actions on the thread that schedules them, one after the other: a trampoline.
///
/// The first action runs inside the call that schedules it. Actions that this action schedules are queued.
/// They run after it, in the order of their due times, and before that first call returns. So recursion uses
/// no stack. Delays block the thread. Each thread has its own queue, and all workers on a thread share it.
///
/// If an action panics, the queued actions still run. Then the panic resumes in the first scheduling call.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fanline::{Scheduler, scheduler::CurrentThread};
///
/// let order = Arc::new(Mutex::new(Vec::new()));
/// let outer = order.clone();
/// CurrentThread
///     .schedule(move || {
///         let inner = outer.clone();
///         CurrentThread
///             .schedule(move || inner.lock().unwrap().push("inner"))
///             .detach();
///         outer.lock().unwrap().push("outer");
///     })
///     .detach();
/// assert_eq!(*order.lock().unwrap(), ["outer", "inner"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentThread;

/// The worker of [`CurrentThread`]: a handle for the queue of whichever thread uses the worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentThreadWorker;

thread_local! {
    static TRAMPOLINE: Arc<Trampoline> = Arc::new(Trampoline::new());
    static DRAINING: Cell<bool> = const { Cell::new(false) };
}

/// The queue of one thread. Only that thread runs the queue; guards on other threads remove tasks from it.
struct Trampoline {
    tasks: Mutex<Tasks<CurrentThreadWorker>>,
    cancelled: Condvar,
}

impl Scheduler for CurrentThread {
    type Worker = CurrentThreadWorker;

    fn worker(&self) -> CurrentThreadWorker {
        CurrentThreadWorker
    }

    fn now(&self) -> Time {
        Precise.now()
    }
}

impl Worker for CurrentThreadWorker {
    fn now(&self) -> Time {
        Precise.now()
    }

    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        let trampoline = current();
        let task = task::once(trampoline.task_queue(), state, action);
        trampoline.run(due, task)
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let trampoline = current();
        let due = Precise.now() + period;
        let task = task::periodic(trampoline.task_queue(), due, period, state, action);
        trampoline.run(due, task)
    }

    fn runs_here(&self) -> bool {
        true
    }
}

fn current() -> Arc<Trampoline> {
    TRAMPOLINE.with(Arc::clone)
}

impl Trampoline {
    fn new() -> Self {
        Self {
            tasks: Mutex::new(Tasks::new()),
            cancelled: Condvar::new(),
        }
    }

    fn task_queue(self: &Arc<Self>) -> Weak<dyn TaskQueue> {
        let trampoline: Weak<Self> = Arc::downgrade(self);
        trampoline
    }

    /// Queues a task, and runs the queue unless this thread is running it already.
    fn run(&self, due: Time, (task, guard): task::Scheduled<CurrentThreadWorker>) -> Guard {
        self.push(due, task);
        if DRAINING.replace(true) {
            return guard;
        }
        let draining = Draining;
        let panic = self.drain();
        drop(draining);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        guard
    }

    fn push(&self, due: Time, task: Arc<dyn Task<CurrentThreadWorker>>) {
        let due = due.max(Precise.now());
        let inserted = lock(&self.tasks).insert(due, task);
        drop(inserted);
    }

    /// Runs tasks until the queue is empty. Returns the first panic.
    fn drain(&self) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        while let Some(task) = self.next() {
            match catch_unwind(AssertUnwindSafe(|| task.run(&CurrentThreadWorker))) {
                Ok(Some(due)) => self.push(due, task),
                Ok(None) => {}
                Err(payload) => {
                    panic.get_or_insert(payload);
                }
            }
        }
        panic
    }

    fn next(&self) -> Option<Arc<dyn Task<CurrentThreadWorker>>> {
        let mut tasks = lock(&self.tasks);
        loop {
            let due = tasks.next_due()?;
            let now = Precise.now();
            if let Some((_, task)) = tasks.pop_due(now) {
                return Some(task);
            }
            tasks = wait_timeout(&self.cancelled, tasks, due.since(now));
        }
    }
}

impl TaskQueue for Trampoline {
    fn remove_cancelled(&self, key: &TaskKey) {
        let removed = lock(&self.tasks).remove(key);
        self.cancelled.notify_one();
        drop(removed);
    }
}

/// A guard that exists while this thread runs its queue.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        DRAINING.set(false);
    }
}
