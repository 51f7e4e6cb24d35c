//! A series of sources for the same observer: each source is subscribed to after the previous one has ended.
//! The stack does not grow with their number.

use alloc::sync::Arc;

use crate::Guard;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// One step of a [`Series`]: a source to subscribe to, with the observer and the state that determines the
/// next source.
///
/// It owns the observer and moves into the subscription, so nothing is shared, and no lock is taken for a
/// value. When its source ends and another must follow, pass the next step to [`Step::start_next`].
pub(super) trait Step: Sized + Send + 'static {
    fn start(self, series: &Arc<Series<Self>>) -> Guard;
}

/// Starts [`Step`]s one after the other.
///
/// A step that ends during its own start stores the next step here. The caller of that start then starts the
/// next step, in a loop instead of a recursion.
pub(super) struct Series<P> {
    state: Mutex<State<P>>,
    /// Whether the series is closed. Sources that emit in a loop read it to stop. Relaxed, because decisions
    /// are made under the lock.
    closed: AtomicBool,
}

struct State<P> {
    closed: bool,
    starting: bool,
    next: Option<P>,
    guard: Guard,
}

impl<P: Step> Series<P> {
    pub(super) fn begin(step: P) -> Guard {
        let series = Arc::new(Self {
            state: Mutex::new(State {
                closed: false,
                starting: false,
                next: None,
                guard: Guard::closed(),
            }),
            closed: AtomicBool::new(false),
        });
        let guard = Guard::registered(Arc::clone(&series) as Arc<dyn Registry>, 0);
        series.start_next(step);
        guard
    }

    /// Starts the step, now or when the start in progress returns.
    pub(super) fn start_next(self: &Arc<Self>, step: P) {
        let finished = {
            let mut state = lock(&self.state);
            if state.closed {
                drop(state);
                drop(step);
                return;
            }
            if state.starting {
                state.next = Some(step);
                return;
            }
            state.starting = true;
            core::mem::take(&mut state.guard)
        };
        let mut panicked = CloseUnless {
            series: self,
            done: false,
        };
        drop(finished);
        let mut step = step;
        loop {
            let guard = step.start(self);
            let mut state = lock(&self.state);
            if state.closed {
                drop(state);
                drop(guard);
                break;
            }
            let Some(next) = state.next.take() else {
                state.starting = false;
                state.guard = guard;
                break;
            };
            drop(state);
            drop(guard);
            step = next;
        }
        panicked.done = true;
    }

    /// Closes the series. No other step starts.
    pub(super) fn close(&self) {
        drop(self.take_all());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn take_all(&self) -> (Guard, Option<P>) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.closed = true;
        (core::mem::take(&mut state.guard), state.next.take())
    }
}

impl<P: Step> Registry for Series<P> {
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        let (guard, next) = self.take_all();
        guard.wait_and_close();
        drop(next);
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}

/// Closes the series if a start panics.
struct CloseUnless<'a, P: Step> {
    series: &'a Series<P>,
    done: bool,
}

impl<P: Step> Drop for CloseUnless<'_, P> {
    fn drop(&mut self) {
        if !self.done {
            self.series.close();
        }
    }
}
