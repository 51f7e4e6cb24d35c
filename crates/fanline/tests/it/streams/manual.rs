//! A source and a scheduler that a test drives manually.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use fanline::{BoxObserver, Guard, Observable, Observer, Scheduler, Time, Worker};

/// A source with at most one observer, which emits on request.
pub(super) struct ManualSource<T, E = Infallible> {
    state: Arc<Mutex<State<T, E>>>,
    ready: Vec<T>,
}

struct State<T, E> {
    observer: Option<BoxObserver<T, E>>,
    is_unsubscribed: bool,
}

impl<T, E> Clone for ManualSource<T, E>
where
    T: Clone,
{
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            ready: self.ready.clone(),
        }
    }
}

impl<T, E> ManualSource<T, E> {
    pub(super) fn new() -> Self {
        Self::with_ready(Vec::new())
    }

    /// Returns a source that delivers these values inside each subscription.
    pub(super) fn with_ready(ready: Vec<T>) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                observer: None,
                is_unsubscribed: false,
            })),
            ready,
        }
    }

    pub(super) fn next(&self, value: T) {
        self.call(|observer| observer.next(&value));
    }

    pub(super) fn next_owned(&self, value: T) {
        self.call(|observer| observer.next_owned(value));
    }

    pub(super) fn next_slice(&self, values: &[T]) {
        self.call(|observer| observer.next_slice(values));
    }

    pub(super) fn complete(&self) {
        self.call(|observer| observer.complete());
        self.dispose();
    }

    pub(super) fn error(&self, error: E) {
        self.call(|observer| observer.error(&error));
        self.dispose();
    }

    /// Drops the observer without an end.
    pub(super) fn dispose(&self) {
        let observer = self.state.lock().unwrap().observer.take();
        drop(observer);
    }

    pub(super) fn has_observer(&self) -> bool {
        self.state.lock().unwrap().observer.is_some()
    }

    fn call(&self, call: impl FnOnce(&mut BoxObserver<T, E>)) {
        let Some(mut observer) = self.state.lock().unwrap().observer.take() else {
            return;
        };
        call(&mut observer);
        let mut state = self.state.lock().unwrap();
        if !state.is_unsubscribed && !observer.is_closed() {
            state.observer = Some(observer);
            return;
        }
        drop(state);
        drop(observer);
    }
}

impl<T: Send + 'static, E: 'static> Observable for ManualSource<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        for value in &self.ready {
            observer.next(value);
        }
        self.state.lock().unwrap().observer = Some(Box::new(observer));
        let state = self.state;
        Guard::new(move || {
            let mut state = state.lock().unwrap();
            state.is_unsubscribed = true;
            let observer = state.observer.take();
            drop(state);
            drop(observer);
        })
    }
}

type Action = Box<dyn FnOnce() + Send>;

/// A scheduler that runs one action on request, and has no time.
#[derive(Clone, Default)]
pub(super) struct ManualScheduler(Arc<Mutex<VecDeque<Action>>>);

impl ManualScheduler {
    /// Runs the oldest action. Returns whether there was one.
    pub(super) fn run_one(&self) -> bool {
        let action = self.0.lock().unwrap().pop_front();
        action.map(|action| action()).is_some()
    }

    pub(super) fn run_all(&self) {
        while self.run_one() {}
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Scheduler for ManualScheduler {
    type Worker = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn now(&self) -> Time {
        Time::ZERO
    }
}

impl Worker for ManualScheduler {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn schedule_at<S, A>(&self, _due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        let worker = self.clone();
        let action = Box::new(move || action(state, &worker));
        self.0.lock().unwrap().push_back(action);
        Guard::closed()
    }

    fn schedule_periodic<S, A>(&self, _period: Duration, _state: S, _action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        unreachable!("nothing here is periodic")
    }

    fn runs_here(&self) -> bool {
        true
    }
}

/// A waker that counts wake-ups.
#[derive(Default)]
pub(super) struct Wakes(std::sync::atomic::AtomicUsize);

impl Wakes {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let wakes = Arc::new(Self::default());
        (wakes.clone(), Waker::from(wakes))
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}
