//! The lane that has a thread to itself: what [`NewThread`](super::NewThread) and
//! [`EventLoop`](super::EventLoop) give out.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use super::Worker;
use super::panics::PanicHook;
use super::task::{self, Place, Task, Timetable};
use super::tasks::Tasks;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, wait, wait_timeout};
use crate::{Clock, Guard, Precise, Time};

/// A lane on one thread: of its own with [`NewThread`](super::NewThread), of the loop with
/// [`EventLoop`](super::EventLoop).
pub struct ThreadWorker {
    lane: Arc<Lane>,
    /// The handle that is passed to actions does not keep the lane going.
    counted: bool,
}

/// How a lane is to be.
pub(super) struct Manner {
    pub(super) driver: Driver,
    pub(super) on_panic: PanicHook,
}

/// Whose thread runs the actions.
pub(super) enum Driver {
    /// One that the lane starts when there is something to do.
    Own {
        name: String,
        /// How long it waits for more before it ends.
        idle_max: Option<Duration>,
    },
    /// One that comes by. The closure is called when there is something new to come for.
    Visitor(Box<dyn Fn() + Send + Sync>),
}

struct Lane {
    state: Mutex<State>,
    wake: Condvar,
    /// Counted handles. Who takes it to zero then takes the lock, under which the thread looks at it
    /// before it waits: relaxed suffices for the count itself.
    handles: AtomicUsize,
    manner: Manner,
}

struct State {
    tasks: Tasks<ThreadWorker>,
    driver: Presence,
    thread: Option<ThreadId>,
    shut_down: bool,
}

/// Where the thread is that runs the lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// There is none, or it has not come by.
    Away,
    /// It will look for tasks before it waits or goes.
    Busy,
    Waiting,
}

/// What a thread that runs the lane finds there.
enum Found {
    Task(Arc<dyn Task<ThreadWorker>>),
    /// Nothing that is due by now; when the next one is.
    NotYet(Option<Time>),
}

impl ThreadWorker {
    pub(super) fn new(manner: Manner) -> Self {
        let lane = Lane {
            state: Mutex::new(State {
                tasks: Tasks::new(),
                driver: Presence::Away,
                thread: None,
                shut_down: false,
            }),
            wake: Condvar::new(),
            handles: AtomicUsize::new(1),
            manner,
        };
        Self {
            lane: Arc::new(lane),
            counted: true,
        }
    }

    /// A handle that does not keep the lane going.
    pub(super) fn uncounted(&self) -> Self {
        Self {
            lane: Arc::clone(&self.lane),
            counted: false,
        }
    }

    /// Drops what is queued. What is scheduled after is dropped as well.
    pub(super) fn shut_down(&self) {
        let mut state = lock(&self.lane.state);
        state.shut_down = true;
        let dropped = state.tasks.take_all();
        drop(state);
        self.lane.poke();
        drop(dropped);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        lock(&self.lane.state).shut_down
    }

    pub(super) fn queued(&self) -> usize {
        lock(&self.lane.state).tasks.len()
    }

    /// Runs what is due, on the calling thread; panics unwind to the caller. Gives back when the next
    /// task is due.
    pub(super) fn run_pending(&self) -> Option<Time> {
        let visit = Visit::begin(&self.lane);
        // What becomes due meanwhile is left for the next visit, or this one might never end.
        let now = Precise.now();
        loop {
            match visit.lane.find(now) {
                Found::Task(task) => self.run(task),
                Found::NotYet(due) => return due,
            }
        }
    }

    /// Runs on the calling thread until nothing more can come; panics unwind to the caller.
    pub(super) fn run_to_end(&self) {
        let visit = Visit::begin(&self.lane);
        while let Some(task) = visit.lane.next(None) {
            self.run(task);
        }
    }

    fn run(&self, task: Arc<dyn Task<Self>>) {
        if let Some(due) = task.run(self) {
            // A lane that was shut down meanwhile drops the task; so it ends here.
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
            Err(Refused) => Guard::closed(),
        }
    }

    fn start_thread(&self) {
        let Driver::Own { name, idle_max } = &self.lane.manner.driver else {
            return;
        };
        let worker = self.uncounted();
        let idle_max = *idle_max;
        std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || worker.drive(idle_max))
            .expect("a thread for the worker can be started");
    }

    /// The lane's own thread.
    fn drive(&self, idle_max: Option<Duration>) {
        lock(&self.lane.state).thread = Some(std::thread::current().id());
        while let Some(task) = self.lane.next(idle_max) {
            self.lane.manner.on_panic.guard(|| self.run(task));
        }
    }

    fn timetable(&self) -> Weak<dyn Timetable> {
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
        self.schedule_task(due, task::once(self.timetable(), state, action))
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
        let task = task::periodic(self.timetable(), due, period, state, action);
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
            // The thread may be about to wait, for what now never comes.
            self.lane.poke();
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

/// The lane was shut down.
struct Refused;

impl Lane {
    /// Queues a task; whether a thread has to be started for it.
    fn push(&self, task: Arc<dyn Task<ThreadWorker>>, due: Time) -> Result<bool, Refused> {
        let due = due.max(Precise.now());
        let mut state = lock(&self.state);
        if state.shut_down {
            drop(state);
            drop(task);
            return Err(Refused);
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
        if driver == Presence::Away && matches!(self.manner.driver, Driver::Own { .. }) {
            state.driver = Presence::Busy;
            return Ok(true);
        }
        drop(state);
        if first {
            self.wake(driver);
        }
        Ok(false)
    }

    fn wake(&self, driver: Presence) {
        match (driver, &self.manner.driver) {
            (Presence::Waiting, _) => self.wake.notify_one(),
            (Presence::Away, Driver::Visitor(come)) => come(),
            (Presence::Away | Presence::Busy, _) => {}
        }
    }

    /// Has the thread look again, if there is one.
    fn poke(&self) {
        let driver = lock(&self.state).driver;
        self.wake(driver);
    }

    /// The first task that is due at `now`. When there is none, the visitor is taken to be gone: who
    /// schedules from then on calls it back, so what it is told here stays true.
    fn find(&self, now: Time) -> Found {
        let mut state = lock(&self.state);
        if let Some((_, task)) = state.tasks.pop_due(now) {
            return Found::Task(task);
        }
        state.driver = Presence::Away;
        Found::NotYet(state.tasks.next_due())
    }

    /// The next task, waiting for one to come and to be due. None when none can come, or none came
    /// for `idle_max`; the thread is then taken to be gone.
    fn next(&self, idle_max: Option<Duration>) -> Option<Arc<dyn Task<ThreadWorker>>> {
        let mut state = lock(&self.state);
        let idle_since = Precise.now();
        let mut now = idle_since;
        loop {
            if let Some((_, task)) = state.tasks.pop_due(now) {
                state.driver = Presence::Busy;
                return Some(task);
            }
            let timeout = match state.tasks.next_due() {
                Some(due) => Some(due.since(now)),
                None => idle_max.map(|max| max.saturating_sub(now.since(idle_since))),
            };
            let idle_over = state.tasks.is_empty() && timeout == Some(Duration::ZERO);
            if self.is_over(&state) || idle_over {
                state.driver = Presence::Away;
                state.thread = None;
                return None;
            }
            state.driver = Presence::Waiting;
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

impl Timetable for Lane {
    fn forget(&self, place: &Place) {
        let mut state = lock(&self.state);
        let removed = state.tasks.remove(place);
        let driver = state.driver;
        let last = state.tasks.is_empty();
        drop(state);
        drop(removed);
        if last {
            // A thread that waited for it may have nothing to wait for any more.
            self.wake(driver);
        }
    }
}

/// A stay of a visiting thread; it goes also by a panic.
struct Visit<'a> {
    lane: &'a Lane,
}

impl<'a> Visit<'a> {
    fn begin(lane: &'a Lane) -> Self {
        let mut state = lock(&lane.state);
        state.driver = Presence::Busy;
        state.thread = Some(std::thread::current().id());
        Self { lane }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.lane.state);
        state.driver = Presence::Away;
        state.thread = None;
    }
}
