use alloc::sync::{Arc, Weak};
use core::ops::ControlFlow;
use core::time::Duration;

use super::task::{self, Task, TaskKey, TaskQueue};
use super::tasks::Tasks;
use super::{Scheduler, Worker};
use crate::sync::{Mutex, lock};
use crate::{Clock, Guard, Time};

/// A scheduler for tests. Its time advances only on request.
///
/// It is also a [`Clock`]. All its workers share one queue. [`advance_to`](VirtualTime::advance_to),
/// [`advance_by`](VirtualTime::advance_by), and [`run`](VirtualTime::run) run the actions that become due, on
/// the calling thread. Actions run in the order of their due times; actions with the same due time run in the
/// order of scheduling. During an action, the clock shows the action's due time. An action with a due time in
/// the past runs when the clock is advanced next, even if the clock is advanced by zero. It runs at the
/// current time. No action runs inside the call that schedules it. A panic of an action unwinds to the caller
/// that advances the clock, and the other actions stay queued.
///
/// The module [`testing`](crate::testing) has observers and observables for such tests.
///
/// ```
/// use std::{sync::{Arc, Mutex}, time::Duration};
/// use fanline::{Scheduler, Time, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// for seconds in [3, 1, 2] {
///     let seen = seen.clone();
///     time.schedule_after(Duration::from_secs(seconds), move || {
///         seen.lock().unwrap().push(seconds);
///     })
///     .detach();
/// }
/// time.advance_by(Duration::from_secs(2));
/// assert_eq!(*seen.lock().unwrap(), [1, 2]);
/// assert_eq!(time.now(), Time::ZERO + Duration::from_secs(2));
/// ```
#[derive(Clone)]
pub struct VirtualTime {
    shared: Arc<Shared>,
}

/// The worker of a [`VirtualTime`].
#[derive(Clone, Debug)]
pub struct VirtualWorker {
    time: VirtualTime,
}

struct Shared {
    state: Mutex<State>,
}

struct State {
    now: Time,
    tasks: Tasks<VirtualWorker>,
    advancing: bool,
    stopped: bool,
}

impl VirtualTime {
    /// Returns a clock at [`Time::ZERO`], with no actions.
    pub fn new() -> Self {
        Self::starting_at(Time::ZERO)
    }

    /// Returns a clock that starts at `now`.
    pub fn starting_at(now: Time) -> Self {
        let state = State {
            now,
            tasks: Tasks::new(),
            advancing: false,
            stopped: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
            }),
        }
    }

    /// Returns the current time. Both [`Clock`] and [`Scheduler`] have a method `now`, so without this method
    /// a call of `now` would be ambiguous.
    pub fn now(&self) -> Time {
        lock(&self.shared.state).now
    }

    /// Runs the actions that are due at or before `time`, and sets the clock to `time`. If an action calls
    /// [`stop`](VirtualTime::stop), the clock stays at that action's time.
    ///
    /// # Panics
    ///
    /// If `time` has passed, or if the clock is already being advanced: by another thread, or by the call
    /// that runs the current action.
    pub fn advance_to(&self, time: Time) {
        let advance = Advance::begin(&self.shared);
        let now = self.now();
        assert!(
            time >= now,
            "`time` must not be earlier than {now:?}, got {time:?}"
        );
        self.run_until(time);
        let mut state = lock(&self.shared.state);
        if !state.stopped {
            state.now = state.now.max(time);
        }
        drop(state);
        drop(advance);
    }

    /// Runs the actions that are due within `duration`, and advances the clock by `duration`; see
    /// [`advance_to`](VirtualTime::advance_to).
    ///
    /// # Panics
    ///
    /// If the clock is already being advanced.
    pub fn advance_by(&self, duration: Duration) {
        self.advance_to(self.now() + duration);
    }

    /// Runs all actions. Afterwards, the clock is at the due time of the last action. Does not return while
    /// there are periodic actions, unless an action calls [`stop`](VirtualTime::stop).
    ///
    /// # Panics
    ///
    /// If the clock is already being advanced.
    pub fn run(&self) {
        let _advance = Advance::begin(&self.shared);
        self.run_until(Time::from_nanos(u64::MAX));
    }

    /// Makes the advance in progress return after the running action. Has no effect if the clock is not being
    /// advanced.
    pub fn stop(&self) {
        let mut state = lock(&self.shared.state);
        state.stopped = state.advancing;
    }

    /// Moves the clock without running actions. An action can call this to simulate that it takes `duration`.
    pub fn sleep(&self, duration: Duration) {
        let mut state = lock(&self.shared.state);
        state.now = state.now + duration;
    }

    /// Returns the number of queued actions.
    pub fn queued(&self) -> usize {
        lock(&self.shared.state).tasks.len()
    }

    /// Returns the due time of the first queued action.
    pub fn next_due(&self) -> Option<Time> {
        lock(&self.shared.state).tasks.next_due()
    }

    fn run_until(&self, time: Time) {
        let worker = self.worker();
        while let Some(task) = self.shared.next(time) {
            if let Some(due) = task.run(&worker) {
                self.shared.push(due, task);
            }
        }
    }

    fn task_queue(&self) -> Weak<dyn TaskQueue> {
        let shared: Weak<Shared> = Arc::downgrade(&self.shared);
        shared
    }
}

impl Default for VirtualTime {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Time {
        Self::now(self)
    }
}

impl Scheduler for VirtualTime {
    type Worker = VirtualWorker;

    fn worker(&self) -> VirtualWorker {
        VirtualWorker { time: self.clone() }
    }

    fn now(&self) -> Time {
        Self::now(self)
    }
}

impl VirtualWorker {
    /// Returns the scheduler of this worker.
    pub fn time(&self) -> &VirtualTime {
        &self.time
    }
}

impl Worker for VirtualWorker {
    fn now(&self) -> Time {
        self.time.now()
    }

    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        let (task, guard) = task::once(self.time.task_queue(), state, action);
        self.time.shared.push(due, task);
        guard
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let due = self.time.now() + period;
        let (task, guard) = task::periodic(self.time.task_queue(), due, period, state, action);
        self.time.shared.push(due, task);
        guard
    }

    fn runs_here(&self) -> bool {
        // This thread may be the only one that advances the clock. If it waited for an action, the action
        // might never run.
        true
    }
}

impl core::fmt::Debug for VirtualTime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("VirtualTime")
            .field("now", &self.now())
            .field("queued", &self.queued())
            .finish()
    }
}

impl Shared {
    fn push(&self, due: Time, task: Arc<dyn Task<VirtualWorker>>) {
        let mut state = lock(&self.state);
        let due = due.max(state.now);
        let inserted = state.tasks.insert(due, task);
        drop(state);
        drop(inserted);
    }

    /// Removes the first task that is due at or before `time`, and moves the clock to its due time.
    fn next(&self, time: Time) -> Option<Arc<dyn Task<VirtualWorker>>> {
        let mut state = lock(&self.state);
        if state.stopped {
            return None;
        }
        let (due, task) = state.tasks.pop_due(time)?;
        // An action that called `sleep` may have moved the clock past the due time.
        state.now = state.now.max(due);
        Some(task)
    }
}

impl TaskQueue for Shared {
    fn remove_cancelled(&self, key: &TaskKey) {
        let removed = lock(&self.state).tasks.remove(key);
        drop(removed);
    }
}

/// A guard for an advance of the clock. Its drop ends the advance, even after a panic.
struct Advance<'a>(&'a Shared);

impl<'a> Advance<'a> {
    fn begin(shared: &'a Shared) -> Self {
        let mut state = lock(&shared.state);
        let nested = core::mem::replace(&mut state.advancing, true);
        if !nested {
            state.stopped = false;
        }
        drop(state);
        assert!(
            !nested,
            "the clock is already being advanced, by a caller of this action or by another thread"
        );
        Self(shared)
    }
}

impl Drop for Advance<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.advancing = false;
    }
}
