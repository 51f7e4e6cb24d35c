//! Schedulers, which define where and when actions run. [`Scheduler`] and [`Worker`] define the contract.

#[cfg(feature = "std")]
mod current_thread;
#[cfg(feature = "std")]
mod event_loop;
#[cfg(feature = "std")]
mod immediate;
#[cfg(feature = "std")]
mod new_thread;
#[cfg(feature = "std")]
mod panics;
#[cfg(feature = "std")]
mod pool_queue;
#[cfg(feature = "std")]
mod task;
#[cfg(feature = "std")]
mod tasks;
#[cfg(feature = "std")]
mod thread_pool;
#[cfg(feature = "std")]
mod thread_worker;
#[cfg(feature = "tokio")]
mod tokio_runtime;
#[cfg(feature = "std")]
mod virtual_time;

use core::ops::ControlFlow;
use core::time::Duration;

#[cfg(feature = "std")]
pub use current_thread::{CurrentThread, CurrentThreadWorker};
#[cfg(feature = "std")]
pub use event_loop::{EventLoop, EventLoopOptions, LoopDriver};
#[cfg(feature = "std")]
pub use immediate::{Immediate, ImmediateWorker};
#[cfg(feature = "std")]
pub use new_thread::NewThread;
#[cfg(feature = "std")]
pub use thread_pool::{PoolWorker, ThreadPool, ThreadPoolOptions};
#[cfg(feature = "std")]
pub use thread_worker::ThreadWorker;
#[cfg(feature = "tokio")]
pub use tokio_runtime::{TokioScheduler, TokioWorker};
#[cfg(feature = "std")]
pub use virtual_time::{VirtualTime, VirtualWorker};

#[cfg(feature = "std")]
pub use crate::hand_over::{Bound, ScheduledObserver};

use crate::{Guard, Time};

/// A source of [`Worker`]s, each of which runs actions in order.
///
/// A scheduler is a handle: clones refer to the same threads and the same time. An action that is scheduled
/// on the scheduler itself gets a worker of its own. To run actions one after the other, in order, schedule
/// them on one worker.
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
/// drop(guard); // no more beats
/// ```
pub trait Scheduler: Clone + Send + Sync + 'static {
    /// The worker type of this scheduler.
    type Worker: Worker;

    /// Returns a new worker. Actions of one worker never overlap. Actions of different workers may overlap.
    fn worker(&self) -> Self::Worker;

    /// Returns the time on this scheduler's clock.
    fn now(&self) -> Time;

    /// Runs `action` as soon as possible, on its own worker, unless the guard is dropped before the action
    /// starts.
    fn schedule(&self, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker().schedule((), move |(), _| action())
    }

    /// Runs `action` at `due` on a worker of its own, or as soon as possible if `due` has passed.
    fn schedule_at(&self, due: Time, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker().schedule_at(due, (), move |(), _| action())
    }

    /// Runs `action` after `delay`, on its own worker.
    fn schedule_after(&self, delay: Duration, action: impl FnOnce() + Send + 'static) -> Guard {
        self.worker()
            .schedule_after(delay, (), move |(), _| action())
    }

    /// Runs `action` after `period` and then every `period`, on its own worker, until it returns
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

/// A serial queue of a [`Scheduler`]. It runs one action at a time, in the order of their due times. Actions
/// with the same due time run in the order in which they were scheduled.
///
/// An action gets its state by value and the worker by reference. So an action that schedules itself again
/// can pass its state on, and need not capture anything. Dropping the guard of an action that has not started
/// cancels the action and drops its state at once. A running action is never interrupted. A panic ends only
/// its own action; each scheduler documents where the panic goes.
///
/// Clones are handles of the same queue. After the last handle is dropped, scheduled actions with detached
/// guards still run.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, Worker, scheduler::NewThread};
///
/// /// Counts down, with one action for each number. Each action passes the state to the next.
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
    /// Returns the time on the scheduler's clock.
    fn now(&self) -> Time;

    /// Runs `action` with `state` at `due`, or as soon as possible if `due` has passed.
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

    /// Runs `action` after `period` and then every `period`, until it returns [`Break`](ControlFlow::Break)
    /// or the guard is dropped. All runs share `state`, and never overlap. A late run does not move the due
    /// times of the following runs: missed runs are made up one after the other.
    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static;

    /// Returns whether the calling thread is one that runs this worker's actions. If it is, it must not wait
    /// for one of these actions, because the wait could last forever.
    fn runs_here(&self) -> bool;

    /// Returns whether [`schedule`](Worker::schedule) always runs the action before it returns. If so, no
    /// queue is needed in front of this worker.
    fn runs_at_once(&self) -> bool {
        false
    }
}
