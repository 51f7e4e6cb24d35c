//! Waits that end at a deadline.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::timer::Timer;
use crate::{Guard, Time};

/// The deadline of a wait. A wait that is ready at once neither reads the clock nor sets the timer.
pub(crate) struct Deadline {
    timer: Timer,
    timeout: Duration,
    /// Set when the wait is pending for the first time.
    due: Option<Time>,
    /// The waker that the timer wakes at the deadline, and the guard of this wake-up.
    alarm: Option<(Waker, Guard)>,
}

impl Deadline {
    pub(crate) fn new(timer: &Timer, timeout: Duration) -> Self {
        Self {
            timer: timer.clone(),
            timeout,
            due: None,
            alarm: None,
        }
    }

    /// Polls a wait. Returns its result, or `None` if the deadline has passed first.
    pub(crate) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        wait: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if let Poll::Ready(result) = wait(context) {
            return Poll::Ready(Some(result));
        }
        let due = *self
            .due
            .get_or_insert_with(|| self.timer.after(self.timeout));
        if self.timer.is_over(due) {
            return Poll::Ready(None);
        }
        // The task that polls may have changed.
        let waker = context.waker();
        if !self
            .alarm
            .as_ref()
            .is_some_and(|(own, _)| own.will_wake(waker))
        {
            let guard = self.timer.wake_at(due, waker.clone());
            self.alarm = Some((waker.clone(), guard));
        }
        Poll::Pending
    }
}
