//! One source after the other for the same observer: what follows an end is subscribed without
//! growing the stack.

use std::sync::Arc;

use crate::Guard;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// A source about to be subscribed, with the observer and all that decides what comes after.
///
/// It owns the observer and moves into the subscription, so nothing is shared and nothing locked per
/// value. When its source ends and another has to follow, the next episode goes to
/// [`Series::follow`].
pub(super) trait Episode: Sized + Send + 'static {
    fn start(self, series: &Arc<Series<Self>>) -> Guard;
}

/// Starts [`Episode`]s one after the other.
///
/// An episode that is over inside its own start leaves the next one here, and the caller of that start
/// goes on with it: a loop where there would be recursion.
pub(super) struct Series<P> {
    state: Mutex<State<P>>,
    /// Says to a source in a loop that it can stop; what is decided is decided under the lock, so
    /// relaxed loads and stores suffice.
    closed: AtomicBool,
}

struct State<P> {
    closed: bool,
    starting: bool,
    next: Option<P>,
    guard: Guard,
}

impl<P: Episode> Series<P> {
    pub(super) fn begin(episode: P) -> Guard {
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
        series.follow(episode);
        guard
    }

    /// Starts the episode, now or when the start in progress returns.
    pub(super) fn follow(self: &Arc<Self>, episode: P) {
        let finished = {
            let mut state = lock(&self.state);
            if state.closed {
                drop(state);
                drop(episode);
                return;
            }
            if state.starting {
                state.next = Some(episode);
                return;
            }
            state.starting = true;
            std::mem::take(&mut state.guard)
        };
        let mut panicked = CloseUnless {
            series: self,
            done: false,
        };
        drop(finished);
        let mut episode = episode;
        loop {
            let guard = episode.start(self);
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
            episode = next;
        }
        panicked.done = true;
    }

    /// Nothing follows.
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
        (std::mem::take(&mut state.guard), state.next.take())
    }
}

impl<P: Episode> Registry for Series<P> {
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        let (guard, next) = self.take_all();
        guard.unsubscribe_and_wait();
        drop(next);
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}

/// A start that panics leaves nothing that could follow.
struct CloseUnless<'a, P: Episode> {
    series: &'a Series<P>,
    done: bool,
}

impl<P: Episode> Drop for CloseUnless<'_, P> {
    fn drop(&mut self) {
        if !self.done {
            self.series.close();
        }
    }
}
