use alloc::collections::VecDeque;
use alloc::sync::Arc;

use super::funnel::Funnel;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`flat_map`](crate::CombineExt::flat_map) and
/// [`flat_map_with`](crate::CombineExt::flat_map_with).
///
/// Emits the values of the observables that `f` returns, as they arrive. At most `max_concurrent` observables
/// are subscribed to at a time; `usize::MAX` means no limit.
///
/// `f` is called for each value at once. If `max_concurrent` observables are subscribed to, further
/// observables are queued, without bound. Completes when the source and all observables have completed; fails
/// with the first error. If `f` panics, the subscription ends without a call to the observer. For parallel
/// work see [`flat_map_on`](crate::CombineExt::flat_map_on).
///
/// # Panics
///
/// If `max_concurrent` is 0.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([10, 20])
///     .flat_map(|&n| fanline::from_iter(n..n + 2))
///     .subscribe(|value| println!("{value}"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct FlatMap<S, F> {
    source: S,
    max_concurrent: usize,
    f: F,
}

impl<S, F> FlatMap<S, F> {
    pub(super) fn new(source: S, max_concurrent: usize, f: F) -> Self {
        assert!(max_concurrent > 0, "`max_concurrent` must be at least 1");
        Self {
            source,
            max_concurrent,
            f,
        }
    }
}

impl<S, R, F> Observable for FlatMap<S, F>
where
    S: Observable,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error, Observable: Send + 'static>,
    S::Error: Clone + Send + 'static,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let shared = Arc::new(Shared {
            funnel: Funnel::new(observer),
            inners: Mutex::new(Inners {
                queue: VecDeque::new(),
                running: 0,
                max_concurrent: self.max_concurrent,
                outer_complete: false,
            }),
        });
        let guard = shared.funnel.guard();
        shared.funnel.gate().connect(|key| {
            self.source.subscribe_with(Outer {
                shared: Arc::clone(&shared),
                f: self.f,
                key,
            })
        });
        guard
    }
}

/// The observable returned by [`concat_map`](crate::CombineExt::concat_map).
///
/// Emits all values of the observable that `f` returns for the first value, then those of the second, and so
/// on: [`flat_map_with`](crate::CombineExt::flat_map_with) with one observable at a time.
///
/// `f` is called for each value at once. Further observables are queued, without bound. Completes when the
/// source and all observables have completed; fails with the first error. If `f` panics, the subscription
/// ends without a call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([10, 20])
///     .concat_map(|&n| fanline::from_iter(n..n + 2))
///     .subscribe(|value| println!("{value}")) // 10 11 20 21
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct ConcatMap<S, F> {
    source: S,
    f: F,
}

impl<S, F> ConcatMap<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for ConcatMap<S, F>
where
    S: Observable,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error, Observable: Send + 'static>,
    S::Error: Clone + Send + 'static,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        FlatMap::new(self.source, 1, self.f).subscribe_with(observer)
    }
}

struct Shared<I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    inners: Mutex<Inners<I>>,
}

struct Inners<I> {
    /// Observables that are not subscribed to yet, because `max_concurrent` others are running.
    queue: VecDeque<I>,
    running: usize,
    max_concurrent: usize,
    outer_complete: bool,
}

impl<I, T, E, O> Shared<I, T, E, O>
where
    I: Observable<Item = T, Error = E> + Send + 'static,
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn add(self: &Arc<Self>, inner: I) {
        let mut inners = lock(&self.inners);
        if inners.running < inners.max_concurrent {
            inners.running += 1;
            drop(inners);
            self.run(inner);
        } else {
            inners.queue.push_back(inner);
        }
    }

    /// Subscribes to the inner source. If it completes during the subscription, continues with the next one.
    /// No caller works on the gate's stage during the subscription. So values that the inner source emits
    /// then are passed on at once.
    fn run(self: &Arc<Self>, mut inner: I) {
        let upstreams = self.funnel.upstreams();
        while let Some(key) = upstreams.reserve() {
            let shared = Arc::clone(self);
            let guard = inner.subscribe_with(self.funnel.inlet(move |funnel| {
                // If the source completes during the subscription, `finish` returns `false`, and the loop
                // below continues.
                if funnel.upstreams().finish(key)
                    && let Some(next) = shared.inner_complete()
                {
                    shared.run(next);
                }
            }));
            if upstreams.set(key, guard) {
                return;
            }
            match self.inner_complete() {
                Some(next) => inner = next,
                None => return,
            }
        }
    }

    /// Handles the completion of an inner source. Returns the next one to run, if any.
    fn inner_complete(&self) -> Option<I> {
        let mut inners = lock(&self.inners);
        if let Some(next) = inners.queue.pop_front() {
            return Some(next);
        }
        inners.running -= 1;
        let all_complete = inners.outer_complete && inners.running == 0;
        drop(inners);
        if all_complete {
            self.funnel.complete();
        }
        None
    }

    fn outer_complete(&self) {
        let mut inners = lock(&self.inners);
        inners.outer_complete = true;
        let all_complete = inners.running == 0;
        drop(inners);
        if all_complete {
            self.funnel.complete();
        }
    }
}

struct Outer<F, I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    shared: Arc<Shared<I, T, E, O>>,
    f: F,
    key: u64,
}

impl<V, R, F, O> Observer<V, R::Error> for Outer<F, R::Observable, R::Item, R::Error, O>
where
    R: IntoObservable<
            Item: Clone + Send + 'static,
            Error: Clone + Send + 'static,
            Observable: Send + 'static,
        >,
    F: FnMut(&V) -> R,
    O: Observer<R::Item, R::Error> + Send + 'static,
{
    fn next(&mut self, value: &V) {
        if self.shared.funnel.is_over() {
            return;
        }
        let panicked = self.shared.funnel.gate().close_on_panic();
        self.shared.add((self.f)(value).into_observable());
        panicked.disarm();
    }

    fn error(&mut self, error: &R::Error) {
        self.shared.funnel.error(error);
    }

    fn complete(&mut self) {
        self.shared.outer_complete();
        self.shared.funnel.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.shared.funnel.is_over()
    }
}
