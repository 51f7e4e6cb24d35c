use std::any::Any;
use std::cell::Cell;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::panics::PanicHook;
use super::pool_queue::{Lane, Queue};
use super::task::{self, Timetable};
use super::{Scheduler, Worker};
use crate::{Clock, Guard, Precise, Time};

/// A fixed number of threads, which work for all workers.
///
/// Each worker is a lane: its actions run one after the other, on whichever thread is free, and those
/// of unlike workers run side by side. A lane gives way to others after a few dozen actions. Delayed
/// actions occupy no thread until they are due.
///
/// An action that panics ends alone: the process's panic hook reports it, then the pool's own hook
/// ([`on_panic`](ThreadPoolOptions::on_panic)) gets the payload, and the thread goes on. Actions that
/// block occupy a thread; as many of them as there are threads stop the pool until one is done.
///
/// The threads, named `fanline-pool`, end when every handle of the pool and of its workers is gone
/// and all work is done.
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

/// A serial lane of a [`ThreadPool`].
pub struct PoolWorker {
    lane: Arc<Lane>,
    /// The handle that is passed to actions does not keep the pool going.
    counted: bool,
}

thread_local! {
    /// Which pool the thread belongs to; only ever compared.
    static POOL: Cell<*const Queue> = const { Cell::new(std::ptr::null()) };
}

impl ThreadPool {
    /// A pool with `threads` threads.
    ///
    /// # Panics
    ///
    /// When `threads` is 0, and when the system refuses to start one.
    pub fn new(threads: usize) -> Self {
        Self::options().threads(threads).build()
    }

    /// A pool that is as wished; by default with as many threads as the machine runs at once.
    pub fn options() -> ThreadPoolOptions {
        ThreadPoolOptions {
            name: "fanline-pool".to_owned(),
            threads: None,
            on_panic: PanicHook::default(),
        }
    }

    /// The pool of the process, with as many threads as the machine runs at once. It is made by the
    /// first call and never ends.
    ///
    /// # Panics
    ///
    /// When the system refuses to start a thread.
    pub fn global() -> Self {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::options().build()).clone()
    }

    /// Drops what waits, and from now on what is scheduled; the threads end. Actions that run are not
    /// interrupted.
    pub fn shut_down(&self) {
        self.queue.shut_down();
    }

    /// Whether [`shut_down`](ThreadPool::shut_down) was called.
    pub fn is_shut_down(&self) -> bool {
        self.queue.is_shut_down()
    }
}

impl Default for ThreadPool {
    /// The [global](ThreadPool::global) pool.
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

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPool").finish_non_exhaustive()
    }
}

/// How a [`ThreadPool`] is to be; from [`ThreadPool::options`].
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
    /// How many threads.
    ///
    /// # Panics
    ///
    /// When `threads` is 0.
    pub fn threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "`threads` must be at least 1");
        self.threads = Some(threads);
        self
    }

    /// The threads' name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Called on the pool's thread with what an action panicked with.
    pub fn on_panic(mut self, hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        self.on_panic = PanicHook::new(hook);
        self
    }

    /// Starts the threads.
    ///
    /// # Panics
    ///
    /// When the system refuses to start one.
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
                .expect("a thread for the pool can be started");
        }
        pool
    }
}

impl std::fmt::Debug for ThreadPoolOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPoolOptions")
            .field("name", &self.name)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// How many actions of one lane a thread runs before it looks at other lanes.
const TURN_ACTIONS_MAX: usize = 64;

/// A thread of the pool.
fn work(queue: &Arc<Queue>, on_panic: &PanicHook) {
    POOL.set(Arc::as_ptr(queue));
    while let Some(lane) = queue.next() {
        let worker = PoolWorker {
            lane: Arc::clone(&lane),
            counted: false,
        };
        for _ in 0..TURN_ACTIONS_MAX {
            let Some(task) = lane.pop_due() else { break };
            on_panic.guard(|| {
                if let Some(due) = task.run(&worker) {
                    // A pool that was shut down meanwhile drops the task; so it ends here.
                    lane.push(due, task);
                }
            });
        }
        lane.end_turn();
    }
}

impl PoolWorker {
    fn timetable(&self) -> Weak<dyn Timetable> {
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
        // Were all its threads to wait for lanes of their own pool, none would be left to run them.
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

impl std::fmt::Debug for PoolWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolWorker").finish_non_exhaustive()
    }
}
