use super::gate::Out;
use super::join::{First, Join, join};
use super::signal::Signal;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`skip_until`](crate::CombineExt::skip_until).
///
/// Drops values until `notifier` emits, then emits all later values.
///
/// `notifier` is subscribed to first. Completes when this source completes; if `notifier` completes without a
/// value, all values are dropped. Fails with the first error. Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (mut start, started) = fanline::subject::<()>();
/// let _guard = source.skip_until(started).subscribe(|value| println!("{value}"));
/// tx.next(1);
/// start.next(());
/// tx.next(2); // printed
/// ```
#[derive(Clone, Debug)]
pub struct SkipUntil<S, N> {
    source: S,
    notifier: N,
}

impl<S, N> SkipUntil<S, N> {
    pub(super) fn new(source: S, notifier: N) -> Self {
        Self { source, notifier }
    }
}

impl<S, N> Observable for SkipUntil<S, N>
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
        let stage = SkipUntilState {
            out: Out::new(observer),
            open: false,
        };
        join(self.source, Signal(self.notifier), stage, First::Right)
    }
}

struct SkipUntilState<O> {
    out: Out<O>,
    open: bool,
}

impl<T, E, O> Join<T, (), E> for SkipUntilState<O>
where
    O: Observer<T, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        if self.open {
            self.out.next(value);
        }
    }

    fn left_owned(&mut self, value: T) {
        if self.open {
            self.out.next_owned(value);
        }
    }

    fn right(&mut self, (): &()) {
        self.open = true;
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
