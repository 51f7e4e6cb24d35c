use crate::operators::accumulate::{Accumulate, AccumulateObserver};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`fold`](crate::ObservableExt::fold).
///
/// Emits, when the source completes, the result of folding all values with `f`, starting from `initial`. If
/// there were no values, emits `initial` itself.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "b", "c"])
///     .fold(String::new(), |text, part| text + part)
///     .subscribe(|text| assert_eq!(text, "abc"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Fold<S, A, F> {
    source: S,
    state: A,
    f: F,
}

impl<S, A, F> Fold<S, A, F> {
    pub(super) fn new(source: S, state: A, f: F) -> Self {
        Self { source, state, f }
    }
}

impl<S, A, F> Observable for Fold<S, A, F>
where
    S: Observable,
    A: Send + 'static,
    F: FnMut(A, &S::Item) -> A + Send + 'static,
{
    type Item = A;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Folded {
                state: Some(self.state),
                f: self.f,
            },
        })
    }
}

struct Folded<A, F> {
    /// `None` while `f` runs. If `f` panics, it stays `None`.
    state: Option<A>,
    f: F,
}

impl<T, A, F: FnMut(A, &T) -> A> Accumulate<T> for Folded<A, F> {
    type Output = A;

    #[inline]
    fn add(&mut self, value: &T) {
        if let Some(state) = self.state.take() {
            self.state = Some((self.f)(state, value));
        }
    }

    fn finish(&mut self) -> Option<A> {
        self.state.take()
    }
}

/// The observable returned by [`reduce`](crate::ObservableExt::reduce).
///
/// Emits, when the source completes, the result of folding all values with `f`, starting from the first
/// one. Emits nothing if there were no values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2, 3, 7])
///     .reduce(|product, n| product * n)
///     .subscribe(|product| assert_eq!(*product, 42))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Reduce<S, F> {
    source: S,
    f: F,
}

impl<S, F> Reduce<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, F> Observable for Reduce<S, F>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    F: FnMut(S::Item, &S::Item) -> S::Item + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(AccumulateObserver {
            observer,
            accumulator: Reduced {
                state: None,
                f: self.f,
            },
        })
    }
}

struct Reduced<T, F> {
    state: Option<T>,
    f: F,
}

impl<T: Clone, F: FnMut(T, &T) -> T> Accumulate<T> for Reduced<T, F> {
    type Output = T;

    #[inline]
    fn add(&mut self, value: &T) {
        self.state = Some(match self.state.take() {
            Some(state) => (self.f)(state, value),
            None => value.clone(),
        });
    }

    #[inline]
    fn add_owned(&mut self, value: T) {
        self.state = Some(match self.state.take() {
            Some(state) => (self.f)(state, &value),
            None => value,
        });
    }

    fn finish(&mut self) -> Option<T> {
        self.state.take()
    }
}
