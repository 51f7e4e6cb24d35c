use alloc::sync::Arc;
use core::time::Duration;

use super::timed::{Alarm, Timed, gate_of, subscribe};
use super::unicast::{SourceRefs, Unicast};
use super::window_count::Windows;
use crate::{Guard, Observable, Observer, Scheduler, Time, Worker};

/// The observable returned by [`window_time`](crate::TimeExt::window_time) and
/// [`window_time_or_count`](crate::TimeExt::window_time_or_count).
///
/// Emits the values of each `period` as one observable, starting at the subscription.
///
/// A window buffers its values until it is subscribed to, which is possible once; see
/// [`Unicast`](crate::operators::Unicast). When the source completes or fails, so does the open window, and
/// then this observable. An open window continues after the observer of this observable has closed.
///
/// [`window_time_or_count`](crate::TimeExt::window_time_or_count) limits windows to `count` values: a
/// full window completes at once, and the next `period` begins at that moment.
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
///     .window_time_on(Duration::from_secs(1), time.clone())
///     .flat_map(|window| window.clone().sum())
///     .subscribe(|sum| println!("{sum}"));
/// tx.next(1);
/// tx.next(2);
/// time.advance_by(Duration::from_secs(1)); // 3
/// # drop(guard);
/// ```
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (seen, sums) = std::sync::mpsc::channel();
/// let _guard = source
///     .window_time_or_count_on(Duration::from_secs(1), 2, time.clone())
///     .flat_map(|window| window.clone().sum())
///     .subscribe_owned(move |sum| seen.send(sum).expect("receiver exists"));
/// tx.next(1);
/// tx.next(2); // full before the end of the second
/// assert_eq!(sums.try_recv(), Ok(3));
/// ```
#[derive(Clone, Debug)]
pub struct WindowTime<S, C> {
    source: S,
    period: Duration,
    count: usize,
    scheduler: C,
}

impl<S, C> WindowTime<S, C> {
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

impl<S, C> Observable for WindowTime<S, C>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
{
    type Item = Unicast<S::Item, S::Error>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let source_refs = SourceRefs::new();
        let guard = source_refs.guard();
        let gate = gate_of(
            &self.scheduler,
            Windowing {
                windows: Windows::new(observer, Arc::clone(&source_refs)),
                period: self.period,
                count: self.count,
                len: 0,
                until: Time::ZERO,
                source_disconnected: false,
            },
        );
        source_refs.set(gate.guard());
        subscribe(self.source, &gate);
        guard
    }
}

struct Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    windows: Windows<O, T, E>,
    period: Duration,
    count: usize,
    /// Number of values in the open window.
    len: usize,
    until: Time,
    source_disconnected: bool,
}

impl<O, T, E> Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Unicast<T, E>, E>,
{
    fn open<W: Worker>(&mut self, from: Time, alarm: &mut Alarm<W>) {
        self.windows.close();
        self.len = 0;
        self.until = from + self.period;
        alarm.set(self.until);
        self.windows.open();
    }
}

impl<O, T, E, W> Timed<T, E, W> for Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Unicast<T, E>, E> + Send + 'static,
    W: Worker,
{
    fn start(&mut self, alarm: &mut Alarm<W>) {
        self.open(alarm.now(), alarm);
    }

    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        self.windows.next(value);
        self.len += 1;
        if self.len == self.count {
            self.open(alarm.now(), alarm);
        }
    }

    fn error(&mut self, error: &E) {
        self.windows.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        self.windows.complete();
    }

    fn tick(&mut self, alarm: &mut Alarm<W>) {
        // The next period begins at the planned time, so that delays do not accumulate.
        self.open(self.until, alarm);
    }

    fn source_disconnected(&mut self) {
        self.source_disconnected = true;
    }

    fn is_over(&self) -> bool {
        self.source_disconnected || self.windows.is_over()
    }
}
