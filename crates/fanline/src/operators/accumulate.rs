//! The common part of operators that emit one result when the source completes.

use crate::Observer;
use crate::operators::forward::{complete, forward};

/// Accumulates all values into a result.
pub(super) trait Accumulate<T> {
    /// The type of the result.
    type Output;

    fn add(&mut self, value: &T);

    fn add_owned(&mut self, value: T) {
        self.add(&value);
    }

    fn add_slice(&mut self, values: &[T]) {
        for value in values {
            self.add(value);
        }
    }

    /// Returns the result. Called once, after the last value.
    fn finish(&mut self) -> Option<Self::Output>;
}

/// Emits the accumulator's result when the source completes, then completes. An error is passed on, and the
/// accumulator is dropped with the observer.
pub(super) struct AccumulateObserver<O, A> {
    pub(super) observer: O,
    pub(super) accumulator: A,
}

impl<T, E, O, A> Observer<T, E> for AccumulateObserver<O, A>
where
    A: Accumulate<T>,
    O: Observer<A::Output, E>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.accumulator.add(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.accumulator.add_owned(value);
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        self.accumulator.add_slice(values);
    }

    fn complete(&mut self) {
        if let Some(output) = self.accumulator.finish() {
            self.observer.next_owned(output);
        }
        complete(&mut self.observer);
    }

    forward!(error, is_closed);
}
