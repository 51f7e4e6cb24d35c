use crate::operators::forward::complete;
use crate::{Guard, Observable, Observer};

/// The reason why there is no single value; see [`ObservableExt::single`](crate::ObservableExt::single).
///
/// ```
/// use fanline::{operators::NotSingle, prelude::*};
///
/// fanline::range(1..=2).single().subscribe(|one| assert_eq!(*one, Err(NotSingle::Many))).detach();
/// fanline::empty::<u32>().single().subscribe(|one| assert_eq!(*one, Err(NotSingle::Empty))).detach();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotSingle {
    /// The source completed without a value.
    Empty,
    /// There was a second value.
    Many,
}

impl core::fmt::Display for NotSingle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Empty => "no value where one was expected",
            Self::Many => "several values where one was expected",
        })
    }
}

impl core::error::Error for NotSingle {}

/// The observable returned by [`single`](crate::ObservableExt::single).
///
/// Emits `Ok` with the source's only value when the source completes. Emits `Err` when it completes without
/// a value, or at once when there is a second one. Then completes. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2])
///     .single()
///     .subscribe(|value| assert!(value.is_err()))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Single<S> {
    source: S,
}

impl<S> Single<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Single<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = Result<S::Item, NotSingle>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(SingleObserver {
            observer,
            value: None,
            done: false,
        })
    }
}

struct SingleObserver<O, T> {
    observer: O,
    value: Option<T>,
    done: bool,
}

impl<O, T> SingleObserver<O, T> {
    fn end<E>(&mut self, result: Result<T, NotSingle>)
    where
        O: Observer<Result<T, NotSingle>, E>,
    {
        self.done = true;
        self.observer.next_owned(result);
        complete(&mut self.observer);
    }
}

impl<T, E, O> Observer<T, E> for SingleObserver<O, T>
where
    T: Clone,
    O: Observer<Result<T, NotSingle>, E>,
{
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        if self.done {
            return;
        }
        if self.value.is_none() {
            self.value = Some(value);
        } else {
            self.value = None;
            self.end(Err(NotSingle::Many));
        }
    }

    fn error(&mut self, error: &E) {
        if !self.done {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if !self.done {
            let result = self.value.take().ok_or(NotSingle::Empty);
            self.end(result);
        }
    }

    fn is_closed(&self) -> bool {
        self.done || self.observer.is_closed()
    }
}
