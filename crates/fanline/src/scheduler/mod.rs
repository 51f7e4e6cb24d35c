//! Where and when things run: the contract of [`Scheduler`] and [`Worker`].

mod current_thread;
mod event_loop;
mod immediate;
mod new_thread;
mod panics;
mod pool_queue;
mod task;
mod tasks;
mod thread_lane;
mod thread_pool;
#[cfg(feature = "tokio")]
mod tokio_runtime;
mod virtual_time;

use std::ops::ControlFlow;
use std::time::Duration;

pub use current_thread::{CurrentThread, CurrentThreadWorker};
pub use event_loop::{EventLoop, EventLoopOptions, LoopDriver};
pub use immediate::{Immediate, ImmediateWorker};
pub use new_thread::NewThread;
pub use thread_lane::ThreadWorker;
pub use thread_pool::{PoolWorker, ThreadPool, ThreadPoolOptions};
#[cfg(feature = "tokio")]
pub use tokio_runtime::{TokioScheduler, TokioWorker};
pub use virtual_time::{VirtualTime, VirtualWorker};

pub use crate::hand_over::{Bound, ScheduledObserver};

use crate::{Guard, Time};

/// Gives out [`Worker`]s, on which actions run in order.
///
/// A scheduler is a handle: clones refer to the same threads and the same time. What is scheduled on
/// the scheduler itself gets a lane of its own; actions that are to run one after the other, in order,
/// share a worker.
///
/// ```
/// use std::{ops::ControlFlow, sync::mpsc, time::Duration};
/// use fanline::{Guard, Scheduler, scheduler::ThreadPool};
///
/// fn beat(scheduler: &impl Scheduler, tx: mpsc::Sender<u32>) -> Guard {
///     let mut count = 0;
///     scheduler.schedule_periodic(Duration::from_millis(1), move || {
///         count += 1;
///         match tx.send(count) {
///             Ok(()) => ControlFlow::Continue(()),
///             Err(_) => ControlFlow::Break(()),
///         }
///     })
/// }
///
/// let (tx, rx) = mpsc::channel();
/// let guard = beat(&ThreadPool::global(), tx);
/// assert_eq!(rx.iter().take(3).collect::<Vec<_>>(), [1, 2, 3]);
/// drop(guard); // no more
/// ```
pub trait Scheduler: Clone + Send + Sync + 'static {
    /// A lane of this scheduler.
    type Worker: Worker;

    /// A new lane. Its actions never overlap each other; those of unlike workers may.
    fn worker(&self) -> Self::Worker;

    /// The time on this scheduler's clock.
    fn now(&self) -> Time;

    /// Runs `action` as soon as the scheduler can, on a lane of its own, unless the guard is dropped
    /// before.
    fn schedule(&self, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker().schedule((), move |(), _| action())
    }

    /// Runs `action` at `due`, on a lane of its own; as soon as possible when that is over.
    fn schedule_at(&self, due: Time, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker().schedule_at(due, (), move |(), _| action())
    }

    /// Runs `action` after `delay`, on a lane of its own.
    fn schedule_after(&self, delay: Duration, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker()
            .schedule_after(delay, (), move |(), _| action())
    }

    /// Runs `action` after `period` and then every `period`, on a lane of its own, until it gives back
    /// [`Break`](ControlFlow::Break) or the guard is dropped; see [`Worker::schedule_periodic`].
    fn schedule_periodic(
        &self,
        period: Duration,
        mut action: impl FnMut() -> ControlFlow<()> + Send + 'static,
    ) -> Guard {
        self.worker()
            .schedule_periodic(period, (), move |(), _| action())
    }
}

/// A serial lane of a [`Scheduler`]: runs one action at a time, by due time, and first in first out
/// among those that are due at the same time.
///
/// Actions are handed their state by value and the worker by reference, so an action that goes on
/// (schedules itself again) moves its state along and captures nothing. Dropping the guard of an
/// action that has not begun cancels it and drops its state at once; it never interrupts one that
/// runs. An action that panics harms no other: see each scheduler for where the panic goes.
///
/// Clones are handles of the same lane. When the last is dropped, actions that were scheduled and
/// whose guards were detached still run.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, Worker, scheduler::NewThread};
///
/// /// Counts down, one action for each number; the state goes from one to the next.
/// fn count_down<W: Worker>((n, tx): (u32, mpsc::Sender<u32>), worker: &W) {
///     tx.send(n).unwrap();
///     if n > 0 {
///         worker.schedule((n - 1, tx), count_down).detach();
///     }
/// }
///
/// let (tx, rx) = mpsc::channel();
/// NewThread.worker().schedule((3, tx), count_down).detach();
/// assert_eq!(rx.iter().collect::<Vec<_>>(), [3, 2, 1, 0]);
/// ```
pub trait Worker: Clone + Send + Sync + 'static {
    /// The time on the scheduler's clock.
    fn now(&self) -> Time;

    /// Runs `action` with `state` at `due`; as soon as possible when that is over.
    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static;

    /// Runs `action` with `state` as soon as possible.
    fn schedule<S, A>(&self, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        self.schedule_at(self.now(), state, action)
    }

    /// Runs `action` with `state` after `delay`.
    fn schedule_after<S, A>(&self, delay: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        self.schedule_at(self.now() + delay, state, action)
    }

    /// Runs `action` after `period` and then every `period`, each time with the state that it left,
    /// until it gives back [`Break`](ControlFlow::Break) or the guard is dropped. Runs never
    /// overlap; one that comes late does not delay those after it, and runs that were missed
    /// altogether are made up for one after the other.
    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static;

    /// Whether the calling thread is needed to run this lane: waiting there for one of its actions
    /// could take for ever.
    fn runs_here(&self) -> bool;

    /// Whether [`schedule`](Worker::schedule) always runs the action before it returns, whatever else
    /// runs: then there is no need for a queue in front of this lane.
    fn runs_at_once(&self) -> bool {
        false
    }
}
