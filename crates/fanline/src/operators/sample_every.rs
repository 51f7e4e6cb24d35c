use core::time::Duration;

use super::gate::Out;
use super::timed::{Alarm, Timed, timed};
use crate::{Guard, Observable, Observer, Scheduler, Time, Worker};

/// The observable returned by [`sample`](crate::TimeExt::sample).
///
/// Emits the latest value every `period`, if there is a new one.
///
/// Completes at once when the source completes; a value that was not emitted until then is dropped. An error
/// is passed on at once. Stores one value. [`TimeExt`](crate::TimeExt#threads) describes which thread emits.
/// [`sample_when`](crate::CombineExt::sample_when) uses another source instead of a clock.
///
/// # Panics
///
/// If `period` is zero.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source.sample_on(Duration::from_secs(1), time.clone()).subscribe(|v| println!("{v}"));
/// tx.next(1);
/// tx.next(2);
/// time.advance_by(Duration::from_secs(1)); // 2
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct SampleEvery<S, C> {
    source: S,
    period: Duration,
    scheduler: C,
}

impl<S, C> SampleEvery<S, C> {
    pub(super) fn new(source: S, period: Duration, scheduler: C) -> Self {
        assert!(!period.is_zero(), "`period` must be longer than zero");
        Self {
            source,
            period,
            scheduler,
        }
    }
}

impl<S, C> Observable for SampleEvery<S, C>
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
        let operator = Sampler {
            out: Out::new(observer),
            period: self.period,
            next_at: Time::ZERO,
            latest: None,
        };
        timed(self.source, &self.scheduler, operator)
    }
}

struct Sampler<T, O> {
    out: Out<O>,
    period: Duration,
    next_at: Time,
    latest: Option<T>,
}

impl<T, E, W, O> Timed<T, E, W> for Sampler<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    fn start(&mut self, alarm: &mut Alarm<W>) {
        self.next_at = alarm.now() + self.period;
        alarm.set(self.next_at);
    }

    fn next(&mut self, value: &T, _alarm: &mut Alarm<W>) {
        self.latest = Some(value.clone());
    }

    fn next_owned(&mut self, value: T, _alarm: &mut Alarm<W>) {
        self.latest = Some(value);
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn complete(&mut self, _alarm: &mut Alarm<W>) {
        self.out.complete();
    }

    fn tick(&mut self, alarm: &mut Alarm<W>) {
        // The next period begins at the planned time, so that delays do not accumulate.
        self.next_at = self.next_at + self.period;
        alarm.set(self.next_at);
        if let Some(value) = self.latest.take() {
            self.out.next_owned(value);
        }
    }

    fn source_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
