//! Operators that emit one `bool`, as soon as it is known.

use crate::operators::forward::complete;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`any`](crate::ObservableExt::any).
///
/// Emits whether `test` holds for any value: `true` at the first such value, otherwise `false` when the
/// source completes. Then completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..).any(|n| n * n > 500).subscribe(|found| assert!(found)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Any<S, F> {
    source: S,
    test: F,
}

impl<S, F> Any<S, F> {
    pub(super) fn new(source: S, test: F) -> Self {
        Self { source, test }
    }
}

impl<S, F> Observable for Any<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> bool + Send + 'static,
{
    type Item = bool;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<bool, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(PredicateObserver {
            observer,
            probe: AnyProbe(self.test),
            done: false,
        })
    }
}

/// The observable returned by [`all`](crate::ObservableExt::all).
///
/// Emits whether `test` holds for all values: `false` at the first value for which it does not, otherwise
/// `true` when the source completes. Then completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..).all(|n| n * n < 500).subscribe(|all| assert!(!all)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct AllMatch<S, F> {
    source: S,
    test: F,
}

impl<S, F> AllMatch<S, F> {
    pub(super) fn new(source: S, test: F) -> Self {
        Self { source, test }
    }
}

impl<S, F> Observable for AllMatch<S, F>
where
    S: Observable,
    F: FnMut(&S::Item) -> bool + Send + 'static,
{
    type Item = bool;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<bool, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(PredicateObserver {
            observer,
            probe: AllProbe(self.test),
            done: false,
        })
    }
}

/// The observable returned by [`contains`](crate::ObservableExt::contains).
///
/// Emits whether the source has a value that equals `value`: `true` at the first such value, otherwise
/// `false` when the source completes. Then completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..).contains(7).subscribe(|found| assert!(found)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Contains<S, T> {
    source: S,
    value: T,
}

impl<S, T> Contains<S, T> {
    pub(super) fn new(source: S, value: T) -> Self {
        Self { source, value }
    }
}

impl<S, T> Observable for Contains<S, T>
where
    S: Observable<Item = T>,
    T: PartialEq + Send + 'static,
{
    type Item = bool;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<bool, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(PredicateObserver {
            observer,
            probe: EqualProbe(self.value),
            done: false,
        })
    }
}

/// The observable returned by [`is_empty`](crate::ObservableExt::is_empty).
///
/// Emits whether the source has no value: `false` at the first value, otherwise `true` when the source
/// completes. Then completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..).is_empty().subscribe(|empty| assert!(!empty)).detach();
/// ```
#[derive(Clone, Debug)]
pub struct IsEmpty<S> {
    source: S,
}

impl<S> IsEmpty<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for IsEmpty<S>
where
    S: Observable,
{
    type Item = bool;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<bool, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(PredicateObserver {
            observer,
            probe: EmptyProbe,
            done: false,
        })
    }
}

/// Tests whether a value determines the result.
trait Probe<T> {
    /// The result of the operator at a value for which `decides` returns `true`. If the source completes
    /// before such a value, the result is the opposite.
    const RESULT: bool;

    fn decides(&mut self, value: &T) -> bool;
}

struct AnyProbe<F>(F);

impl<T, F: FnMut(&T) -> bool> Probe<T> for AnyProbe<F> {
    const RESULT: bool = true;

    #[inline]
    fn decides(&mut self, value: &T) -> bool {
        (self.0)(value)
    }
}

struct AllProbe<F>(F);

impl<T, F: FnMut(&T) -> bool> Probe<T> for AllProbe<F> {
    const RESULT: bool = false;

    #[inline]
    fn decides(&mut self, value: &T) -> bool {
        !(self.0)(value)
    }
}

struct EqualProbe<T>(T);

impl<T: PartialEq> Probe<T> for EqualProbe<T> {
    const RESULT: bool = true;

    #[inline]
    fn decides(&mut self, value: &T) -> bool {
        self.0 == *value
    }
}

struct EmptyProbe;

impl<T> Probe<T> for EmptyProbe {
    const RESULT: bool = false;

    #[inline]
    fn decides(&mut self, _value: &T) -> bool {
        true
    }
}

struct PredicateObserver<O, P> {
    observer: O,
    probe: P,
    done: bool,
}

impl<O, P> PredicateObserver<O, P> {
    fn end<E>(&mut self, result: bool)
    where
        O: Observer<bool, E>,
    {
        self.done = true;
        self.observer.next_owned(result);
        complete(&mut self.observer);
    }
}

impl<T, E, O, P> Observer<T, E> for PredicateObserver<O, P>
where
    O: Observer<bool, E>,
    P: Probe<T>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.done && self.probe.decides(value) {
            self.end(P::RESULT);
        }
    }

    fn error(&mut self, error: &E) {
        if !self.done {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if !self.done {
            self.end(!P::RESULT);
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.done || self.observer.is_closed()
    }
}
