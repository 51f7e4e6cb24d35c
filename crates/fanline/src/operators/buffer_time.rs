use alloc::vec::Vec;
use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Time, Worker};

/// The observable returned by [`buffer_time`](crate::TimeExt::buffer_time) and
/// [`buffer_time_or_count`](crate::TimeExt::buffer_time_or_count).
///
/// Emits the values of each `period` as one `Vec`, which is empty if there were none.
///
/// On completion, the remaining values are emitted first, if there are any. An error is passed on at once,
/// and the remaining values are dropped. The number of stored values is unbounded;
/// [`buffer_time_or_count`](crate::TimeExt::buffer_time_or_count) limits it: it also emits a `Vec` as
/// soon as there are `count` values, and the next `period` begins at that moment.
/// [`TimeExt`](crate::TimeExt#threads) describes which thread emits.
///
/// # Panics
///
/// If `period` or `count` is zero.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source
///     .buffer_time_on(Duration::from_secs(1), time.clone())
///     .subscribe(|values| println!("{values:?}"));
/// tx.next(1);
/// tx.next(2);
/// time.advance_by(Duration::from_secs(1)); // [1, 2]
/// # drop(guard);
/// ```
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (seen, full) = std::sync::mpsc::channel();
/// let _guard = source
///     .buffer_time_or_count_on(Duration::from_secs(1), 2, time.clone())
///     .subscribe_owned(move |values| seen.send(values).expect("receiver exists"));
/// tx.next(1);
/// tx.next(2); // full before the end of the second
/// assert_eq!(full.try_recv(), Ok(vec![1, 2]));
/// tx.next(3);
/// time.advance_by(Duration::from_secs(1));
/// assert_eq!(full.try_recv(), Ok(vec![3]));
/// ```
#[derive(Clone, Debug)]
pub struct BufferTime<S, C> {
    source: S,
    period: Duration,
    count: usize,
    scheduler: C,
}

impl<S, C> BufferTime<S, C> {
    pub(super) fn new(source: S, period: Duration, count: usize, scheduler: C) -> Self {
        assert!(!period.is_zero(), "`period` must be longer than zero");
        assert!(count > 0, "`count` must be at least 1");
        Self {
            source,
            period,
            count,
            scheduler,
        }
    }
}

impl<S, C> Observable for BufferTime<S, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = Vec<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Vec<S::Item>, S::Error> + Send + 'static,
    {
        let operator = Buffering {
            out: Out::new(observer),
            period: self.period,
            count: self.count,
            buffer: Vec::new(),
            until: Time::ZERO,
        };
        timed(self.source, &self.scheduler, operator)
    }
}

struct Buffering<T, O> {
    out: Out<O>,
    period: Duration,
    count: usize,
    buffer: Vec<T>,
    until: Time,
}

impl<T, O> Buffering<T, O> {
    fn emit<E, W: Worker>(&mut self, from: Time, alarm: &mut Alarm<W>)
    where
        O: Observer<Vec<T>, E>,
    {
        self.until = from + self.period;
        alarm.set(self.until);
        self.out.next_owned(core::mem::take(&mut self.buffer));
    }
}

impl<T, E, W, O> Timed<T, E, W> for Buffering<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<Vec<T>, E> + Send + 'static,
    W: Worker,
{
    fn start(&mut self, alarm: &mut Alarm<W>) {
        self.until = alarm.now() + self.period;
        alarm.set(self.until);
    }

    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        self.next_owned(value.clone(), alarm);
    }

    fn next_owned(&mut self, value: T, alarm: &mut Alarm<W>) {
        self.buffer.push(value);
        if self.buffer.len() == self.count {
            self.emit(alarm.now(), alarm);
        }
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        if !self.buffer.is_empty() {
            self.out.next_owned(core::mem::take(&mut self.buffer));
        }
        self.out.complete();
    }

    fn tick(&mut self, alarm: &mut Alarm<W>) {
        // The next period begins at the planned time, so that delays do not accumulate.
        self.emit(self.until, alarm);
    }

    fn source_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
