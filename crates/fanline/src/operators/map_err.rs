use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`map_err`](crate::ObservableExt::map_err).
///
/// Maps the error with `f`. Values pass unchanged.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::try_from_iter(["1", "x"].map(str::parse::<u32>))
///     .map_err(|error| format!("not a number: {error}"))
///     .subscribe_with(
///         fanline::observer(|n| assert_eq!(*n, 1_u32))
///             .on_error(|error: &String| println!("{error}")),
///     )
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct MapErr<S, F> {
    source: S,
    f: F,
}

impl<S, F> MapErr<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, F, U> Observable for MapErr<S, F>
where
    S: Observable,
    F: FnMut(&S::Error) -> U + Send + 'static,
{
    type Item = S::Item;
    type Error = U;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, U> + Send + 'static,
    {
        self.source.subscribe_with(MapErrObserver {
            observer,
            f: self.f,
        })
    }
}

struct MapErrObserver<O, F> {
    observer: O,
    f: F,
}

impl<T, E, U, O, F> Observer<T, E> for MapErrObserver<O, F>
where
    O: Observer<T, U>,
    F: FnMut(&E) -> U,
{
    fn error(&mut self, error: &E) {
        self.observer.error(&(self.f)(error));
    }

    forward!(next, complete, is_closed);
}

/// The observable returned by [`with_error_type`](crate::ObservableExt::with_error_type).
///
/// Adds an error type to an observable that cannot fail, to combine it with one that can.
///
/// ```
/// use fanline::BoxObservable;
/// use fanline::prelude::*;
///
/// let chains: Vec<BoxObservable<u32, String>> = vec![
///     fanline::of(1).with_error_type().boxed(),
///     fanline::throw(String::from("no")).boxed(),
/// ];
/// assert_eq!(chains.len(), 2);
/// ```
pub struct WithErrorType<S, E> {
    source: S,
    error: PhantomData<fn() -> E>,
}

impl<S, E> WithErrorType<S, E> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            error: PhantomData,
        }
    }
}

impl<S: Clone, E> Clone for WithErrorType<S, E> {
    fn clone(&self) -> Self {
        Self::new(self.source.clone())
    }
}

impl<S: fmt::Debug, E> fmt::Debug for WithErrorType<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithErrorType")
            .field("source", &self.source)
            .finish()
    }
}

impl<S, E> Observable for WithErrorType<S, E>
where
    S: Observable<Error = Infallible>,
    E: 'static,
{
    type Item = S::Item;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, E> + Send + 'static,
    {
        self.source.subscribe_with(WithErrorTypeObserver {
            observer,
            error: PhantomData,
        })
    }
}

struct WithErrorTypeObserver<O, E> {
    observer: O,
    error: PhantomData<fn() -> E>,
}

impl<T, E, O: Observer<T, E>> Observer<T> for WithErrorTypeObserver<O, E> {
    fn error(&mut self, error: &Infallible) {
        match *error {}
    }

    forward!(next, complete, is_closed);
}
