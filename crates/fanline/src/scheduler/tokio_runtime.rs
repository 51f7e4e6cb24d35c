use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::future::Future;
use core::ops::ControlFlow;
use core::pin::Pin;
use core::time::Duration;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

use super::panics::PanicHook;
use super::task::{self, Task, TaskKey, TaskQueue};
use super::tasks::Tasks;
use super::{Scheduler, Worker};
use crate::clock::beginning;
use crate::sync::{Mutex, lock};
use crate::{Guard, Time};

/// Number of actions that a worker runs before it yields to other tasks of the runtime.
const ACTIONS_BEFORE_YIELD: usize = 64;

/// A scheduler on a tokio runtime. Needs the feature `tokio`, and a runtime with its timer enabled.
///
/// Each worker is a task of the runtime, which exists while the worker has actions and runs them one after
/// the other. The clock is the runtime's clock: while a test has paused that clock, delayed actions wait.
///
/// Actions must not block, like all code on a runtime. A panic ends only its own action: the process's panic
/// hook reports the panic, and the worker continues. When the runtime shuts down, it drops queued actions.
///
/// ```
/// use fanline::{Scheduler, scheduler::TokioScheduler};
///
/// let runtime = tokio::runtime::Builder::new_current_thread()
///     .enable_time()
///     .build()
///     .unwrap();
/// let (tx, rx) = std::sync::mpsc::channel();
/// TokioScheduler::new(runtime.handle().clone())
///     .schedule(move || tx.send(1).unwrap())
///     .detach();
/// runtime.block_on(tokio::task::yield_now());
/// assert_eq!(rx.recv(), Ok(1));
/// ```
#[derive(Clone, Debug)]
pub struct TokioScheduler {
    handle: Handle,
}

/// A worker of a [`TokioScheduler`].
#[derive(Clone)]
pub struct TokioWorker {
    lane: Arc<Lane>,
}

struct Lane {
    handle: Handle,
    state: Mutex<State>,
}

struct State {
    tasks: Tasks<TokioWorker>,
    /// Whether a task of the runtime exists that runs this queue.
    driven: bool,
    /// The waker of that task, while the task waits for a due time.
    waker: Option<Waker>,
}

impl TokioScheduler {
    /// Returns a scheduler on the runtime of this handle.
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Returns a scheduler on the current runtime.
    ///
    /// # Panics
    ///
    /// If it is called outside of a runtime.
    pub fn current() -> Self {
        Self::new(Handle::current())
    }

    fn time(&self) -> Time {
        now(&self.handle)
    }
}

impl Scheduler for TokioScheduler {
    type Worker = TokioWorker;

    fn worker(&self) -> TokioWorker {
        TokioWorker {
            lane: Arc::new(Lane {
                handle: self.handle.clone(),
                state: Mutex::new(State {
                    tasks: Tasks::new(),
                    driven: false,
                    waker: None,
                }),
            }),
        }
    }

    fn now(&self) -> Time {
        self.time()
    }
}

/// Returns the runtime's time, which a test may have paused.
fn now(handle: &Handle) -> Time {
    let _entered = handle.enter();
    Time::ZERO
        + Instant::now()
            .into_std()
            .saturating_duration_since(beginning())
}

impl TokioWorker {
    fn push(&self, task: Arc<dyn Task<Self>>, due: Time) {
        let due = due.max(self.now());
        let mut state = lock(&self.lane.state);
        let inserted = state.tasks.insert(due, task);
        let start = matches!(inserted, Ok(true)) && !core::mem::replace(&mut state.driven, true);
        let waker = match inserted {
            Ok(true) => state.waker.take(),
            Ok(false) | Err(_) => None,
        };
        drop(state);
        drop(inserted);
        if start {
            let driver = Driver {
                worker: self.clone(),
                sleep: None,
            };
            drop(self.lane.handle.spawn(driver));
        } else if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn task_queue(&self) -> Weak<dyn TaskQueue> {
        let lane: Weak<Lane> = Arc::downgrade(&self.lane);
        lane
    }
}

impl Worker for TokioWorker {
    fn now(&self) -> Time {
        now(&self.lane.handle)
    }

    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        let (task, guard) = task::once(self.task_queue(), state, action);
        self.push(task, due);
        guard
    }

    fn schedule_periodic<S, A>(&self, period: Duration, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let due = self.now() + period;
        let (task, guard) = task::periodic(self.task_queue(), due, period, state, action);
        self.push(task, due);
        guard
    }

    fn runs_here(&self) -> bool {
        // A thread of the runtime must not block on the runtime.
        Handle::try_current().is_ok_and(|current| current.id() == self.lane.handle.id())
    }
}

impl core::fmt::Debug for TokioWorker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TokioWorker").finish_non_exhaustive()
    }
}

impl TaskQueue for Lane {
    fn remove_cancelled(&self, key: &TaskKey) {
        let mut state = lock(&self.state);
        let removed = state.tasks.remove(key);
        // If the cancelled action was the only one, the runtime's task can end.
        let waker = if state.tasks.is_empty() {
            state.waker.take()
        } else {
            None
        };
        drop(state);
        drop(removed);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The task of the runtime that runs a worker's actions until there are none.
struct Driver {
    worker: TokioWorker,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ACTIONS_BEFORE_YIELD {
            let now = self.worker.now();
            let mut state = lock(&self.worker.lane.state);
            let due = match (state.tasks.pop_due(now), state.tasks.next_due()) {
                (Some((_, task)), _) => {
                    drop(state);
                    self.run(task);
                    continue;
                }
                (None, None) => {
                    state.driven = false;
                    state.waker = None;
                    return Poll::Ready(());
                }
                (None, Some(due)) => due,
            };
            state.waker = Some(context.waker().clone());
            drop(state);
            let at = beginning() + due.since(Time::ZERO);
            let sleep = sleep_until(Instant::from_std(at));
            let sleep = self.sleep.insert(Box::pin(sleep));
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Driver {
    fn run(&self, task: Arc<dyn Task<TokioWorker>>) {
        PanicHook::default().guard(|| {
            if let Some(due) = task.run(&self.worker) {
                self.worker.push(task, due);
            }
        });
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // If `driven` is still set, the runtime was shut down before this task had run all actions. Drop the
        // remaining actions.
        let mut state = lock(&self.worker.lane.state);
        let dropped = if state.driven {
            state.tasks.take_all()
        } else {
            Default::default()
        };
        drop(state);
        drop(dropped);
    }
}
