//! Workers that run on a single thread: those of [`NewThread`](super::NewThread) and
//! [`EventLoop`](super::EventLoop). A *lane* is the serial queue of such a worker.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::ops::ControlFlow;
use core::time::Duration;
use std::thread::ThreadId;

use super::Worker;
use super::panics::PanicHook;
use super::task::{self, Task, TaskKey, TaskQueue};
use super::tasks::Tasks;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, wait, wait_timeout};
use crate::{Clock, Guard, Precise, Time};

/// A worker whose actions all run on one thread. With [`NewThread`](super::NewThread), each worker has a
/// thread of its own. With [`EventLoop`](super::EventLoop), all workers use the loop's thread.
pub struct ThreadWorker {
    lane: Arc<Lane>,
    /// Whether this handle keeps the lane alive. The handle that actions get does not keep it alive.
    counted: bool,
}

/// The configuration of a lane.
pub(super) struct Config {
    pub(super) driver: Driver,
    pub(super) on_panic: PanicHook,
}

/// The thread that runs the actions.
pub(super) enum Driver {
    /// A thread that the lane starts when there is an action to run.
    Own {
        name: String,
        /// Time for which an idle thread waits for more actions before it ends. If `None`, the thread waits
        /// without limit.
        idle_max: Option<Duration>,
    },
    /// A thread of the application. The closure notifies it that it must run the lane.
    External(Box<dyn Fn() + Send + Sync>),
}

struct Lane {
    state: Mutex<State>,
    wake: Condvar,
    /// Number of counted handles. The lane's thread checks the count under the lock before it waits, and a
    /// thread that decrements it to zero then takes the lock. So Relaxed suffices for the count.
    handles: AtomicUsize,
    config: Config,
}

struct State {
    tasks: Tasks<ThreadWorker>,
    driver: DriverState,
    thread: Option<ThreadId>,
    shut_down: bool,
}

/// Whether a thread runs the lane, and whether that thread waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DriverState {
    /// The lane has no thread, or the application's thread is not running the lane.
    Absent,
    /// The thread will check for tasks before it waits or leaves.
    Busy,
    Waiting,
}

/// The result of a check for tasks.
enum Found {
    Task(Arc<dyn Task<ThreadWorker>>),
    /// No task is due yet. Contains the due time of the next task.
    NotYet(Option<Time>),
}

impl ThreadWorker {
    pub(super) fn new(config: Config) -> Self {
        let lane = Lane {
            state: Mutex::new(State {
                tasks: Tasks::new(),
                driver: DriverState::Absent,
                thread: None,
                shut_down: false,
            }),
            wake: Condvar::new(),
            handles: AtomicUsize::new(1),
            config,
        };
        Self {
            lane: Arc::new(lane),
            counted: true,
        }
    }

    /// Returns a handle that does not keep the lane alive.
    pub(super) fn uncounted(&self) -> Self {
        Self {
            lane: Arc::clone(&self.lane),
            counted: false,
        }
    }

    /// Drops all queued tasks, and all tasks that are scheduled later.
    pub(super) fn shut_down(&self) {
        let mut state = lock(&self.lane.state);
        state.shut_down = true;
        let dropped = state.tasks.take_all();
        drop(state);
        self.lane.wake_driver();
        drop(dropped);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        lock(&self.lane.state).shut_down
    }

    pub(super) fn queued(&self) -> usize {
        lock(&self.lane.state).tasks.len()
    }

    /// Runs due tasks on the calling thread, and returns the due time of the next task. Panics unwind to the
    /// caller.
    pub(super) fn run_pending(&self) -> Option<Time> {
        let run = ExternalRun::begin(&self.lane);
        // Leave tasks that become due from now on for the next call. Otherwise this call might never return.
        let now = Precise.now();
        loop {
            match run.lane.find(now) {
                Found::Task(task) => self.run(task),
                Found::NotYet(due) => return due,
            }
        }
    }

    /// Runs tasks on the calling thread until no more can arrive. Panics unwind to the caller.
    pub(super) fn run_to_end(&self) {
        let run = ExternalRun::begin(&self.lane);
        while let Some(task) = run.lane.next(None) {
            self.run(task);
        }
    }

    fn run(&self, task: Arc<dyn Task<Self>>) {
        if let Some(due) = task.run(self) {
            // If the lane was shut down in the meantime, `push` drops the periodic task.
            let _ = self.lane.push(task, due);
        }
    }

    fn schedule_task(&self, due: Time, (task, guard): task::Scheduled<Self>) -> Guard {
        match self.lane.push(task, due) {
            Ok(start) => {
                if start {
                    self.start_thread();
                }
                guard
            }
            Err(ShutDown) => Guard::closed(),
        }
    }

    fn start_thread(&self) {
        let Driver::Own { name, idle_max } = &self.lane.config.driver else {
            return;
        };
        let worker = self.uncounted();
        let idle_max = *idle_max;
        std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || worker.drive(idle_max))
            .expect("failed to start a thread for the worker");
    }

    /// Runs the lane's own thread.
    fn drive(&self, idle_max: Option<Duration>) {
        lock(&self.lane.state).thread = Some(std::thread::current().id());
        while let Some(task) = self.lane.next(idle_max) {
            self.lane.config.on_panic.guard(|| self.run(task));
        }
    }

    fn task_queue(&self) -> Weak<dyn TaskQueue> {
        let lane: Weak<Lane> = Arc::downgrade(&self.lane);
        lane
    }
}

impl Worker for ThreadWorker {
    fn now(&self) -> Time {
        Precise.now()
    }

    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        self.schedule_task(due, task::once(self.task_queue(), state, action))
    }

    fn schedule<S, A>(&self, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        // A time in the past is passed, so that this method does not read the clock. `push` replaces it by
        // the current time.
        self.schedule_at(Time::ZERO, state, action)
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let due = Precise.now() + period;
        let task = task::periodic(self.task_queue(), due, period, state, action);
        self.schedule_task(due, task)
    }

    fn runs_here(&self) -> bool {
        lock(&self.lane.state).thread == Some(std::thread::current().id())
    }
}

impl Clone for ThreadWorker {
    fn clone(&self) -> Self {
        self.lane.handles.fetch_add(1, Ordering::Relaxed);
        Self {
            lane: Arc::clone(&self.lane),
            counted: true,
        }
    }
}

impl Drop for ThreadWorker {
    fn drop(&mut self) {
        if self.counted && self.lane.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            // The lane's thread may be about to wait for tasks that can no longer arrive.
            self.lane.wake_driver();
        }
    }
}

impl core::fmt::Debug for ThreadWorker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ThreadWorker")
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

/// The error of a lane that was shut down.
struct ShutDown;

impl Lane {
    /// Queues a task. Returns whether the caller must start a thread for the lane.
    fn push(&self, task: Arc<dyn Task<ThreadWorker>>, due: Time) -> Result<bool, ShutDown> {
        let due = due.max(Precise.now());
        let mut state = lock(&self.state);
        if state.shut_down {
            drop(state);
            drop(task);
            return Err(ShutDown);
        }
        let first = match state.tasks.insert(due, task) {
            Ok(first) => first,
            Err(cancelled) => {
                drop(state);
                drop(cancelled);
                return Ok(false);
            }
        };
        let driver = state.driver;
        if driver == DriverState::Absent && matches!(self.config.driver, Driver::Own { .. }) {
            state.driver = DriverState::Busy;
            return Ok(true);
        }
        drop(state);
        if first {
            self.wake(driver);
        }
        Ok(false)
    }

    fn wake(&self, driver: DriverState) {
        match (driver, &self.config.driver) {
            (DriverState::Waiting, _) => self.wake.notify_one(),
            (DriverState::Absent, Driver::External(wake_external)) => wake_external(),
            (DriverState::Absent | DriverState::Busy, _) => {}
        }
    }

    /// If the thread that runs the lane is waiting, makes that thread check for tasks again.
    fn wake_driver(&self) {
        let driver = lock(&self.state).driver;
        self.wake(driver);
    }

    /// Returns the first task that is due at `now`. If there is none, marks the application's thread as
    /// absent: the next scheduling call must then wake it, because an action that is scheduled later may be
    /// due before the time returned here.
    fn find(&self, now: Time) -> Found {
        let mut state = lock(&self.state);
        if let Some((_, task)) = state.tasks.pop_due(now) {
            return Found::Task(task);
        }
        state.driver = DriverState::Absent;
        Found::NotYet(state.tasks.next_due())
    }

    /// Waits for a task to become due, and returns it. Returns `None`, and marks the thread as absent, if no
    /// more tasks can arrive, or if no task arrived for `idle_max`.
    fn next(&self, idle_max: Option<Duration>) -> Option<Arc<dyn Task<ThreadWorker>>> {
        let mut state = lock(&self.state);
        let idle_since = Precise.now();
        let mut now = idle_since;
        loop {
            if let Some((_, task)) = state.tasks.pop_due(now) {
                state.driver = DriverState::Busy;
                return Some(task);
            }
            let timeout = match state.tasks.next_due() {
                Some(due) => Some(due.since(now)),
                None => idle_max.map(|max| max.saturating_sub(now.since(idle_since))),
            };
            let idle_over = state.tasks.is_empty() && timeout == Some(Duration::ZERO);
            if self.is_over(&state) || idle_over {
                state.driver = DriverState::Absent;
                state.thread = None;
                return None;
            }
            state.driver = DriverState::Waiting;
            state = match timeout {
                Some(timeout) => wait_timeout(&self.wake, state, timeout),
                None => wait(&self.wake, state),
            };
            now = Precise.now();
        }
    }

    fn is_over(&self, state: &State) -> bool {
        let no_handles = self.handles.load(Ordering::Relaxed) == 0;
        state.shut_down || (no_handles && state.tasks.is_empty())
    }
}

impl TaskQueue for Lane {
    fn remove_cancelled(&self, key: &TaskKey) {
        let mut state = lock(&self.state);
        let removed = state.tasks.remove(key);
        let driver = state.driver;
        let last = state.tasks.is_empty();
        drop(state);
        drop(removed);
        if last {
            // A thread that waited for this task may now have to end.
            self.wake(driver);
        }
    }
}

/// A guard that exists while a thread of the application runs the lane. It marks the thread as absent, even
/// after a panic.
struct ExternalRun<'a> {
    lane: &'a Lane,
}

impl<'a> ExternalRun<'a> {
    fn begin(lane: &'a Lane) -> Self {
        let mut state = lock(&lane.state);
        state.driver = DriverState::Busy;
        state.thread = Some(std::thread::current().id());
        Self { lane }
    }
}

impl Drop for ExternalRun<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.lane.state);
        state.driver = DriverState::Absent;
        state.thread = None;
    }
}
