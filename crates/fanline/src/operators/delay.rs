use alloc::collections::VecDeque;
use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Time, Worker};

/// The observable returned by [`delay`](crate::TimeExt::delay).
///
/// Delays each value and the completion by `delay`.
///
/// An error is passed on at once, and the delayed values are dropped. The number of delayed values is
/// unbounded. [`TimeExt`](crate::TimeExt#threads) describes which thread emits.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source.delay_on(Duration::from_secs(1), time.clone()).subscribe(|v| println!("{v}"));
/// tx.next(1);
/// time.advance_by(Duration::from_secs(1)); // 1
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct Delay<S, C> {
    source: S,
    delay: Duration,
    scheduler: C,
}

impl<S, C> Delay<S, C> {
    pub(super) fn new(source: S, delay: Duration, scheduler: C) -> Self {
        Self {
            source,
            delay,
            scheduler,
        }
    }
}

impl<S, C> Observable for Delay<S, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let operator = Delayed {
            out: Out::new(observer),
            delay: self.delay,
            queue: VecDeque::new(),
        };
        timed(self.source, &self.scheduler, operator)
    }
}

struct Delayed<T, O> {
    out: Out<O>,
    delay: Duration,
    /// Due times and delayed values, in the order of the due times. `None` in place of a value is the
    /// completion.
    queue: VecDeque<(Time, Option<T>)>,
}

impl<T, O> Delayed<T, O> {
    fn push<W: Worker>(&mut self, value: Option<T>, alarm: &mut Alarm<W>) {
        let due = alarm.now() + self.delay;
        self.queue.push_back((due, value));
        if !alarm.is_set() {
            alarm.set(due);
        }
    }
}

impl<T, E, W, O> Timed<T, E, W> for Delayed<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        self.push(Some(value.clone()), alarm);
    }

    fn next_owned(&mut self, value: T, alarm: &mut Alarm<W>) {
        self.push(Some(value), alarm);
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, alarm: &mut Alarm<W>) {
        self.push(None, alarm);
    }

    fn tick(&mut self, alarm: &mut Alarm<W>) {
        let now = alarm.now();
        while let Some((due, _)) = self.queue.front() {
            if *due > now {
                alarm.set(*due);
                return;
            }
            match self.queue.pop_front() {
                Some((_, Some(value))) => self.out.next_owned(value),
                Some((_, None)) | None => self.out.complete(),
            }
            if self.out.is_closed() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
