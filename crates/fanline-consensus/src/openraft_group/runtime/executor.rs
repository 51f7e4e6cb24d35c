//! Tasks and timers.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::time::Instant;

type Task = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Executor>>> = const { RefCell::new(None) };
}

/// Places of the tasks that are ready, in order. A waker must be `Sync`, although no other thread ever has one.
#[derive(Default)]
struct Ready(Mutex<VecDeque<usize>>);

impl Ready {
    fn pop(&self) -> Option<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

struct TaskWaker {
    place: usize,
    is_ready: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // All on one thread.
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            let mut ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
            ready.push_back(self.place);
        }
    }
}

/// A place for a task. A later task may take the place, and be woken once in vain.
struct Place {
    /// `None` while the task runs, or if there is none.
    task: Option<Task>,
    waker: Waker,
    state: Arc<TaskWaker>,
}

#[derive(Default)]
struct Tasks {
    places: Vec<Place>,
    free: Vec<usize>,
}

/// The tasks of a group.
pub(in super::super) struct Executor {
    tasks: RefCell<Tasks>,
    ready: Arc<Ready>,
    /// By deadline, and in the order of their creation.
    timers: RefCell<BTreeMap<(Instant, u64), Waker>>,
    timers_created: Cell<u64>,
    now: Cell<Instant>,
    random: Cell<u64>,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.tasks.borrow();
        f.debug_struct("Executor")
            .field("tasks", &(tasks.places.len() - tasks.free.len()))
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Restores the executor that ran before.
struct Enter(Option<Rc<Executor>>);

impl Drop for Enter {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.0.take());
    }
}

impl Executor {
    pub(in super::super) fn new(seed: u64, now: Duration) -> Rc<Self> {
        Rc::new(Executor {
            tasks: RefCell::default(),
            ready: Arc::default(),
            timers: RefCell::default(),
            timers_created: Cell::new(0),
            now: Cell::new(Instant::from_start(now)),
            random: Cell::new(seed),
        })
    }

    /// Returns the executor that runs on this thread.
    pub(super) fn current() -> Rc<Self> {
        let current = CURRENT.with(|current| current.borrow().clone());
        current.expect("the library's code runs in its executor only")
    }

    /// Runs a function that may call the library.
    pub(in super::super) fn enter<T>(self: &Rc<Self>, run: impl FnOnce() -> T) -> T {
        let before = CURRENT.with(|current| current.borrow_mut().replace(self.clone()));
        let _restore = Enter(before);
        run()
    }

    pub(in super::super) fn now(&self) -> Instant {
        self.now.get()
    }

    /// Returns the next random number (SplitMix64).
    pub(super) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        let place = tasks.free.pop().unwrap_or_else(|| {
            let place = tasks.places.len();
            let state = Arc::new(TaskWaker {
                place,
                is_ready: AtomicBool::new(false),
                ready: self.ready.clone(),
            });
            tasks.places.push(Place {
                task: None,
                waker: state.clone().into(),
                state,
            });
            place
        });
        let place = &mut tasks.places[place];
        place.task = Some(Box::pin(task));
        place.waker.wake_by_ref();
    }

    /// Adds a task from outside.
    pub(in super::super) fn spawn_in(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        self.enter(|| self.spawn(task));
    }

    pub(super) fn new_timer(&self) -> u64 {
        let number = self.timers_created.get() + 1;
        self.timers_created.set(number);
        number
    }

    pub(super) fn set_timer(&self, deadline: Instant, number: u64, waker: &Waker) {
        let mut timers = self.timers.borrow_mut();
        timers.insert((deadline, number), waker.clone());
    }

    pub(super) fn cancel_timer(&self, deadline: Instant, number: u64) {
        self.timers.borrow_mut().remove(&(deadline, number));
    }

    /// Lets time pass.
    pub(in super::super) fn pass(&self, time: Duration) {
        let now = self.now.get() + time;
        self.now.set(now);
        let mut timers = self.timers.borrow_mut();
        let later = timers.split_off(&(now + Duration::from_nanos(1), 0));
        let due = std::mem::replace(&mut *timers, later);
        drop(timers);
        due.into_values().for_each(Waker::wake);
    }

    /// Runs the tasks until all wait for something.
    pub(in super::super) fn run(self: &Rc<Self>) {
        self.enter(|| {
            while let Some(place) = self.ready.pop() {
                self.poll(place);
            }
        });
    }

    fn poll(&self, place: usize) {
        let (mut task, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let place = &mut tasks.places[place];
            place.state.is_ready.store(false, Ordering::Relaxed);
            match place.task.take() {
                Some(task) => (task, place.waker.clone()),
                None => return,
            }
        };
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.tasks.borrow_mut().places[place].task = Some(task),
            Poll::Ready(()) => {
                drop(task);
                self.tasks.borrow_mut().free.push(place);
            }
        }
    }

    /// Runs the tasks and a future. Returns `None` if the future waits for something else.
    pub(in super::super) fn complete<T>(
        self: &Rc<Self>,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = std::pin::pin!(future);
        self.enter(|| {
            loop {
                let mut context = Context::from_waker(Waker::noop());
                if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                    return Some(value);
                }
                let place = self.ready.pop()?;
                self.poll(place);
            }
        })
    }

    /// Drops all tasks. They refer to the executor, so it would never be freed otherwise.
    pub(in super::super) fn clear(self: &Rc<Self>) {
        self.enter(|| {
            loop {
                let mut tasks = self.tasks.borrow_mut();
                let Some(place) = tasks.places.pop() else {
                    break;
                };
                drop(tasks);
                drop(place);
            }
        });
    }
}
