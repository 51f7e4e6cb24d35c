use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::cell::Cell;
use core::num::NonZero;
use core::ops::ControlFlow;
use core::time::Duration;
use std::sync::{Arc, OnceLock, Weak};

use super::panics::PanicHook;
use super::pool_queue::{Lane, Queue};
use super::task::{self, TaskQueue};
use super::{Scheduler, Worker};
use crate::{Clock, Guard, Precise, Time};

/// A scheduler with a fixed number of threads, which all workers share.
///
/// The actions of one worker run one after the other, on any free thread. Actions of different workers run in
/// parallel. A thread switches to another worker after 64 actions. Delayed actions occupy no thread until
/// they are due.
///
/// A panic ends only its own action. The process's panic hook reports the panic, the pool's own hook
/// ([`on_panic`](ThreadPoolOptions::on_panic)) gets the payload, and the thread continues. An action that
/// blocks occupies a thread. If all threads are blocked, the pool runs nothing until one of these actions
/// ends.
///
/// The threads, named `fanline-pool`, end when all handles of the pool and of its workers are dropped and all
/// work is done.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, scheduler::ThreadPool};
///
/// let (tx, rx) = mpsc::channel();
/// for n in 0..3 {
///     let tx = tx.clone();
///     ThreadPool::global().schedule(move || tx.send(n * n).unwrap()).detach();
/// }
/// drop(tx);
/// assert_eq!(rx.iter().sum::<u32>(), 5);
/// ```
pub struct ThreadPool {
    queue: Arc<Queue>,
}

/// A worker of a [`ThreadPool`].
pub struct PoolWorker {
    lane: Arc<Lane>,
    /// Whether this handle keeps the pool alive. The handle that actions get does not keep it alive.
    counted: bool,
}

thread_local! {
    /// The pool that the thread belongs to. The pointer is only compared, never dereferenced.
    static POOL: Cell<*const Queue> = const { Cell::new(core::ptr::null()) };
}

impl ThreadPool {
    /// Returns a pool with `threads` threads.
    ///
    /// # Panics
    ///
    /// If `threads` is 0, or the system cannot start a thread.
    pub fn new(threads: usize) -> Self {
        Self::options().threads(threads).build()
    }

    /// Returns a builder. By default the pool has as many threads as the machine can run in parallel.
    pub fn options() -> ThreadPoolOptions {
        ThreadPoolOptions {
            name: "fanline-pool".to_owned(),
            threads: None,
            on_panic: PanicHook::default(),
        }
    }

    /// Returns the global pool of the process, with as many threads as the machine can run in parallel. The
    /// first call creates the pool, which never ends.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub fn global() -> Self {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::options().build()).clone()
    }

    /// Drops all queued actions, and all actions that are scheduled later, and ends the threads. Does not
    /// interrupt running actions.
    pub fn shut_down(&self) {
        self.queue.shut_down();
    }

    /// Returns whether [`shut_down`](ThreadPool::shut_down) was called.
    pub fn is_shut_down(&self) -> bool {
        self.queue.is_shut_down()
    }
}

impl Default for ThreadPool {
    /// Returns the [global](ThreadPool::global) pool.
    fn default() -> Self {
        Self::global()
    }
}

impl Scheduler for ThreadPool {
    type Worker = PoolWorker;

    fn worker(&self) -> PoolWorker {
        self.queue.add_handle();
        PoolWorker {
            lane: Lane::new(Arc::clone(&self.queue)),
            counted: true,
        }
    }

    fn now(&self) -> Time {
        Precise.now()
    }
}

impl Clone for ThreadPool {
    fn clone(&self) -> Self {
        self.queue.add_handle();
        Self {
            queue: Arc::clone(&self.queue),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.queue.drop_handle();
    }
}

impl core::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ThreadPool").finish_non_exhaustive()
    }
}

/// A builder of a [`ThreadPool`]; see [`ThreadPool::options`].
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, scheduler::ThreadPool};
///
/// let pool = ThreadPool::options().threads(2).name("crunch").build();
/// let (tx, rx) = mpsc::channel();
/// pool.schedule(move || tx.send(std::thread::current().name() == Some("crunch")).unwrap()).detach();
/// assert_eq!(rx.recv(), Ok(true));
/// ```
#[must_use = "options do nothing until `build` is called"]
pub struct ThreadPoolOptions {
    name: String,
    threads: Option<usize>,
    on_panic: PanicHook,
}

impl ThreadPoolOptions {
    /// Sets the number of threads.
    ///
    /// # Panics
    ///
    /// If `threads` is 0.
    pub fn threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "`threads` must be at least 1");
        self.threads = Some(threads);
        self
    }

    /// Sets the threads' name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets a hook that gets the payload of each action's panic, on the thread that ran the action.
    pub fn on_panic(mut self, hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        self.on_panic = PanicHook::new(hook);
        self
    }

    /// Builds the pool and starts its threads.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub fn build(self) -> ThreadPool {
        let threads = self
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get));
        let queue = Arc::new(Queue::new());
        let pool = ThreadPool {
            queue: Arc::clone(&queue),
        };
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            let on_panic = self.on_panic.clone();
            std::thread::Builder::new()
                .name(self.name.clone())
                .spawn(move || work(&queue, &on_panic))
                .expect("failed to start a thread for the pool");
        }
        pool
    }
}

impl core::fmt::Debug for ThreadPoolOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ThreadPoolOptions")
            .field("name", &self.name)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Number of actions of one worker that a thread runs before it checks for other workers.
const ACTIONS_BEFORE_YIELD: usize = 64;

/// Runs a thread of the pool.
fn work(queue: &Arc<Queue>, on_panic: &PanicHook) {
    POOL.set(Arc::as_ptr(queue));
    while let Some(lane) = queue.next() {
        let worker = PoolWorker {
            lane: Arc::clone(&lane),
            counted: false,
        };
        for _ in 0..ACTIONS_BEFORE_YIELD {
            let Some(task) = lane.pop_due() else { break };
            on_panic.guard(|| {
                if let Some(due) = task.run(&worker) {
                    // If the pool was shut down in the meantime, `push` drops the periodic task.
                    lane.push(due, task);
                }
            });
        }
        lane.stop_running();
    }
}

impl PoolWorker {
    fn task_queue(&self) -> Weak<dyn TaskQueue> {
        let lane: Weak<Lane> = Arc::downgrade(&self.lane);
        lane
    }

    fn schedule_task(&self, due: Time, (task, guard): task::Scheduled<Self>) -> Guard {
        if self.lane.push(due, task) {
            guard
        } else {
            Guard::closed()
        }
    }
}

impl Worker for PoolWorker {
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
        // If all threads of a pool waited for actions of that pool, no thread could run them.
        POOL.get() == self.lane.queue_ptr()
    }
}

impl Clone for PoolWorker {
    fn clone(&self) -> Self {
        self.lane.queue().add_handle();
        Self {
            lane: Arc::clone(&self.lane),
            counted: true,
        }
    }
}

impl Drop for PoolWorker {
    fn drop(&mut self) {
        if self.counted {
            self.lane.queue().drop_handle();
        }
    }
}

impl core::fmt::Debug for PoolWorker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PoolWorker").finish_non_exhaustive()
    }
}
