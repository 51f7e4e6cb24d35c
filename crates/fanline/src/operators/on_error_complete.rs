use core::convert::Infallible;

use crate::{Guard, Observable, Observer};

/// The observable returned by [`on_error_complete`](crate::ObservableExt::on_error_complete).
///
/// Emits the values of the source, and completes when the source completes or fails. The error is dropped.
/// Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("offline")
///     .on_error_complete()
///     .count()
///     .subscribe(|count| assert_eq!(*count, 0))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct OnErrorComplete<S> {
    source: S,
}

impl<S> OnErrorComplete<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S: Observable> Observable for OnErrorComplete<S> {
    type Item = S::Item;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, Infallible> + Send + 'static,
    {
        self.source
            .subscribe_with(OnErrorCompleteObserver { observer })
    }
}

struct OnErrorCompleteObserver<O> {
    observer: O,
}

impl<T, E, O: Observer<T, Infallible>> Observer<T, E> for OnErrorCompleteObserver<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.observer.next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.observer.next_slice(values);
    }

    fn error(&mut self, _error: &E) {
        self.observer.complete();
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    fn is_closed(&self) -> bool {
        self.observer.is_closed()
    }
}
