use crate::operators::forward::{complete, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`default_if_empty`](crate::ObservableExt::default_if_empty).
///
/// Emits `value` if the source completes without a value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::empty::<u32>()
///     .default_if_empty(7)
///     .subscribe(|value| assert_eq!(*value, 7))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DefaultIfEmpty<S, T> {
    source: S,
    value: T,
}

impl<S, T> DefaultIfEmpty<S, T> {
    pub(super) fn new(source: S, value: T) -> Self {
        Self { source, value }
    }
}

impl<S, T> Observable for DefaultIfEmpty<S, T>
where
    S: Observable<Item = T>,
    T: Send + 'static,
{
    type Item = T;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(DefaultIfEmptyObserver {
            observer,
            value: Some(self.value),
        })
    }
}

struct DefaultIfEmptyObserver<O, T> {
    observer: O,
    /// `None` as soon as the source has emitted.
    value: Option<T>,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for DefaultIfEmptyObserver<O, T> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.value = None;
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.value = None;
        self.observer.next_owned(value);
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        if !values.is_empty() {
            self.value = None;
            self.observer.next_slice(values);
        }
    }

    fn complete(&mut self) {
        if let Some(value) = self.value.take() {
            self.observer.next_owned(value);
        }
        complete(&mut self.observer);
    }

    forward!(error, is_closed);
}
