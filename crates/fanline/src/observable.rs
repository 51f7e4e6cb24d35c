//! The [`Observable`] contract: sources of values that an observer subscribes to.

use crate::{BoxObserver, Guard, Observer, observer};
use alloc::boxed::Box;

/// A source that calls an observer: the head of a chain, or a chain of operators.
///
/// It relates to [`IntoObservable`] as `Iterator` relates to `IntoIterator`. The first operator converts a
/// source or subject, which can be subscribed to many times, into an observable. Each operator takes its
/// upstream observable by value. A chain can be subscribed to only once, but it can be cloned before that, if
/// its closures are `Clone`. Nothing happens before the subscription.
///
/// The operators are methods of [`ObservableExt`](crate::ObservableExt). A function takes or returns `impl
/// Observable<Item = u32, Error = Infallible>`, or the boxed form [`BoxObservable`], if its types must be
/// named.
///
/// ```
/// use std::convert::Infallible;
/// use fanline::prelude::*;
///
/// fn evens(
///     numbers: impl IntoObservable<Item = u32, Error = Infallible>,
/// ) -> impl Observable<Item = u32, Error = Infallible> {
///     numbers.filter(|n| n % 2 == 0)
/// }
///
/// evens(fanline::range(1..=3)).subscribe(|n| assert_eq!(*n, 2)).detach();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an observable",
    label = "not an observable",
    note = "a source or a subject becomes one with `into_observable()`, or with an operator; a parameter of type `impl IntoObservable` accepts all of them",
    note = "an iterator becomes one with `fanline::from_iter(..)`, a value with `fanline::of(..)`"
)]
pub trait Observable: Sized {
    /// The type of the values.
    type Item;
    /// The type of the error; [`Infallible`](std::convert::Infallible) for an observable that cannot fail.
    type Error;

    /// Subscribes the observer. Values that are available at once are delivered before this returns.
    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, Self::Error> + Send + 'static;

    /// Calls `next` with each value. Errors and completion are ignored; [`observer`](crate::observer())
    /// takes closures for them.
    fn subscribe<F>(self, next: F) -> Guard
    where
        F: FnMut(&Self::Item) + Send + 'static,
    {
        self.subscribe_with(observer(next))
    }
}

/// A conversion into an [`Observable`]: implemented by all observables, sources, and subjects.
///
/// ```
/// use fanline::{Subject, prelude::*};
///
/// fn log<T: std::fmt::Debug, E>(what: impl IntoObservable<Item = T, Error = E>) -> Guard {
///     what.into_observable().subscribe(|value| println!("{value:?}"))
/// }
///
/// let s = Subject::<u32>::new();
/// let guards = [log(s.clone()), log(s.source().map(|n| n * 2)), log(fanline::of("a value"))];
/// # drop(guards);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an observable nor turned into one",
    label = "not an observable",
    note = "an iterator becomes one with `fanline::from_iter(..)`, a value with `fanline::of(..)`"
)]
pub trait IntoObservable: Sized {
    /// The type of the values.
    type Item;
    /// The type of the error.
    type Error;
    /// The type of the observable.
    type Observable: Observable<Item = Self::Item, Error = Self::Error>;

    /// Converts this into an observable, without subscribing.
    fn into_observable(self) -> Self::Observable;
}

// Makes compiler messages name `IntoObservable`, the bound in the caller's code, instead of `Observable`.
#[diagnostic::do_not_recommend]
impl<S: Observable> IntoObservable for S {
    type Item = S::Item;
    type Error = S::Error;
    type Observable = S;

    fn into_observable(self) -> S {
        self
    }
}

/// An observable that hides its chain of operators in a box: for struct fields, for lists of different
/// chains, and for short types at module boundaries. Costs one allocation, and one indirect call per value.
///
/// ```
/// use fanline::{BoxObservable, prelude::*};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let chains: Vec<BoxObservable<u32>> = vec![
///     source.clone().map(|n| n * 2).boxed(),
///     source.filter(|n| n % 2 == 0).take(1).boxed(),
/// ];
/// fanline::operators::merge(chains).subscribe(|n| println!("{n}")).detach();
/// tx.next(2); // 4 2
/// ```
pub struct BoxObservable<T, E = core::convert::Infallible> {
    subscribe: Box<dyn FnOnce(BoxObserver<T, E>) -> Guard + Send>,
}

impl<T, E> BoxObservable<T, E> {
    pub(crate) fn new<S>(source: S) -> Self
    where
        S: Observable<Item = T, Error = E> + Send + 'static,
        T: 'static,
        E: 'static,
    {
        Self {
            subscribe: Box::new(move |observer| source.subscribe_with(observer)),
        }
    }
}

impl<T: 'static, E: 'static> Observable for BoxObservable<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        (self.subscribe)(Box::new(observer))
    }
}

impl<T, E> core::fmt::Debug for BoxObservable<T, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BoxObservable").finish_non_exhaustive()
    }
}
