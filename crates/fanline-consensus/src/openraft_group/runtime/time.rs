//! Time that the caller reports.

use std::fmt;
use std::future::Future;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use super::Executor;

/// The library subtracts timeouts from times, so a group starts late enough.
const START: Duration = Duration::from_hours(24);
/// A wait up to this length takes no time. The caller reports the time every few milliseconds, and the library waits
/// for a microsecond to collect finished writes.
const NO_TIME: Duration = Duration::from_micros(2);

/// A time of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Instant(Duration);

impl Instant {
    pub(super) fn from_start(time: Duration) -> Self {
        Instant(START + time)
    }
}

impl openraft::Instant for Instant {
    fn now() -> Self {
        Executor::current().now()
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        Instant(self.0 + time)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        self.0 += time;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, time: Duration) -> Instant {
        Instant(self.0.saturating_sub(time))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, time: Duration) {
        self.0 = self.0.saturating_sub(time);
    }
}

/// Completes at a time.
#[derive(Debug)]
pub(in super::super) struct Sleep {
    deadline: Instant,
    number: u64,
    executor: Weak<Executor>,
}

impl Sleep {
    pub(super) fn until(deadline: Instant) -> Self {
        let executor = Executor::current();
        Sleep {
            deadline,
            number: executor.new_timer(),
            executor: Rc::downgrade(&executor),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(executor) = self.executor.upgrade() else {
            return Poll::Pending;
        };
        if self.deadline <= executor.now() + NO_TIME {
            return Poll::Ready(());
        }
        executor.set_timer(self.deadline, self.number, context.waker());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(executor) = self.executor.upgrade() {
            executor.cancel_timer(self.deadline, self.number);
        }
    }
}

/// A future took too long.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is over")
    }
}

/// A future with a deadline.
pub(in super::super) struct Timeout<T> {
    // Boxed, because code without `unsafe` cannot pin a part of a struct.
    future: Pin<Box<T>>,
    sleep: Sleep,
}

impl<T> Timeout<T> {
    pub(super) fn new(future: T, sleep: Sleep) -> Self {
        Timeout {
            future: Box::pin(future),
            sleep,
        }
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(value) = self.future.as_mut().poll(context) {
            return Poll::Ready(Ok(value));
        }
        Pin::new(&mut self.sleep)
            .poll(context)
            .map(|()| Err(Elapsed))
    }
}
