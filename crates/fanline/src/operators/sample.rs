use super::gate::Out;
use super::join::{First, Join, join};
use super::signal::Signal;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`sample_when`](crate::CombineExt::sample_when).
///
/// Emits the latest value whenever `sampler` emits, if there was a new value since the last emission.
///
/// Completes when the source or `sampler` completes; a value that was not emitted until then is dropped.
/// Fails with the first error. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut reading, readings) = fanline::subject::<u32>();
/// let (mut tick, ticks) = fanline::subject::<()>();
/// let _guard = readings.sample_when(ticks).subscribe(|value| println!("{value}"));
/// reading.next(1);
/// reading.next(2);
/// tick.next(()); // 2
/// tick.next(()); // nothing new
/// ```
#[derive(Clone, Debug)]
pub struct Sample<S, N> {
    source: S,
    sampler: N,
}

impl<S, N> Sample<S, N> {
    pub(super) fn new(source: S, sampler: N) -> Self {
        Self { source, sampler }
    }
}

impl<S, N> Observable for Sample<S, N>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    N: Observable<Error = S::Error>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let stage = Sampler {
            out: Out::new(observer),
            latest: None,
        };
        join(self.source, Signal(self.sampler), stage, First::Left)
    }
}

struct Sampler<T, O> {
    out: Out<O>,
    latest: Option<T>,
}

impl<T, E, O> Join<T, (), E> for Sampler<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        self.latest = Some(value.clone());
    }

    fn left_owned(&mut self, value: T) {
        self.latest = Some(value);
    }

    fn right(&mut self, (): &()) {
        if let Some(value) = self.latest.take() {
            self.out.next_owned(value);
        }
    }

    fn left_complete(&mut self) {
        self.out.complete();
    }

    fn right_complete(&mut self) {
        self.out.complete();
    }

    fn left_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn right_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
