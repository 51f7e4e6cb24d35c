use alloc::vec::Vec;
use core::hash::Hash;
use std::collections::HashMap;

use super::forward::{complete, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`to_map`](crate::ObservableExt::to_map).
///
/// When the source completes, emits a `HashMap` with the last value of each key, and completes.
///
/// Fails with the source, without the map. Stores the map. For a map of another type, or with other values,
/// [`map`](crate::ObservableExt::map) to pairs and [`collect`](crate::ObservableExt::collect) them.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["apple", "avocado", "banana"])
///     .to_map(|name| name.chars().next())
///     .subscribe(|by_initial| assert_eq!(by_initial[&Some('a')], "avocado"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct ToMap<S, F> {
    source: S,
    key: F,
}

impl<S, F> ToMap<S, F> {
    pub(super) fn new(source: S, key: F) -> Self {
        Self { source, key }
    }
}

impl<S, K, F> Observable for ToMap<S, F>
where
    S: Observable<Item: Clone + Send + 'static>,
    K: Eq + Hash + Send + 'static,
    F: FnMut(&S::Item) -> K + Send + 'static,
{
    type Item = HashMap<K, S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(MapObserver {
            observer,
            key: self.key,
            add: |entries: &mut HashMap<K, S::Item>, key, value| {
                entries.insert(key, value);
            },
            entries: HashMap::new(),
        })
    }
}

/// The observable returned by [`to_multimap`](crate::ObservableExt::to_multimap).
///
/// When the source completes, emits a `HashMap` with all values of each key in the order of their arrival,
/// and completes. Fails with the source, without the map. Stores the map. Rx.NET calls this operator
/// `ToLookup`.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["apple", "avocado", "banana"])
///     .to_multimap(|name| name.chars().next())
///     .subscribe(|by_initial| assert_eq!(by_initial[&Some('a')], ["apple", "avocado"]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct ToMultimap<S, F> {
    source: S,
    key: F,
}

impl<S, F> ToMultimap<S, F> {
    pub(super) fn new(source: S, key: F) -> Self {
        Self { source, key }
    }
}

impl<S, K, F> Observable for ToMultimap<S, F>
where
    S: Observable<Item: Clone + Send + 'static>,
    K: Eq + Hash + Send + 'static,
    F: FnMut(&S::Item) -> K + Send + 'static,
{
    type Item = HashMap<K, Vec<S::Item>>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(MapObserver {
            observer,
            key: self.key,
            add: |entries: &mut HashMap<K, Vec<S::Item>>, key, value| {
                entries.entry(key).or_default().push(value);
            },
            entries: HashMap::new(),
        })
    }
}

struct MapObserver<O, F, K, T, V> {
    observer: O,
    key: F,
    /// Adds a value to the entries.
    add: fn(&mut HashMap<K, V>, K, T),
    entries: HashMap<K, V>,
}

impl<T, E, O, F, K, V> Observer<T, E> for MapObserver<O, F, K, T, V>
where
    T: Clone,
    O: Observer<HashMap<K, V>, E>,
    F: FnMut(&T) -> K,
{
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        let key = (self.key)(&value);
        (self.add)(&mut self.entries, key, value);
    }

    fn complete(&mut self) {
        if !self.observer.is_closed() {
            self.observer.next_owned(core::mem::take(&mut self.entries));
        }
        complete(&mut self.observer);
    }

    forward!(error, is_closed);
}
