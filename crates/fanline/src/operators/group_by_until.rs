use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hash;
use std::collections::HashMap;

use super::gate::{Event, Gate, Stage};
use super::group_by::Grouped;
use super::inputs::{connect, notify};
use super::unicast::{Feed, SourceRefs};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`group_by_until`](crate::CombineExt::group_by_until).
///
/// Like [`group_by`](crate::ObservableExt::group_by), but a group completes when the observable that `until`
/// returns for it emits or completes. The next value of its key begins a new group. So the number of groups
/// stays bounded even if there are always new keys.
///
/// `until` receives the group, and may subscribe to it through a clone. But a group has one observer; see
/// [`Unicast`](crate::operators::Unicast). An error of the observable that `until` returns fails all groups
/// and this observable. If a closure panics, the subscription ends without a call to the observer.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let clock = time.clone();
/// let (mut login, logins) = fanline::subject::<&str>();
/// let _guard = logins
///     .group_by_until(|user| *user, move |_| fanline::timer_on(Duration::from_secs(60), clock.clone()))
///     .flat_map(|group| {
///         let user = *group.key();
///         group.clone().count().map(move |count| format!("{user}: {count} in a minute"))
///     })
///     .subscribe(|line| println!("{line}"));
/// login.next("ann");
/// login.next("ann");
/// time.advance_by(Duration::from_secs(60)); // ann: 2 in a minute
/// ```
#[derive(Clone, Debug)]
pub struct GroupByUntil<S, F, U> {
    source: S,
    key: F,
    until: U,
}

impl<S, F, U> GroupByUntil<S, F, U> {
    pub(super) fn new(source: S, key: F, until: U) -> Self {
        Self { source, key, until }
    }
}

impl<S, K, R, F, U> Observable for GroupByUntil<S, F, U>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    K: Clone + Eq + Hash + Send + 'static,
    R: IntoObservable<Error = S::Error>,
    F: FnMut(&S::Item) -> K + Send + 'static,
    U: FnMut(&Grouped<K, S::Item, S::Error>) -> R + Send + 'static,
{
    type Item = Grouped<K, S::Item, S::Error>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let source_refs = SourceRefs::new();
        let guard = source_refs.guard();
        let gate = Gate::new(Grouping {
            observer: Some(observer),
            key: self.key,
            until: self.until,
            groups: HashMap::new(),
            next_id: 0,
            ended: false,
            source_refs: Arc::clone(&source_refs),
        });
        source_refs.set(gate.guard());
        connect(&gate, self.source, Message::Source);
        guard
    }
}

struct Grouping<O, F, U, K, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// `None` after the observer has closed.
    observer: Option<O>,
    key: F,
    until: U,
    groups: HashMap<K, Group<T, E>>,
    next_id: u64,
    ended: bool,
    source_refs: Arc<SourceRefs>,
}

struct Group<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// The number of the group. Groups complete or fail in the order of their numbers.
    id: u64,
    feed: Feed<T, E>,
}

enum Message<K, T, E> {
    Source(Event<T, E>),
    Until(K, u64, Result<(), E>),
}

impl<O, F, U, R, K, T, E> Grouping<O, F, U, K, T, E>
where
    T: Clone + Send + 'static,
    K: Clone + Eq + Hash + Send + 'static,
    E: Clone + Send + 'static,
    R: IntoObservable<Error = E>,
    O: Observer<Grouped<K, T, E>, E> + Send + 'static,
    F: FnMut(&T) -> K + Send + 'static,
    U: FnMut(&Grouped<K, T, E>) -> R + Send + 'static,
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

    fn value(&mut self, value: &T, gate: &Gate<Self>) {
        let key = (self.key)(value);
        if let Some(group) = self.groups.get(&key) {
            group.feed.next(value);
            return;
        }
        if self.outer().is_none() {
            return;
        }
        let (feed, values) = Feed::new(Some(self.source_refs.add_ref()));
        let group = Grouped::new(key.clone(), values);
        let until = (self.until)(&group);
        if let Some(observer) = self.outer() {
            observer.next_owned(group);
        }
        feed.next(value);
        self.next_id += 1;
        let id = self.next_id;
        self.groups.insert(key.clone(), Group { id, feed });
        self.outer(); // Drops the observer if it is closed.
        notify(gate, until, move |result| Message::Until(key, id, result));
    }

    /// Returns the feeds of all groups in order, and removes them.
    fn take_feeds(&mut self) -> impl Iterator<Item = Feed<T, E>> + use<O, F, U, R, K, T, E> {
        let mut groups: Vec<_> = core::mem::take(&mut self.groups).into_values().collect();
        groups.sort_by_key(|group| group.id);
        groups.into_iter().map(|group| group.feed)
    }

    fn error(&mut self, error: &E) {
        self.take_feeds().for_each(|feed| feed.error(error));
        if let Some(observer) = self.outer() {
            observer.error(error);
        }
        self.end();
    }

    fn complete(&mut self) {
        self.take_feeds().for_each(|feed| feed.complete());
        if let Some(observer) = self.outer() {
            observer.complete();
        }
        self.end();
    }

    fn end(&mut self) {
        self.ended = true;
        self.observer = None;
        self.source_refs.close_outer();
    }
}

impl<O, F, U, R, K, T, E> Stage for Grouping<O, F, U, K, T, E>
where
    T: Clone + Send + 'static,
    K: Clone + Eq + Hash + Send + 'static,
    E: Clone + Send + 'static,
    R: IntoObservable<Error = E>,
    O: Observer<Grouped<K, T, E>, E> + Send + 'static,
    F: FnMut(&T) -> K + Send + 'static,
    U: FnMut(&Grouped<K, T, E>) -> R + Send + 'static,
{
    type Message = Message<K, T, E>;

    fn receive(&mut self, message: Self::Message, gate: &Gate<Self>) {
        match message {
            Message::Source(Event::Next(value)) => self.value(&value, gate),
            Message::Source(Event::Slice(values)) => {
                values.iter().for_each(|value| self.value(value, gate));
            }
            Message::Source(Event::Error(error)) | Message::Until(_, _, Err(error)) => {
                self.error(&error);
            }
            Message::Source(Event::Complete) => self.complete(),
            Message::Until(key, id, Ok(())) => {
                // The key may have a newer group.
                if self.groups.get(&key).is_some_and(|group| group.id == id)
                    && let Some(group) = self.groups.remove(&key)
                {
                    group.feed.complete();
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.ended || self.source_refs.is_over()
    }
}
