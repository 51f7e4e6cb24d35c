//! Workers with their own thread: the workers of [`NewThread`](super::NewThread) and
//! [`EventLoop`](super::EventLoop). The serial queue of such a worker is called a lane.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use super::Worker;
use super::panics::PanicHook;
use super::task::{self, Task, TaskKey, TaskQueue};
use super::tasks::Tasks;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, wait, wait_timeout};
use crate::{Clock, Guard, Precise, Time};

/// A worker that runs on one thread: its own with [`NewThread`](super::NewThread), the loop's with
/// [`EventLoop`](super::EventLoop).
pub struct ThreadWorker {
    lane: Arc<Lane>,
    /// Whether this handle keeps the lane alive. The handle that is passed to actions does not.
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
        /// How long the thread waits for more actions before it ends.
        idle_max: Option<Duration>,
    },
    /// A thread of the application. The closure asks it to run the lane.
    External(Box<dyn Fn() + Send + Sync>),
}

struct Lane {
    state: Mutex<State>,
    wake: Condvar,
    /// Number of counted handles. A thread that decrements it to zero then takes the lock, under which the
    /// lane's thread checks it before it waits. So Relaxed suffices for the count.
    handles: AtomicUsize,
    config: Config,
}

struct State {
    tasks: Tasks<ThreadWorker>,
    driver: DriverState,
    thread: Option<ThreadId>,
    shut_down: bool,
}

/// The state of the thread that runs the lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DriverState {
    /// There is no thread, or the application's thread is not running the lane.
    Absent,
    /// The thread will check for tasks before it waits or leaves.
    Busy,
    Waiting,
}

/// The result of a check for tasks.
enum Found {
    Task(Arc<dyn Task<ThreadWorker>>),
    /// No task is due yet; contains the due time of the next one.
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

    /// Drops queued tasks, and from now on newly scheduled ones.
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

    /// Runs due tasks on the calling thread. Panics unwind to the caller. Returns the due time of the next
    /// task.
    pub(super) fn run_pending(&self) -> Option<Time> {
        let run = ExternalRun::begin(&self.lane);
        // Tasks that become due in the meantime are left for the next call, or this one might never return.
        let now = Precise.now();
        loop {
            match run.lane.find(now) {
                Found::Task(task) => self.run(task),
                Found::NotYet(due) => return due,
            }
        }
    }

    /// Runs tasks on the calling thread until no more can come. Panics unwind to the caller.
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
        // `push` reads the clock.
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
            // The thread may be about to wait for tasks that can no longer come.
            self.lane.wake_driver();
        }
    }
}

impl std::fmt::Debug for ThreadWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadWorker")
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

/// The error of a lane that was shut down.
struct ShutDown;

impl Lane {
    /// Queues a task. Returns whether a thread must be started for it.
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

    /// Makes the thread check again, if there is one.
    fn wake_driver(&self) {
        let driver = lock(&self.state).driver;
        self.wake(driver);
    }

    /// Returns the first task that is due at `now`. If there is none, marks the external thread as absent, so
    /// that the next scheduling call wakes it and the returned due time stays correct.
    fn find(&self, now: Time) -> Found {
        let mut state = lock(&self.state);
        if let Some((_, task)) = state.tasks.pop_due(now) {
            return Found::Task(task);
        }
        state.driver = DriverState::Absent;
        Found::NotYet(state.tasks.next_due())
    }

    /// Returns the next task, and waits for one to arrive and become due. Returns `None` if no more can come,
    /// or none came for `idle_max`; the thread is then marked as absent.
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
            // A thread that waited for this task may now have nothing to wait for.
            self.wake(driver);
        }
    }
}

/// A guard that exists while an external thread runs the lane. A panic ends it as well.
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
