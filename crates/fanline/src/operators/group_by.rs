use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hash;
use std::collections::HashMap;

use super::unicast::{Feed, FromUnicast, SourceRefs, Unicast};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`group_by`](crate::ObservableExt::group_by).
///
/// Groups the values by `key`: emits a [`Grouped`](crate::operators::Grouped) observable at the first value
/// of a key. That observable emits the values of the key.
///
/// A group buffers its values, without bound, until it is subscribed to. The first subscription receives all
/// values; a later one only a completion. A group drops its values if it has no handles, or if its observer
/// is closed; the group is not emitted again. Groups continue after the observer of this observable has
/// closed; the source is unsubscribed when the last group is gone.
///
/// When the source completes or fails, so do all groups, in the order in which they were emitted, and then
/// this observable. Stores one entry for each key.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=6)
///     .group_by(|n| n % 2)
///     .flat_map(|group| {
///         let key = *group.key();
///         group.clone().map(move |n| (key, *n))
///     })
///     .subscribe(|pair| println!("{pair:?}"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct GroupBy<S, F> {
    source: S,
    key: F,
}

impl<S, F> GroupBy<S, F> {
    pub(super) fn new(source: S, key: F) -> Self {
        Self { source, key }
    }
}

/// The values of one key, an observable for one observer; see [`Unicast`].
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["apple", "avocado", "banana"])
///     .group_by(|name| name.chars().next())
///     .subscribe(|group| {
///         let initial = *group.key();
///         group.subscribe(move |name| println!("{initial:?}: {name}")).detach();
///     })
///     .detach();
/// ```
pub struct Grouped<K, T, E = core::convert::Infallible>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    key: K,
    values: Unicast<T, E>,
}

impl<K, T, E> Grouped<K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    pub(super) fn new(key: K, values: Unicast<T, E>) -> Self {
        Self { key, values }
    }

    /// Returns the key of the group.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Calls `next` with each value; errors and completion are ignored.
    pub fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard {
        self.values.subscribe(next)
    }

    /// Subscribes an observer, which receives the buffered values before this returns.
    pub fn subscribe_with(&self, observer: impl Observer<T, E> + Send + 'static) -> Guard {
        self.values.subscribe_with(observer)
    }
}

impl<K: Clone, T, E> Clone for Grouped<K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            values: self.values.clone(),
        }
    }
}

impl<K: core::fmt::Debug, T, E> core::fmt::Debug for Grouped<K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Grouped")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K, T, E> IntoObservable for Grouped<K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    type Item = T;
    type Error = E;
    type Observable = FromUnicast<T, E>;

    fn into_observable(self) -> FromUnicast<T, E> {
        self.values.into_observable()
    }
}

impl<S, K, F> Observable for GroupBy<S, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    K: Clone + Eq + Hash + Send + 'static,
    F: FnMut(&S::Item) -> K + Send + 'static,
{
    type Item = Grouped<K, S::Item, S::Error>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let source_refs = SourceRefs::new();
        let guard = source_refs.guard();
        let subscription = self.source.subscribe_with(Grouping {
            observer: Some(observer),
            key: self.key,
            numbers: HashMap::new(),
            groups: Vec::new(),
            source_refs: Arc::clone(&source_refs),
        });
        source_refs.set(subscription);
        guard
    }
}

struct Grouping<O, F, K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// `None` after the observer has closed.
    observer: Option<O>,
    key: F,
    numbers: HashMap<K, usize>,
    /// The groups in the order in which they were emitted. They complete or fail in the same order.
    groups: Vec<Feed<T, E>>,
    source_refs: Arc<SourceRefs>,
}

impl<O, F, K, T, E> Grouping<O, F, K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Grouped<K, T, E>, E>,
{
    /// Returns the observer, unless it is closed.
    fn outer(&mut self) -> Option<&mut O> {
        let open = self
            .observer
            .as_ref()
            .is_some_and(|observer| !observer.is_closed());
        if !open || !self.source_refs.outer_is_open() {
            self.observer = None;
            self.source_refs.close_outer();
        }
        self.observer.as_mut()
    }
}

impl<O, F, K, T, E> Observer<T, E> for Grouping<O, F, K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    K: Clone + Eq + Hash,
    O: Observer<Grouped<K, T, E>, E>,
    F: FnMut(&T) -> K,
{
    fn next(&mut self, value: &T) {
        let key = (self.key)(value);
        if let Some(number) = self.numbers.get(&key) {
            self.groups[*number].next(value);
            return;
        }
        let source_refs = Arc::clone(&self.source_refs);
        if let Some(observer) = self.outer() {
            let (feed, values) = Feed::new(Some(source_refs.add_ref()));
            observer.next_owned(Grouped {
                key: key.clone(),
                values,
            });
            feed.next(value);
            self.numbers.insert(key, self.groups.len());
            self.groups.push(feed);
            self.outer(); // Drops the observer if it is closed.
        }
    }

    fn error(&mut self, error: &E) {
        for group in core::mem::take(&mut self.groups) {
            group.error(error);
        }
        if let Some(observer) = self.outer() {
            observer.error(error);
        }
        self.source_refs.close_outer();
    }

    fn complete(&mut self) {
        for group in core::mem::take(&mut self.groups) {
            group.complete();
        }
        if let Some(observer) = self.outer() {
            observer.complete();
        }
        self.source_refs.close_outer();
    }

    fn is_closed(&self) -> bool {
        self.source_refs.is_over()
    }
}
