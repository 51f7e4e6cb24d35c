use std::collections::VecDeque;
use std::sync::Arc;

use super::funnel::Funnel;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// What [`flat_map`](crate::ObservableExt::flat_map) and
/// [`concat_map`](crate::ObservableExt::concat_map) give.
///
/// Emits what the observables that `f` makes of the values emit, as it comes, from at most `most`
/// of them at a time; `usize::MAX` for no limit.
///
/// `f` is called as values come; what it gives back beyond `most` waits, not subscribed, without
/// bound. Completes when the source and all of them have; fails with the first that fails. A panic
/// of `f` ends it without a word. For work in parallel see
/// [`flat_map_on`](crate::ObservableExt::flat_map_on).
///
/// [`concat_map`](crate::ObservableExt::concat_map): emits all of the observable that `f` makes of
/// the first value, then all of the one made of the second, and so on:
/// [`flat_map`](crate::ObservableExt::flat_map) with one at a time.
///
/// `f` is called as values come; what it gives back waits, not subscribed, without bound.
///
/// # Panics
///
/// When `most` is 0.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([10, 20])
///     .flat_map(usize::MAX, |&n| fanline::from_iter(n..n + 2))
///     .subscribe(|value| println!("{value}"))
///     .detach();
/// ```
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
pub struct FlatMap<S, F> {
    source: S,
    most: usize,
    f: F,
}

impl<S, F> FlatMap<S, F> {
    pub(super) fn new(source: S, most: usize, f: F) -> Self {
        assert!(most > 0, "`most` must be at least 1");
        Self { source, most, f }
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
        let hub = Arc::new(Hub {
            funnel: Funnel::new(observer),
            line: Mutex::new(Line {
                waiting: VecDeque::new(),
                running: 0,
                most: self.most,
                outer_complete: false,
            }),
        });
        let guard = hub.funnel.guard();
        hub.funnel.gate().connect(|key| {
            self.source.subscribe_with(Outer {
                hub: Arc::clone(&hub),
                f: self.f,
                key,
            })
        });
        guard
    }
}

struct Hub<I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    line: Mutex<Line<I>>,
}

struct Line<I> {
    /// Not yet subscribed, because as many as may are running.
    waiting: VecDeque<I>,
    running: usize,
    most: usize,
    outer_complete: bool,
}

impl<I, T, E, O> Hub<I, T, E, O>
where
    I: Observable<Item = T, Error = E> + Send + 'static,
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn add(self: &Arc<Self>, inner: I) {
        let mut line = lock(&self.line);
        if line.running < line.most {
            line.running += 1;
            drop(line);
            self.run(inner);
        } else {
            line.waiting.push_back(inner);
        }
    }

    /// Subscribes the inner source, and what follows it for as long as each ends inside its own
    /// subscription. No turn at the gate is held, so values go straight through.
    fn run(self: &Arc<Self>, mut inner: I) {
        let upstreams = self.funnel.upstreams();
        while let Some(key) = upstreams.reserve() {
            let hub = Arc::clone(self);
            let guard = inner.subscribe_with(self.funnel.inlet(move |funnel| {
                // Still inside its own subscription: whoever subscribes it goes on.
                if funnel.upstreams().finish(key)
                    && let Some(next) = hub.one_less()
                {
                    hub.run(next);
                }
            }));
            if upstreams.set(key, guard) {
                return;
            }
            match self.one_less() {
                Some(next) => inner = next,
                None => return,
            }
        }
    }

    /// An inner source is complete: the one to run in its place, if any.
    fn one_less(&self) -> Option<I> {
        let mut line = lock(&self.line);
        if let Some(next) = line.waiting.pop_front() {
            return Some(next);
        }
        line.running -= 1;
        let all_over = line.outer_complete && line.running == 0;
        drop(line);
        if all_over {
            self.funnel.complete();
        }
        None
    }

    fn outer_complete(&self) {
        let mut line = lock(&self.line);
        line.outer_complete = true;
        let all_over = line.running == 0;
        drop(line);
        if all_over {
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
    hub: Arc<Hub<I, T, E, O>>,
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
        if self.hub.funnel.is_over() {
            return;
        }
        let panicked = self.hub.funnel.gate().close_on_panic();
        self.hub.add((self.f)(value).into_observable());
        panicked.disarm();
    }

    fn error(&mut self, error: &R::Error) {
        self.hub.funnel.error(error);
    }

    fn complete(&mut self) {
        self.hub.outer_complete();
        self.hub.funnel.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.hub.funnel.is_over()
    }
}
