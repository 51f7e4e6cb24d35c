use core::convert::Infallible;
use core::ops::ControlFlow;
use core::time::Duration;

use crate::scheduler::ThreadPool;
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// Emits 0, 1, 2, and so on: 0 after `period`, then one number every `period`, on the process's thread pool;
/// see [`interval_on`].
///
/// # Panics
///
/// If `period` is zero.
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use fanline::prelude::*;
///
/// let (tx, rx) = mpsc::channel();
/// let guard = fanline::interval(Duration::from_millis(1)).subscribe(move |n| tx.send(*n).unwrap());
/// assert_eq!(rx.iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
/// guard.unsubscribe_and_wait();
/// ```
pub fn interval(period: Duration) -> Interval<ThreadPool> {
    interval_on(period, ThreadPool::global())
}

/// Emits 0, 1, 2, and so on: 0 after `period`, then one number every `period`. Never completes.
///
/// Emits on a worker of `scheduler`. If a value is late, later values are not delayed by it, and no value is
/// skipped.
///
/// # Panics
///
/// If `period` is zero.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, operators::interval_on, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let guard = interval_on(Duration::from_secs(1), time.clone()).subscribe(|n| println!("{n}"));
/// time.advance_by(Duration::from_secs(3)); // 0 1 2
/// # drop(guard);
/// ```
pub fn interval_on<C: Scheduler>(period: Duration, scheduler: C) -> Interval<C> {
    assert!(!period.is_zero(), "`period` must be longer than zero");
    Interval { period, scheduler }
}

/// An observable that emits periodically; see [`interval`].
#[derive(Clone, Debug)]
pub struct Interval<C> {
    period: Duration,
    scheduler: C,
}

impl<C: Scheduler> Observable for Interval<C> {
    type Item = u64;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<u64> + Send + 'static,
    {
        self.scheduler.worker().schedule_periodic(
            self.period,
            (0_u64, observer),
            |(count, observer), _| {
                if observer.is_closed() {
                    return ControlFlow::Break(());
                }
                observer.next_owned(*count);
                *count += 1;
                if observer.is_closed() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        )
    }
}

/// Emits 0 after `delay` and completes, on the process's thread pool; see [`timer_on`].
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use fanline::prelude::*;
///
/// let (tx, rx) = mpsc::channel();
/// fanline::timer(Duration::from_millis(1)).subscribe(move |_| tx.send("now").unwrap()).detach();
/// assert_eq!(rx.recv(), Ok("now"));
/// ```
pub fn timer(delay: Duration) -> TimerSource<ThreadPool> {
    timer_on(delay, ThreadPool::global())
}

/// Emits 0 after `delay` and completes, on a worker of `scheduler`.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, operators::timer_on, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let guard = timer_on(Duration::from_secs(1), time.clone()).subscribe(|_| println!("now"));
/// time.advance_by(Duration::from_secs(1));
/// # drop(guard);
/// ```
pub fn timer_on<C: Scheduler>(delay: Duration, scheduler: C) -> TimerSource<C> {
    TimerSource { delay, scheduler }
}

/// An observable that emits once after a delay; see [`timer`].
#[derive(Clone, Debug)]
pub struct TimerSource<C> {
    delay: Duration,
    scheduler: C,
}

impl<C: Scheduler> Observable for TimerSource<C> {
    type Item = u64;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<u64> + Send + 'static,
    {
        self.scheduler
            .worker()
            .schedule_after(self.delay, observer, |mut observer, _| {
                if observer.is_closed() {
                    return;
                }
                observer.next_owned(0);
                if !observer.is_closed() {
                    observer.complete();
                }
            })
    }
}
