use core::convert::Infallible;

use crate::{Guard, Observable, Observer};

/// The observable returned by [`on_error_return`](crate::ObservableExt::on_error_return).
///
/// On an error, emits the result of `f` and completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("offline").on_error_return(|_| 0).subscribe(|v| assert_eq!(*v, 0)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct OnErrorReturn<S, F> {
    source: S,
    f: F,
}

impl<S, F> OnErrorReturn<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, F> Observable for OnErrorReturn<S, F>
where
    S: Observable,
    F: FnMut(&S::Error) -> S::Item + Send + 'static,
{
    type Item = S::Item;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, Infallible> + Send + 'static,
    {
        self.source.subscribe_with(OnErrorReturnObserver {
            observer,
            f: self.f,
        })
    }
}

struct OnErrorReturnObserver<O, F> {
    observer: O,
    f: F,
}

impl<T, E, O, F> Observer<T, E> for OnErrorReturnObserver<O, F>
where
    O: Observer<T, Infallible>,
    F: FnMut(&E) -> T,
{
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

    fn error(&mut self, error: &E) {
        self.observer.next_owned((self.f)(error));
        if !self.observer.is_closed() {
            self.observer.complete();
        }
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    fn is_closed(&self) -> bool {
        self.observer.is_closed()
    }
}
