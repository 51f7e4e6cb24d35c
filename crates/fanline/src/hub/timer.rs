//! The time source of hubs.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::scheduler::ThreadPool;
use crate::{Guard, Scheduler, Time, Worker};

/// The clock and timer for a hub's timeouts: any [`Scheduler`]. The default is the process's [`ThreadPool`],
/// which starts on first use.
#[derive(Clone, Default)]
pub(crate) struct Timer {
    scheduler: Option<Arc<dyn Alarms>>,
}

trait Alarms: Send + Sync {
    fn now(&self) -> Time;
    fn wake_at(&self, due: Time, waker: Waker) -> Guard;
}

struct On<S>(S);

impl<S: Scheduler> Alarms for On<S> {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wake_at(&self, due: Time, waker: Waker) -> Guard {
        self.0
            .worker()
            .schedule_at(due, waker, |waker, _| waker.wake())
    }
}

impl Timer {
    /// Returns a timer on a scheduler.
    pub(crate) fn on(scheduler: impl Scheduler) -> Self {
        Self {
            scheduler: Some(Arc::new(On(scheduler))),
        }
    }

    pub(crate) fn after(&self, delay: Duration) -> Time {
        match &self.scheduler {
            Some(scheduler) => scheduler.now() + delay,
            None => Scheduler::now(&ThreadPool::global()) + delay,
        }
    }

    pub(crate) fn is_over(&self, due: Time) -> bool {
        self.after(Duration::ZERO) >= due
    }

    /// Wakes the waker at `due`, unless the returned guard is dropped before that time.
    pub(crate) fn wake_at(&self, due: Time, waker: Waker) -> Guard {
        match &self.scheduler {
            Some(scheduler) => scheduler.wake_at(due, waker),
            None => On(ThreadPool::global()).wake_at(due, waker),
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}
