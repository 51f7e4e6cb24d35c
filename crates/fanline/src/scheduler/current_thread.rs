use std::any::Any;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::task::{self, Place, Task, Timetable};
use super::tasks::Tasks;
use super::{Scheduler, Worker};
use crate::sync::{Condvar, Mutex, lock, wait_timeout};
use crate::{Clock, Guard, Precise, Time};

/// Runs actions on the thread that schedules them, one after the other: a trampoline.
///
/// The first action runs inside the call that schedules it. What actions schedule meanwhile is queued
/// and runs after them, by due time, before that first call returns; delays block the thread. So
/// recursion costs no stack. Each thread has a queue of its own, and workers are only a name for the
/// queue of the thread that uses them.
///
/// When an action panics, what is queued still runs; then the panic goes on, out of the first call.
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

/// The lane of [`CurrentThread`]: a name for the queue of the thread that uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentThreadWorker;

thread_local! {
    static TRAMPOLINE: Arc<Trampoline> = Arc::new(Trampoline::new());
    static DRAINING: Cell<bool> = const { Cell::new(false) };
}

/// The queue of a thread. Only that thread runs it; guards reach it from others.
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
        let task = task::once(trampoline.timetable(), state, action);
        trampoline.run(due, task)
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let trampoline = current();
        let due = Precise.now() + period;
        let task = task::periodic(trampoline.timetable(), due, period, state, action);
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

    fn timetable(self: &Arc<Self>) -> Weak<dyn Timetable> {
        let trampoline: Weak<Self> = Arc::downgrade(self);
        trampoline
    }

    /// Queues the task, and runs the queue unless that goes on already.
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

    /// Runs until the queue is empty; gives back the first panic.
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

impl Timetable for Trampoline {
    fn forget(&self, place: &Place) {
        let removed = lock(&self.tasks).remove(place);
        self.cancelled.notify_one();
        drop(removed);
    }
}

/// The queue of this thread is being run.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        DRAINING.set(false);
    }
}
