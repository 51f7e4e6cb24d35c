use alloc::vec::Vec;
use core::cmp::Ordering;

use super::forward::{emit_all, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`sorted`](crate::ObservableExt::sorted).
///
/// When the source completes, emits all values in order, then completes. Equal values stay in the order of
/// their arrival. Fails with the source, without the values. Stores all values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2, 3, 1])
///     .sorted()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Sorted<S> {
    source: S,
}

impl<S> Sorted<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Sorted<S>
where
    S: Observable<Item: Ord + Clone + Send + 'static>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        SortedBy::new(self.source, S::Item::cmp).subscribe_with(observer)
    }
}

/// The observable returned by [`sorted_by`](crate::ObservableExt::sorted_by).
///
/// Like [`sorted`](crate::ObservableExt::sorted), but `compare` defines the order.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([2, 3, 1])
///     .sorted_by(|a, b| b.cmp(a))
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [3, 2, 1]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct SortedBy<S, F> {
    source: S,
    compare: F,
}

impl<S, F> SortedBy<S, F> {
    pub(super) fn new(source: S, compare: F) -> Self {
        Self { source, compare }
    }
}

impl<S, F> Observable for SortedBy<S, F>
where
    S: Observable<Item: Clone + Send + 'static>,
    F: FnMut(&S::Item, &S::Item) -> Ordering + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(SortedObserver {
            observer,
            compare: self.compare,
            values: Vec::new(),
        })
    }
}

struct SortedObserver<O, F, T> {
    observer: O,
    compare: F,
    values: Vec<T>,
}

impl<T, E, F, O> Observer<T, E> for SortedObserver<O, F, T>
where
    T: Clone,
    O: Observer<T, E>,
    F: FnMut(&T, &T) -> Ordering,
{
    fn next(&mut self, value: &T) {
        self.values.push(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.values.push(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.values.extend_from_slice(values);
    }

    fn complete(&mut self) {
        let mut values = core::mem::take(&mut self.values);
        values.sort_by(&mut self.compare);
        if emit_all(&mut self.observer, values) {
            self.observer.complete();
        }
    }

    forward!(error, is_closed);
}
