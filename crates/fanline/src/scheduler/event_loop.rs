use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::time::Duration;

use super::Scheduler;
use super::panics::PanicHook;
use super::thread_worker::{Config, Driver, ThreadWorker};
use crate::{Clock, Precise, Time};

/// A scheduler with one thread for all workers. Actions can be scheduled from any thread, and run one after
/// the other.
///
/// The thread starts with the first action. It ends when all handles of the loop and of its workers are
/// dropped and the queue is empty. With [`exit_when_idle`](EventLoopOptions::exit_when_idle), the thread also
/// ends when it has been idle for a given time; the next action then starts another thread. There are never
/// two threads at the same time.
///
/// A panic ends only its own action. The process's panic hook reports the panic, the loop's own hook
/// ([`on_panic`](EventLoopOptions::on_panic)) gets the payload, and the loop continues. Scheduling an action
/// panics if the system cannot start the thread.
///
/// An application that already has a loop, for example for its user interface, can drive the event loop
/// itself; see [`manual`](EventLoop::manual).
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, scheduler::EventLoop};
///
/// let (tx, rx) = mpsc::channel();
/// let event_loop = EventLoop::new();
/// for n in 0..3 {
///     let tx = tx.clone();
///     event_loop.schedule(move || tx.send(n).unwrap()).detach();
/// }
/// drop(tx);
/// assert_eq!(rx.iter().collect::<Vec<_>>(), [0, 1, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct EventLoop {
    worker: ThreadWorker,
}

impl EventLoop {
    /// Returns a loop with its own thread, named `fanline-loop`.
    pub fn new() -> Self {
        Self::options().build()
    }

    /// Returns a builder of a loop with its own thread.
    pub fn options() -> EventLoopOptions {
        EventLoopOptions {
            name: "fanline-loop".to_owned(),
            idle_max: None,
            on_panic: PanicHook::default(),
        }
    }

    /// Returns a loop without a thread, for an application that calls the driver from its own loop. When an
    /// action must run earlier than the time that the driver returned, the scheduling thread calls `wake`.
    /// `wake` must interrupt the application's sleep, and must not call the driver itself.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use fanline::{Scheduler, scheduler::EventLoop};
    ///
    /// let pokes = Arc::new(AtomicU32::new(0));
    /// let poked = pokes.clone();
    /// let (event_loop, mut driver) = EventLoop::manual(move || {
    ///     poked.fetch_add(1, Ordering::Relaxed);
    /// });
    /// event_loop.schedule(|| println!("on the thread that owns the driver")).detach();
    /// assert_eq!(pokes.load(Ordering::Relaxed), 1);
    /// assert_eq!(driver.run_pending(), None);
    /// ```
    pub fn manual(wake: impl Fn() + Send + Sync + 'static) -> (Self, LoopDriver) {
        let worker = ThreadWorker::new(Config {
            driver: Driver::External(Box::new(wake)),
            on_panic: PanicHook::default(),
        });
        let driver = LoopDriver {
            worker: worker.uncounted(),
        };
        (Self { worker }, driver)
    }

    /// Drops all queued actions, and all actions that are scheduled later. Does not interrupt the running
    /// action.
    pub fn shut_down(&self) {
        self.worker.shut_down();
    }

    /// Returns whether [`shut_down`](EventLoop::shut_down) was called.
    pub fn is_shut_down(&self) -> bool {
        self.worker.is_shut_down()
    }

    /// Returns the number of queued actions, including delayed ones.
    pub fn queued(&self) -> usize {
        self.worker.queued()
    }
}

impl Default for EventLoop {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler for EventLoop {
    type Worker = ThreadWorker;

    fn worker(&self) -> ThreadWorker {
        self.worker.clone()
    }

    fn now(&self) -> Time {
        Precise.now()
    }
}

/// A builder of an [`EventLoop`]; see [`EventLoop::options`].
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use fanline::{Scheduler, scheduler::EventLoop};
///
/// let (tx, panics) = mpsc::channel();
/// let event_loop = EventLoop::options()
///     .name("orders")
///     .exit_when_idle(Duration::from_secs(10))
///     .on_panic(move |payload| tx.send(payload.is::<&str>()).unwrap())
///     .build();
/// # std::panic::set_hook(Box::new(|_| ()));
/// event_loop.schedule(|| panic!("no such order")).detach();
/// assert_eq!(panics.recv(), Ok(true));
/// ```
#[must_use = "options do nothing until `build` is called"]
pub struct EventLoopOptions {
    name: String,
    idle_max: Option<Duration>,
    on_panic: PanicHook,
}

impl EventLoopOptions {
    /// Sets the thread's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Makes the thread end when it has been idle for `after`. The loop remains usable.
    pub fn exit_when_idle(mut self, after: Duration) -> Self {
        self.idle_max = Some(after);
        self
    }

    /// Sets a hook that gets the payload of each action's panic, on the loop's thread.
    pub fn on_panic(mut self, hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        self.on_panic = PanicHook::new(hook);
        self
    }

    /// Builds the loop. Its thread starts with the first action.
    pub fn build(self) -> EventLoop {
        let worker = ThreadWorker::new(Config {
            driver: Driver::Own {
                name: self.name,
                idle_max: self.idle_max,
            },
            on_panic: self.on_panic,
        });
        EventLoop { worker }
    }
}

impl core::fmt::Debug for EventLoopOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EventLoopOptions")
            .field("name", &self.name)
            .field("exit_when_idle", &self.idle_max)
            .finish_non_exhaustive()
    }
}

/// The driver of a [manual](EventLoop::manual) loop: runs actions on the calling thread. A panic of an action
/// unwinds to the caller, and the other actions stay queued.
///
/// ```
/// use fanline::{Scheduler, scheduler::EventLoop};
///
/// let (event_loop, mut driver) = EventLoop::manual(|| ());
/// std::thread::spawn(move || event_loop.schedule(|| println!("here")).detach()).join().unwrap();
/// driver.run(); // until no more actions can come
/// ```
#[derive(Debug)]
pub struct LoopDriver {
    worker: ThreadWorker,
}

impl LoopDriver {
    /// Runs the actions that are due, and returns the due time of the next one. Actions that become due
    /// during the call are left for the next call. The loop does not call `wake` for them, so call this
    /// method again at the returned time.
    pub fn run_pending(&mut self) -> Option<Time> {
        self.worker.run_pending()
    }

    /// Runs actions when they become due, and blocks until then. Returns when the loop is [shut
    /// down](EventLoop::shut_down), or when all its handles are dropped and the queue is empty.
    pub fn run(&mut self) {
        self.worker.run_to_end();
    }
}
