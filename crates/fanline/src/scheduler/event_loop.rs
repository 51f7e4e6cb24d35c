use std::any::Any;
use std::time::Duration;

use super::Scheduler;
use super::panics::PanicHook;
use super::thread_lane::{Driver, Manner, ThreadWorker};
use crate::{Clock, Precise, Time};

/// One thread for all workers: what is scheduled, from any thread, runs one after the other.
///
/// The thread starts with the first action. It ends when every handle of the loop and of its workers
/// is gone and the queue is empty, or before that after [`exit_when_idle`](EventLoopOptions::exit_when_idle);
/// the next action then starts another, without two ever running at once.
///
/// An action that panics ends alone: the process's panic hook reports it, then the loop's own hook
/// ([`on_panic`](EventLoopOptions::on_panic)) gets the payload, and the loop goes on. Scheduling
/// panics when the system refuses to start the thread.
///
/// An application that has a loop already, such as one for its user interface, drives one by
/// [`manual`](EventLoop::manual).
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
    /// A loop with a thread of its own, named `fanline-loop`.
    pub fn new() -> Self {
        Self::options().build()
    }

    /// A loop with a thread that is as wished.
    pub fn options() -> EventLoopOptions {
        EventLoopOptions {
            name: "fanline-loop".to_owned(),
            idle_max: None,
            on_panic: PanicHook::default(),
        }
    }

    /// A loop without a thread, for one that exists: its owner calls the driver. `wake` is called, on
    /// the thread that schedules, whenever the driver should come by sooner than it last heard: it
    /// pokes a loop that sleeps in the system, and must not call the driver itself.
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
        let worker = ThreadWorker::new(Manner {
            driver: Driver::Visitor(Box::new(wake)),
            on_panic: PanicHook::default(),
        });
        let driver = LoopDriver {
            worker: worker.uncounted(),
        };
        (Self { worker }, driver)
    }

    /// Drops what is queued, and from now on what is scheduled. The action that runs is not
    /// interrupted.
    pub fn shut_down(&self) {
        self.worker.shut_down();
    }

    /// Whether [`shut_down`](EventLoop::shut_down) was called.
    pub fn is_shut_down(&self) -> bool {
        self.worker.is_shut_down()
    }

    /// How many actions wait, delayed ones included.
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

/// How an [`EventLoop`] is to be; from [`EventLoop::options`].
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
    /// The thread's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Ends the thread when it had nothing to do for this long. The loop remains usable.
    pub fn exit_when_idle(mut self, after: Duration) -> Self {
        self.idle_max = Some(after);
        self
    }

    /// Called on the loop's thread with what an action panicked with.
    pub fn on_panic(mut self, hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        self.on_panic = PanicHook::new(hook);
        self
    }

    /// Makes the loop. Its thread starts with the first action.
    pub fn build(self) -> EventLoop {
        let worker = ThreadWorker::new(Manner {
            driver: Driver::Own {
                name: self.name,
                idle_max: self.idle_max,
            },
            on_panic: self.on_panic,
        });
        EventLoop { worker }
    }
}

impl std::fmt::Debug for EventLoopOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLoopOptions")
            .field("name", &self.name)
            .field("exit_when_idle", &self.idle_max)
            .finish_non_exhaustive()
    }
}

/// Runs the actions of a [manual](EventLoop::manual) loop on the thread that calls it. A panic of an
/// action unwinds to that caller; what else is queued stays queued.
///
/// ```
/// use fanline::{Scheduler, scheduler::EventLoop};
///
/// let (event_loop, mut driver) = EventLoop::manual(|| ());
/// std::thread::spawn(move || event_loop.schedule(|| println!("here")).detach()).join().unwrap();
/// driver.run(); // until nothing more can come
/// ```
#[derive(Debug)]
pub struct LoopDriver {
    worker: ThreadWorker,
}

impl LoopDriver {
    /// Runs the actions that are due, and gives back when the next one will be. Actions that become
    /// due meanwhile are left for the next call; the loop's `wake` is then not called for them, so
    /// come again at the moment given back.
    pub fn run_pending(&mut self) -> Option<Time> {
        self.worker.run_pending()
    }

    /// Runs actions as they come and become due, blocking in between, until the loop is
    /// [shut down](EventLoop::shut_down), or all its handles are gone and the queue is empty.
    pub fn run(&mut self) {
        self.worker.run_to_end();
    }
}
