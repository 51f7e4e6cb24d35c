use core::convert::Infallible;

use crate::operators::forward::complete;
use crate::{Guard, Observable, Observer};

/// A call of an observer, as a value.
///
/// ```
/// use fanline::{Notification, prelude::*};
///
/// fanline::of(1)
///     .materialize()
///     .subscribe(|what| match what {
///         Notification::Next(value) => println!("{value}"),
///         Notification::Error(error) => match *error {},
///         Notification::Complete => println!("done"),
///     })
///     .detach();
/// ```
///
/// Observers receive no other kind of event, so a `match` may name all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notification<T, E = Infallible> {
    /// A value.
    Next(T),
    /// The error of the source.
    Error(E),
    /// The completion of the source.
    Complete,
}

/// The observable returned by [`materialize`](crate::ObservableExt::materialize).
///
/// Emits the values, and then the completion or the error, as
/// [`Notification`](crate::operators::Notification)s. Then completes. Cannot fail.
///
/// ```
/// use fanline::operators::Notification;
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("late")
///     .start_with([1])
///     .materialize()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [Notification::Next(1), Notification::Error("late")]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Materialize<S> {
    source: S,
}

impl<S> Materialize<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Materialize<S>
where
    S: Observable,
    S::Item: Clone,
    S::Error: Clone,
{
    type Item = Notification<S::Item, S::Error>;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Notification<S::Item, S::Error>> + Send + 'static,
    {
        self.source.subscribe_with(MaterializeObserver { observer })
    }
}

struct MaterializeObserver<O> {
    observer: O,
}

impl<O> MaterializeObserver<O> {
    fn end<T, E>(&mut self, end: Notification<T, E>)
    where
        O: Observer<Notification<T, E>>,
    {
        self.observer.next_owned(end);
        complete(&mut self.observer);
    }
}

impl<T, E, O> Observer<T, E> for MaterializeObserver<O>
where
    T: Clone,
    E: Clone,
    O: Observer<Notification<T, E>>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.observer.next_owned(Notification::Next(value));
    }

    fn error(&mut self, error: &E) {
        self.end(Notification::Error(error.clone()));
    }

    fn complete(&mut self) {
        self.end(Notification::Complete);
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.observer.is_closed()
    }
}

/// The observable returned by [`dematerialize`](crate::ObservableExt::dematerialize).
///
/// Emits, fails, and completes according to the [`Notification`](crate::operators::Notification)s: reverses
/// [`materialize`](crate::ObservableExt::materialize). Completes or fails at the first notification of a
/// completion or an error.
///
/// ```
/// use fanline::operators::Notification;
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=3)
///     .materialize()
///     .filter(|notification| !matches!(notification, Notification::Next(2)))
///     .dematerialize()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Dematerialize<S> {
    source: S,
}

impl<S> Dematerialize<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S, T, E> Observable for Dematerialize<S>
where
    S: Observable<Item = Notification<T, E>, Error = Infallible>,
{
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.source.subscribe_with(DematerializeObserver {
            observer,
            done: false,
        })
    }
}

struct DematerializeObserver<O> {
    observer: O,
    done: bool,
}

impl<T, E, O: Observer<T, E>> Observer<Notification<T, E>> for DematerializeObserver<O> {
    #[inline]
    fn next(&mut self, value: &Notification<T, E>) {
        if self.done {
            return;
        }
        match value {
            Notification::Next(value) => self.observer.next(value),
            Notification::Error(error) => {
                self.done = true;
                self.observer.error(error);
            }
            Notification::Complete => Observer::<Notification<T, E>>::complete(self),
        }
    }

    #[inline]
    fn next_owned(&mut self, value: Notification<T, E>) {
        match value {
            Notification::Next(value) if !self.done => self.observer.next_owned(value),
            end => self.next(&end),
        }
    }

    fn error(&mut self, error: &Infallible) {
        match *error {}
    }

    fn complete(&mut self) {
        if !self.done {
            self.done = true;
            self.observer.complete();
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.done || self.observer.is_closed()
    }
}
