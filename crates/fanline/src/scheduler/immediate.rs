use core::ops::ControlFlow;
use core::time::Duration;

use super::{Scheduler, Worker};
use crate::{Clock, Guard, Precise, Time};

/// A scheduler that runs actions inside the call that schedules them.
///
/// A delay blocks the caller. A periodic action blocks the caller until it returns `Break`. The returned
/// guard is already closed. If an action schedules another action, the other action runs inside it, on the
/// same stack. For recursion, use [`CurrentThread`](super::CurrentThread). Panics unwind to the caller.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fanline::{Scheduler, scheduler::Immediate};
///
/// let ran = Arc::new(Mutex::new(false));
/// let flag = ran.clone();
/// Immediate.schedule(move || *flag.lock().unwrap() = true).detach();
/// assert!(*ran.lock().unwrap());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Immediate;

impl Scheduler for Immediate {
    type Worker = ImmediateWorker;

    fn worker(&self) -> ImmediateWorker {
        ImmediateWorker
    }

    fn now(&self) -> Time {
        Precise.now()
    }
}

/// The worker of [`Immediate`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ImmediateWorker;

impl Worker for ImmediateWorker {
    fn now(&self) -> Time {
        Precise.now()
    }

    fn schedule_at<S, A>(&self, due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        sleep_until(due);
        action(state, self);
        Guard::closed()
    }

    fn schedule<S, A>(&self, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        action(state, self);
        Guard::closed()
    }

    fn schedule_periodic<S, A>(&self, period: Duration, mut state: S, mut action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        let mut due = Precise.now();
        loop {
            due = due + period;
            sleep_until(due);
            if action(&mut state, self).is_break() {
                return Guard::closed();
            }
        }
    }

    fn runs_here(&self) -> bool {
        true
    }

    fn runs_at_once(&self) -> bool {
        true
    }
}

fn sleep_until(due: Time) {
    let delay = Precise.until(due);
    if !delay.is_zero() {
        std::thread::sleep(delay);
    }
}
