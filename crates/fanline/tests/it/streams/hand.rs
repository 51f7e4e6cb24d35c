//! A source and a scheduler that a test drives by hand.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use fanline::{BoxObserver, Guard, Observable, Observer, Scheduler, Time, Worker};

/// Has at most one observer, and calls it when told.
pub(super) struct Hand<T, E = Infallible> {
    state: Arc<Mutex<State<T, E>>>,
    ready: Vec<T>,
}

struct State<T, E> {
    observer: Option<BoxObserver<T, E>>,
    is_unsubscribed: bool,
}

impl<T, E> Clone for Hand<T, E>
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

impl<T, E> Hand<T, E> {
    pub(super) fn new() -> Self {
        Self::with_ready(Vec::new())
    }

    /// Delivers these while it is subscribed.
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

impl<T: Send + 'static, E: 'static> Observable for Hand<T, E> {
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

/// Runs one action when told; knows no time.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<VecDeque<Action>>>);

impl Turns {
    /// Runs the action that has waited longest.
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

impl Scheduler for Turns {
    type Worker = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn now(&self) -> Time {
        Time::ZERO
    }
}

impl Worker for Turns {
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

/// Counts how often it is woken.
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
