use core::hash::Hash;
use std::collections::HashSet;

use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`distinct`](crate::ObservableExt::distinct).
///
/// Emits each distinct value once, on its first occurrence. Stores all distinct values: memory grows with
/// their number.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2, 1, 3, 2])
///     .distinct()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Distinct<S> {
    source: S,
}

impl<S> Distinct<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Distinct<S>
where
    S: Observable,
    S::Item: Clone + Hash + Eq + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        DistinctByKey::new(self.source, S::Item::clone).subscribe_with(observer)
    }
}

/// The observable returned by [`distinct_by_key`](crate::ObservableExt::distinct_by_key).
///
/// Emits the first value of each key. Stores all keys.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "B", "A", "c"])
///     .distinct_by_key(|name| name.to_lowercase())
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, ["a", "B", "c"]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DistinctByKey<S, F> {
    source: S,
    key: F,
}

impl<S, F> DistinctByKey<S, F> {
    pub(super) fn new(source: S, key: F) -> Self {
        Self { source, key }
    }
}

impl<S, F, K> Observable for DistinctByKey<S, F>
where
    S: Observable,
    K: Hash + Eq + Send + 'static,
    F: FnMut(&S::Item) -> K + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(DistinctObserver {
            observer,
            key: self.key,
            seen: HashSet::new(),
        })
    }
}

struct DistinctObserver<O, F, K> {
    observer: O,
    key: F,
    seen: HashSet<K>,
}

impl<T, E, O, F, K> Observer<T, E> for DistinctObserver<O, F, K>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> K,
    K: Hash + Eq,
{
    fn next(&mut self, value: &T) {
        if self.seen.insert((self.key)(value)) {
            self.observer.next(value);
        }
    }

    fn next_owned(&mut self, value: T) {
        if self.seen.insert((self.key)(&value)) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
