use alloc::sync::Arc;
use alloc::vec::Vec;

use super::upstreams::Upstreams;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`race`](crate::CombineExt::race).
///
/// Behaves like this source or `other`, whichever emits a value or ends first. The slower one is
/// unsubscribed. Rx also calls this operator `amb`. Stores no values.
/// The function [`race`](crate::operators::race()) takes a list.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut fast, from_fast) = fanline::subject::<u32>();
/// let (slow, from_slow) = fanline::subject::<u32>();
/// let _guard = from_fast.race(from_slow).subscribe(|value| println!("{value}"));
/// fast.next(1);
/// assert!(!slow.has_observers());
/// ```
#[derive(Clone, Debug)]
pub struct Race<A, B> {
    first: A,
    second: B,
}

impl<A, B> Race<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A, B> Observable for Race<A, B>
where
    A: Observable,
    B: Observable<Item = A::Item, Error = A::Error>,
{
    type Item = A::Item;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A::Item, A::Error> + Send + 'static,
    {
        let race = Arc::new(RaceState::new(observer));
        let guard = race.upstreams.guard();
        race.add(self.first);
        race.add(self.second);
        guard
    }
}

/// The winner of several sources of one type; see [`race`](crate::operators::race()).
#[derive(Clone, Debug)]
pub struct RaceList<S> {
    sources: Vec<S>,
}

/// Behaves like the source that is the first to emit a value or end; see
/// [`CombineExt::race`](crate::CombineExt::race).
///
/// Subscribes in the given order, until one source has won. An empty list completes at once.
///
/// ```
/// use fanline::{Observable, Subject, operators::race};
///
/// let (slow, fast) = (Subject::<u32>::new(), Subject::<u32>::new());
/// let _guard = race([slow.clone(), fast.clone()]).subscribe(|value| println!("{value}"));
/// fast.next(1);
/// assert!(!slow.has_observers());
/// ```
pub fn race<I>(sources: I) -> RaceList<<I::Item as IntoObservable>::Observable>
where
    I: IntoIterator<Item: IntoObservable>,
{
    RaceList {
        sources: sources
            .into_iter()
            .map(IntoObservable::into_observable)
            .collect(),
    }
}

impl<S: Observable> Observable for RaceList<S> {
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if self.sources.is_empty() {
            observer.complete();
            return Guard::closed();
        }
        let race = Arc::new(RaceState::new(observer));
        let guard = race.upstreams.guard();
        for source in self.sources {
            race.add(source);
        }
        guard
    }
}

/// The observable returned by [`race_all`](crate::CombineExt::race_all).
///
/// Behaves like the first of the source's observables that emits a value or ends. They are subscribed to as
/// they arrive. When one has won, the others and the source are unsubscribed. Completes if the source
/// completes without an observable; fails if the source fails before one has won. Stores no values. For a
/// list of observables, use the function [`race`](crate::operators::race()).
///
/// ```
/// use fanline::{Subject, prelude::*};
///
/// let (mut mirror, mirrors) = fanline::subject();
/// let (slow, fast) = (Subject::<u32>::new(), Subject::new());
/// let _guard = mirrors.race_all().subscribe(|value| println!("{value}"));
/// mirror.next(slow.clone());
/// mirror.next(fast.clone());
/// fast.next(1);
/// assert!(!slow.has_observers() && !mirror.has_observers());
/// ```
#[derive(Clone, Debug)]
pub struct RaceAll<S> {
    source: S,
}

impl<S> RaceAll<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S, R> Observable for RaceAll<S>
where
    S: Observable<Item = R>,
    R: IntoObservable<Error = S::Error> + Clone,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let race = Arc::new(RaceState::new(observer));
        let guard = race.upstreams.guard();
        if let Some(key) = race.upstreams.reserve() {
            let subscription = self.source.subscribe_with(Entrants {
                race: Arc::clone(&race),
                any: false,
                key,
            });
            race.upstreams.set(key, subscription);
        }
        guard
    }
}

/// Lets each observable of the source take part in the race.
struct Entrants<O> {
    race: Arc<RaceState<O>>,
    /// Whether the source has emitted an observable.
    any: bool,
    key: u64,
}

impl<R, E, O> Observer<R, E> for Entrants<O>
where
    R: IntoObservable<Error = E> + Clone,
    O: Observer<R::Item, E> + Send + 'static,
{
    fn next(&mut self, entrant: &R) {
        self.next_owned(entrant.clone());
    }

    fn next_owned(&mut self, entrant: R) {
        self.any = true;
        self.race.add(entrant.into_observable());
    }

    fn error(&mut self, error: &E) {
        if let Some(mut observer) = self.race.claim() {
            observer.error(error);
            self.race.upstreams.close();
        }
    }

    fn complete(&mut self) {
        if self.any {
            self.race.upstreams.finish(self.key);
        } else if let Some(mut observer) = self.race.claim() {
            observer.complete();
            self.race.upstreams.close();
        }
    }

    fn is_closed(&self) -> bool {
        self.race.is_over()
    }
}

struct RaceState<O> {
    /// The observer. The source that wins takes it, and then calls it without a lock.
    observer: Mutex<Option<O>>,
    /// Whether a source has won. The other sources read it to stop. Relaxed suffices, because `observer`
    /// decides the winner.
    won: AtomicBool,
    upstreams: Arc<Upstreams>,
}

impl<O> RaceState<O> {
    fn new(observer: O) -> Self {
        Self {
            observer: Mutex::new(Some(observer)),
            won: AtomicBool::new(false),
            upstreams: Arc::new(Upstreams::default()),
        }
    }

    /// Returns the observer to the first caller.
    fn claim(&self) -> Option<O> {
        let observer = lock(&self.observer).take();
        if observer.is_some() {
            self.won.store(true, Ordering::Relaxed);
        }
        observer
    }

    /// Returns whether a source has won or the subscription is closed.
    fn is_over(&self) -> bool {
        self.won.load(Ordering::Relaxed) || self.upstreams.is_closed()
    }

    fn add<S>(self: &Arc<Self>, source: S)
    where
        S: Observable,
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if self.won.load(Ordering::Relaxed) {
            return;
        }
        if let Some(key) = self.upstreams.reserve() {
            let guard = source.subscribe_with(RaceObserver {
                race: Arc::clone(self),
                observer: None,
                key,
            });
            self.upstreams.set(key, guard);
        }
    }
}

struct RaceObserver<O> {
    race: Arc<RaceState<O>>,
    /// The observer, after this source has won.
    observer: Option<O>,
    key: u64,
}

impl<O> RaceObserver<O> {
    /// Returns the observer if this source has won, or wins now.
    #[inline]
    fn observer_if_won(&mut self) -> Option<&mut O> {
        if self.observer.is_none() && !self.race.won.load(Ordering::Relaxed) {
            self.claim();
        }
        self.observer.as_mut()
    }

    #[cold]
    fn claim(&mut self) {
        self.observer = self.race.claim();
        if self.observer.is_some() {
            self.race.upstreams.close_others(self.key);
        }
    }
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for RaceObserver<O> {
    fn next(&mut self, value: &T) {
        if let Some(observer) = self.observer_if_won() {
            observer.next(value);
        }
    }

    fn next_owned(&mut self, value: T) {
        if let Some(observer) = self.observer_if_won() {
            observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if values.is_empty() {
            return;
        }
        if let Some(observer) = self.observer_if_won() {
            observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        if let Some(observer) = self.observer_if_won() {
            observer.error(error);
            self.race.upstreams.close();
        }
    }

    fn complete(&mut self) {
        if let Some(observer) = self.observer_if_won() {
            observer.complete();
            self.race.upstreams.close();
        }
    }

    fn is_closed(&self) -> bool {
        match &self.observer {
            Some(observer) => observer.is_closed() || self.race.upstreams.is_closed(),
            None => self.race.is_over(),
        }
    }
}
