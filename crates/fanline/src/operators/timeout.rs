use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The observable returned by [`timeout`](crate::TimeExt::timeout).
///
/// Fails with the result of `error` if no value arrives within `limit` after the subscription, or after the
/// previous value. The source is then unsubscribed.
///
/// Stores no values. [`TimeExt`](crate::TimeExt#threads) describes which thread emits the error. If the source cannot
/// fail, add an error type with [`with_error_type`](crate::ObservableExt::with_error_type) first. To switch to
/// another source, put [`catch`](crate::CombineExt::catch) after this operator.
///
/// ```
/// use std::time::Duration;
/// use fanline::{Subject, prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let subject = Subject::<u32, &str>::with_error();
/// let guard = subject
///     .source()
///     .timeout_on(Duration::from_secs(1), time.clone(), || "too late")
///     .subscribe_with(observer(|_: &u32| ()).on_error(|error: &&str| println!("{error}")));
/// time.advance_by(Duration::from_secs(1)); // too late
/// assert!(!subject.has_observers());
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct Timeout<S, C, F> {
    source: S,
    limit: Duration,
    scheduler: C,
    error: F,
}

impl<S, C, F> Timeout<S, C, F> {
    pub(super) fn new(source: S, limit: Duration, scheduler: C, error: F) -> Self {
        Self {
            source,
            limit,
            scheduler,
            error,
        }
    }
}

impl<S, C, F> Observable for Timeout<S, C, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
    F: FnOnce() -> S::Error + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let operator = Limited {
            out: Out::new(observer),
            limit: self.limit,
            make_error: Some(self.error),
        };
        timed(self.source, &self.scheduler, operator)
    }
}

struct Limited<O, F> {
    out: Out<O>,
    limit: Duration,
    make_error: Option<F>,
}

impl<T, E, W, O, F> Timed<T, E, W> for Limited<O, F>
where
    O: Observer<T, E> + Send + 'static,
    F: FnOnce() -> E + Send + 'static,
    W: Worker,
{
    fn start(&mut self, alarm: &mut Alarm<W>) {
        alarm.set(alarm.now() + self.limit);
    }

    fn next(&mut self, value: &T, alarm: &mut Alarm<W>) {
        alarm.set(alarm.now() + self.limit);
        self.out.next(value);
    }

    fn next_owned(&mut self, value: T, alarm: &mut Alarm<W>) {
        alarm.set(alarm.now() + self.limit);
        self.out.next_owned(value);
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        self.out.complete();
    }

    fn tick(&mut self, _alarm: &mut Alarm<W>) {
        if let Some(make_error) = self.make_error.take() {
            let error = make_error();
            self.out.error(&error);
        }
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
