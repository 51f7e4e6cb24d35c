use super::gate::Out;
use super::join::{First, Join, join};
use super::signal::Signal;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`take_until`](crate::CombineExt::take_until).
///
/// Emits values until `notifier` emits, then completes.
///
/// `notifier` is subscribed to first. If it emits at once, no value passes. If it completes without a value,
/// this observable continues. Fails with the first error. Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (mut stop, stopped) = fanline::subject::<()>();
/// let _guard = source.take_until(stopped).subscribe(|value| println!("{value}"));
/// tx.next(1);
/// stop.next(());
/// assert!(!tx.has_observers());
/// ```
#[derive(Clone, Debug)]
pub struct TakeUntil<S, N> {
    source: S,
    notifier: N,
}

impl<S, N> TakeUntil<S, N> {
    pub(super) fn new(source: S, notifier: N) -> Self {
        Self { source, notifier }
    }
}

impl<S, N> Observable for TakeUntil<S, N>
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
        let stage = TakeUntilState {
            out: Out::new(observer),
        };
        join(self.source, Signal(self.notifier), stage, First::Right)
    }
}

struct TakeUntilState<O> {
    out: Out<O>,
}

impl<T, E, O> Join<T, (), E> for TakeUntilState<O>
where
    O: Observer<T, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        self.out.next(value);
    }

    fn left_owned(&mut self, value: T) {
        self.out.next_owned(value);
    }

    fn right(&mut self, (): &()) {
        self.out.complete();
    }

    fn left_complete(&mut self) {
        self.out.complete();
    }

    fn right_complete(&mut self) {}

    fn left_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
