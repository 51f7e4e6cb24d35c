use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The value of each period that [`throttle`](crate::TimeExt::throttle) emits.
///
/// ```
/// use std::{sync::{Arc, Mutex}, time::Duration};
/// use fanline::{prelude::*, operators::Edge, scheduler::VirtualTime};
///
/// for (edge, expected) in
///     [(Edge::Leading, vec![1]), (Edge::Trailing, vec![3]), (Edge::Both, vec![1, 3])]
/// {
///     let time = VirtualTime::new();
///     let (mut tx, source) = fanline::subject::<u32>();
///     let seen = Arc::new(Mutex::new(Vec::new()));
///     let values = seen.clone();
///     source
///         .throttle_on(Duration::from_secs(1), edge, time.clone())
///         .subscribe(move |n| values.lock().unwrap().push(*n))
///         .detach();
///     tx.next_slice(&[1, 2, 3]);
///     time.advance_by(Duration::from_secs(1));
///     assert_eq!(*seen.lock().unwrap(), expected);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edge {
    /// The first value, at once.
    Leading,
    /// The last value, at the end of the period.
    Trailing,
    /// The first value at once, and at the end of the period the last value, if the period had more than one.
    Both,
}

/// The observable returned by [`throttle`](crate::TimeExt::throttle).
///
/// Emits one or two values of each `period`. A period begins with the first value after the end of the
/// previous one; [`Edge`](crate::operators::Edge) determines the emitted values.
///
/// On completion, the pending value is emitted first. An error is passed on at once, and the pending value is
/// dropped. Stores one value. [`TimeExt`](crate::TimeExt#threads) describes which thread emits.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, operators::Edge, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source
///     .throttle_on(Duration::from_secs(1), Edge::Both, time.clone())
///     .subscribe(|value| println!("{value}"));
/// tx.next(1); // 1
/// tx.next(2);
/// tx.next(3);
/// time.advance_by(Duration::from_secs(1)); // 3
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct Throttle<S, C> {
    source: S,
    period: Duration,
    edge: Edge,
    scheduler: C,
}

impl<S, C> Throttle<S, C> {
    pub(super) fn new(source: S, period: Duration, edge: Edge, scheduler: C) -> Self {
        Self {
            source,
            period,
            edge,
            scheduler,
        }
    }
}

impl<S, C> Observable for Throttle<S, C>
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
        let operator = Throttled {
            out: Out::new(observer),
            period: self.period,
            edge: self.edge,
            pending: None,
        };
        timed(self.source, &self.scheduler, operator)
    }
}

/// Throttles values; a period is in progress while the alarm is set.
struct Throttled<T, O> {
    out: Out<O>,
    period: Duration,
    edge: Edge,
    pending: Option<T>,
}

impl<T, E, W, O> Timed<T, E, W> for Throttled<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        let first = !alarm.is_set();
        if first {
            alarm.set(alarm.now() + self.period);
        }
        if first && self.edge != Edge::Trailing {
            self.out.next(value);
        } else if self.edge != Edge::Leading {
            self.pending = Some(value.clone());
        }
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        if let Some(value) = self.pending.take() {
            self.out.next_owned(value);
        }
        self.out.complete();
    }

    fn tick(&mut self, alarm: &mut Alarm<W>) {
        let Some(value) = self.pending.take() else {
            return;
        };
        if self.edge == Edge::Both {
            // A later value waits for the end of another period; otherwise the rate would double.
            alarm.set(alarm.now() + self.period);
        }
        self.out.next_owned(value);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
