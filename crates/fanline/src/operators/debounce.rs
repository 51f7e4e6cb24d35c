use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The observable returned by [`debounce`](crate::TimeExt::debounce).
///
/// Emits a value if no other value follows within `quiet`. Drops a value if another one follows sooner.
///
/// On completion, the pending value is emitted first. An error is passed on at once, and the pending value is
/// dropped. Stores one value. [`TimeExt`](crate::TimeExt#threads) describes which thread emits. When a new value moves
/// the deadline, the timer is not rescheduled.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, keys) = fanline::subject::<char>();
/// let guard = keys
///     .debounce_on(Duration::from_millis(300), time.clone())
///     .subscribe(|key| println!("search after {key}"));
/// tx.next('a');
/// time.advance_by(Duration::from_millis(200));
/// tx.next('b');
/// time.advance_by(Duration::from_millis(300)); // search after b
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct Debounce<S, C> {
    source: S,
    quiet: Duration,
    scheduler: C,
}

impl<S, C> Debounce<S, C> {
    pub(super) fn new(source: S, quiet: Duration, scheduler: C) -> Self {
        Self {
            source,
            quiet,
            scheduler,
        }
    }
}

impl<S, C> Observable for Debounce<S, C>
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
        let operator = Debounced {
            out: Out::new(observer),
            quiet: self.quiet,
            pending: None,
        };
        timed(self.source, &self.scheduler, operator)
    }
}

struct Debounced<T, O> {
    out: Out<O>,
    quiet: Duration,
    pending: Option<T>,
}

impl<T, O> Debounced<T, O> {
    fn emit<E>(&mut self)
    where
        O: Observer<T, E>,
    {
        if let Some(value) = self.pending.take() {
            self.out.next_owned(value);
        }
    }
}

impl<T, E, W, O> Timed<T, E, W> for Debounced<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        self.next_owned(value.clone(), alarm);
    }

    fn next_owned(&mut self, value: T, alarm: &mut Alarm<W>) {
        self.pending = Some(value);
        alarm.set(alarm.now() + self.quiet);
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        self.emit();
        self.out.complete();
    }

    fn tick(&mut self, _alarm: &mut Alarm<W>) {
        self.emit();
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
