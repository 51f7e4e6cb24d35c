//! What schedulers queue: an action with its state, which its guard can take out again.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use super::tasks::Key;
use crate::guard::Registry;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};
use crate::{Guard, Time};

/// A queued action, for a lane whose handle is `W`. One allocation holds it, its state and what its
/// guard needs.
pub(super) trait Task<W>: Send + Sync {
    /// Runs the action, unless it was cancelled. Gives back when to run again.
    fn run(&self, worker: &W) -> Option<Time>;

    /// Whether there is nothing left to run.
    fn is_cancelled(&self) -> bool;

    /// Where it stands in its lane.
    fn place(&self) -> &Place;
}

/// Where tasks stand until they run. The lane that implements it takes the task out under its lock
/// and drops it after.
pub(super) trait Timetable: Send + Sync {
    /// Drops the entry of a task that was cancelled, if it is still there. `place` is read under the
    /// lane's lock, since a task that repeats changes its place.
    fn forget(&self, place: &Place);
}

/// A task, and the guard that cancels it.
pub(super) type Scheduled<W> = (Arc<dyn Task<W>>, Guard);

/// An action that runs once.
pub(super) fn once<W, S, A>(timetable: Weak<dyn Timetable>, state: S, action: A) -> Scheduled<W>
where
    S: Send + 'static,
    A: FnOnce(S, &W) + Send + 'static,
{
    let task = Arc::new(Once(Slot::new(timetable, (state, action))));
    let guard = Guard::registered(Arc::<Once<S, A>>::clone(&task), 0);
    (task, guard)
}

/// An action that runs again and again, first at `due`.
pub(super) fn periodic<W, S, A>(
    timetable: Weak<dyn Timetable>,
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
        slot: Slot::new(timetable, work),
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

    fn place(&self) -> &Place {
        &self.0.place
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
    /// When the next run is due, however late the one before it came.
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

    fn place(&self) -> &Place {
        &self.slot.place
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

/// Holds what a task needs until it runs or is cancelled, whichever comes first.
struct Slot<C> {
    work: Mutex<Work<C>>,
    over: Condvar,
    timetable: Weak<dyn Timetable>,
    place: Place,
}

/// Under which key a task stands. Written and read under the lane's lock: relaxed suffices.
pub(super) struct Place {
    due: AtomicU64,
    sequence: AtomicU64,
}

impl Place {
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
    fn new(timetable: Weak<dyn Timetable>, content: C) -> Self {
        Self {
            work: Mutex::new(Work::Waiting(content)),
            over: Condvar::new(),
            timetable,
            place: Place::new(),
        }
    }

    fn begin(&self) -> Option<C> {
        let running = Work::Running {
            thread: std::thread::current().id(),
            cancelled: false,
        };
        let mut work = lock(&self.work);
        match std::mem::replace(&mut *work, Work::Over) {
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
        let content = match std::mem::replace(&mut *work, Work::Over) {
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
        if let Some(timetable) = self.timetable.upgrade() {
            timetable.forget(&self.place);
        }
        drop(content);
    }

    /// Waits for a run in progress, unless this is the thread it is on.
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

/// A run in progress. Dropped, also by a panic of the action, it says that the task is over.
struct Running<'a, C>(&'a Slot<C>);

impl<C> Running<'_, C> {
    /// The run is over and the task goes on, unless it was cancelled meanwhile.
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
