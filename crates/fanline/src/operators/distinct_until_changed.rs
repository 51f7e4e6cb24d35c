use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`distinct_until_changed`](crate::ObservableExt::distinct_until_changed).
///
/// Emits each value that differs from the previous one. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 1, 2, 1, 1])
///     .distinct_until_changed()
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 1]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DistinctUntilChanged<S> {
    source: S,
}

impl<S> DistinctUntilChanged<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for DistinctUntilChanged<S>
where
    S: Observable,
    S::Item: PartialEq + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        DistinctUntilChangedBy::new(self.source, S::Item::eq).subscribe_with(observer)
    }
}

/// The observable returned by [`distinct_until_changed_by`](crate::ObservableExt::distinct_until_changed_by).
///
/// Emits each value for which `same` returns `false`. The first argument of `same` is the last emitted value,
/// and the second is the new value. Stores one value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([20.0, 20.2, 21.0, 20.9, 22.0_f64])
///     .distinct_until_changed_by(|before, now| (before - now).abs() < 0.5)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [20.0, 21.0, 22.0]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DistinctUntilChangedBy<S, F> {
    source: S,
    same: F,
}

impl<S, F> DistinctUntilChangedBy<S, F> {
    pub(super) fn new(source: S, same: F) -> Self {
        Self { source, same }
    }
}

impl<S, F> Observable for DistinctUntilChangedBy<S, F>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    F: FnMut(&S::Item, &S::Item) -> bool + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(ChangeObserver {
            observer,
            same: self.same,
            previous: None,
        })
    }
}

struct ChangeObserver<O, F, T> {
    observer: O,
    same: F,
    /// The last emitted value.
    previous: Option<T>,
}

impl<O, F, T> ChangeObserver<O, F, T>
where
    T: Clone,
    F: FnMut(&T, &T) -> bool,
{
    /// Returns whether the value differs from the last emitted one. If it differs, stores it.
    #[inline]
    fn changes(&mut self, value: &T) -> bool {
        match &mut self.previous {
            Some(previous) => {
                if (self.same)(previous, value) {
                    return false;
                }
                previous.clone_from(value);
            }
            None => self.previous = Some(value.clone()),
        }
        true
    }
}

impl<T, E, O, F> Observer<T, E> for ChangeObserver<O, F, T>
where
    T: Clone,
    O: Observer<T, E>,
    F: FnMut(&T, &T) -> bool,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if self.changes(value) {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if self.changes(&value) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}

/// The observable returned by [`distinct_until_changed_by_key`](crate::ObservableExt::distinct_until_changed_by_key).
///
/// Emits each value whose key differs from the key of the previous value. Stores one key.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([11, 12, 25, 21, 13])
///     .distinct_until_changed_by_key(|n| n / 10)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [11, 25, 13]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DistinctUntilChangedByKey<S, F> {
    source: S,
    key: F,
}

impl<S, F> DistinctUntilChangedByKey<S, F> {
    pub(super) fn new(source: S, key: F) -> Self {
        Self { source, key }
    }
}

impl<S, F, K> Observable for DistinctUntilChangedByKey<S, F>
where
    S: Observable,
    K: PartialEq + Send + 'static,
    F: FnMut(&S::Item) -> K + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(KeyChangeObserver {
            observer,
            key: self.key,
            previous: None,
        })
    }
}

struct KeyChangeObserver<O, F, K> {
    observer: O,
    key: F,
    previous: Option<K>,
}

impl<O, F, K: PartialEq> KeyChangeObserver<O, F, K> {
    #[inline]
    fn changes(&mut self, key: K) -> bool {
        let key = Some(key);
        let changed = self.previous != key;
        if changed {
            self.previous = key;
        }
        changed
    }
}

impl<T, E, O, F, K> Observer<T, E> for KeyChangeObserver<O, F, K>
where
    O: Observer<T, E>,
    F: FnMut(&T) -> K,
    K: PartialEq,
{
    #[inline]
    fn next(&mut self, value: &T) {
        let key = (self.key)(value);
        if self.changes(key) {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        let key = (self.key)(&value);
        if self.changes(key) {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
