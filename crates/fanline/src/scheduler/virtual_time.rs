use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::task::{self, Place, Task, Timetable};
use super::tasks::Tasks;
use super::{Scheduler, Worker};
use crate::sync::{Mutex, lock};
use crate::{Clock, Guard, Time};

/// A scheduler whose time passes only when told to: for tests.
///
/// It is also a [`Clock`], and all its workers are one lane. [`advance_to`](VirtualTime::advance_to),
/// [`advance_by`](VirtualTime::advance_by) and [`run`](VirtualTime::run) run the actions that become
/// due, on the calling thread, by due time and in the order of scheduling among equals; during each,
/// the clock stands at its due time. What is scheduled for a moment that is over runs at the time that
/// it is, as soon as the clock is advanced, by nothing even. Nothing ever runs inside the call that
/// schedules it. A panic of an action unwinds to whoever advances the clock; the rest stays queued.
///
/// Observers and observables for tests that go with it are in [`testing`](crate::testing).
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

/// The lane of a [`VirtualTime`].
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
    /// A clock at [`Time::ZERO`], with nothing scheduled.
    pub fn new() -> Self {
        Self::starting_at(Time::ZERO)
    }

    /// A clock that begins at another moment.
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

    /// The time that it is. The same as [`Clock::now`] and [`Scheduler::now`], which cannot
    /// be told apart by a call on this type.
    pub fn now(&self) -> Time {
        lock(&self.shared.state).now
    }

    /// Runs what is due until `time`, inclusive, and leaves the clock there; where it stands when an
    /// action calls [`stop`](VirtualTime::stop).
    ///
    /// # Panics
    ///
    /// When `time` is over, and when the clock is being advanced already, be it by an action that
    /// calls this or by another thread.
    pub fn advance_to(&self, time: Time) {
        let advance = Advance::begin(&self.shared);
        let now = self.now();
        assert!(
            time >= now,
            "`time` must not be over: it is {now:?}, not {time:?}"
        );
        self.run_until(time);
        let mut state = lock(&self.shared.state);
        if !state.stopped {
            state.now = state.now.max(time);
        }
        drop(state);
        drop(advance);
    }

    /// Runs what is due within `duration`, and leaves the clock that much later; see
    /// [`advance_to`](VirtualTime::advance_to).
    ///
    /// # Panics
    ///
    /// When the clock is being advanced already.
    pub fn advance_by(&self, duration: Duration) {
        self.advance_to(self.now() + duration);
    }

    /// Runs all there is, and leaves the clock at the last due time. Does not return while something
    /// goes on for ever, such as an interval, unless an action calls [`stop`](VirtualTime::stop).
    ///
    /// # Panics
    ///
    /// When the clock is being advanced already.
    pub fn run(&self) {
        let _advance = Advance::begin(&self.shared);
        self.run_until(Time::from_nanos(u64::MAX));
    }

    /// Ends the advance in progress after the action that runs. Without one it does nothing.
    pub fn stop(&self) {
        let mut state = lock(&self.shared.state);
        state.stopped = state.advancing;
    }

    /// Moves the clock and runs nothing, as an action does that takes this long.
    pub fn sleep(&self, duration: Duration) {
        let mut state = lock(&self.shared.state);
        state.now = state.now + duration;
    }

    /// How many actions wait.
    pub fn queued(&self) -> usize {
        lock(&self.shared.state).tasks.len()
    }

    /// When the first of the waiting actions is due.
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

    fn timetable(&self) -> Weak<dyn Timetable> {
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
    /// The scheduler that it is of.
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
        let (task, guard) = task::once(self.time.timetable(), state, action);
        self.time.shared.push(due, task);
        guard
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let due = self.time.now() + period;
        let (task, guard) = task::periodic(self.time.timetable(), due, period, state, action);
        self.time.shared.push(due, task);
        guard
    }

    fn runs_here(&self) -> bool {
        // Whoever advances the clock may be the one who waits.
        true
    }
}

impl std::fmt::Debug for VirtualTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

    /// Moves the clock to the first task that is due until `time`.
    fn next(&self, time: Time) -> Option<Arc<dyn Task<VirtualWorker>>> {
        let mut state = lock(&self.state);
        if state.stopped {
            return None;
        }
        let (due, task) = state.tasks.pop_due(time)?;
        // An action that slept may have moved the clock past it.
        state.now = state.now.max(due);
        Some(task)
    }
}

impl Timetable for Shared {
    fn forget(&self, place: &Place) {
        let removed = lock(&self.state).tasks.remove(place);
        drop(removed);
    }
}

/// An advance of the clock; it ends also by a panic.
struct Advance<'a>(&'a Shared);

impl<'a> Advance<'a> {
    fn begin(shared: &'a Shared) -> Self {
        let mut state = lock(&shared.state);
        let nested = std::mem::replace(&mut state.advancing, true);
        if !nested {
            state.stopped = false;
        }
        drop(state);
        assert!(
            !nested,
            "the clock is being advanced already, by a caller of this action or by another thread"
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
