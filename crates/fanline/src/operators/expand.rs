use alloc::collections::VecDeque;
use alloc::sync::Arc;

use super::funnel::Funnel;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`expand`](crate::CombineExt::expand).
///
/// Emits the values of the source, the values of the observables that `f` returns for them, the values of the
/// observables that `f` returns for those, and so on.
///
/// Each value is emitted before `f` is called for it. All observables are subscribed to at once, and each has
/// its own clone of `f`. The stack does not grow with the depth. Completes when the source and all
/// observables have completed; fails with the first error. If `f` panics, the subscription ends without a
/// call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// /// The children of a folder.
/// fn children(n: &u32) -> impl Observable<Item = u32, Error = std::convert::Infallible> + use<> {
///     fanline::from_iter([n * 2, n * 2 + 1].into_iter().filter(|n| *n < 8))
/// }
///
/// fanline::of(1)
///     .expand(children)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3, 4, 5, 6, 7]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Expand<S, F> {
    source: S,
    f: F,
}

impl<S, F> Expand<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for Expand<S, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    R: IntoObservable<Item = S::Item, Error = S::Error, Observable: Send + 'static>,
    F: FnMut(&S::Item) -> R + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let shared = Arc::new(Shared {
            funnel: Funnel::new(observer),
            work: Mutex::new(Work {
                queue: VecDeque::new(),
                subscribing: false,
                open: 1,
            }),
        });
        let guard = shared.funnel.guard();
        shared.funnel.gate().connect(|key| {
            self.source.subscribe_with(Expanding {
                shared: Arc::clone(&shared),
                f: self.f,
                key,
            })
        });
        guard
    }
}

struct Shared<I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    work: Mutex<Work<I>>,
}

struct Work<I> {
    /// Observables that are not subscribed to yet.
    queue: VecDeque<I>,
    /// Whether a caller takes observables from the queue. Other callers, also those further down on its
    /// stack, only add to it.
    subscribing: bool,
    /// Number of observables that have not completed, with the source and the queue.
    open: usize,
}

impl<I, T, E, O> Shared<I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn one_complete(&self) {
        let all_complete = {
            let mut work = lock(&self.work);
            work.open -= 1;
            work.open == 0
        };
        if all_complete {
            self.funnel.complete();
        }
    }
}

/// The observer of the source and of each observable.
struct Expanding<F, I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    shared: Arc<Shared<I, T, E, O>>,
    f: F,
    key: u64,
}

impl<F, R, I, T, E, O> Expanding<F, I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    I: Observable<Item = T, Error = E> + Send + 'static,
    R: IntoObservable<Item = T, Error = E, Observable = I>,
    F: FnMut(&T) -> R + Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn subscribe_to(&self, inner: I) {
        let mut work = lock(&self.shared.work);
        work.open += 1;
        work.queue.push_back(inner);
        if core::mem::replace(&mut work.subscribing, true) {
            return;
        }
        while let Some(inner) = work.queue.pop_front() {
            drop(work);
            self.shared.funnel.gate().connect(|key| {
                inner.subscribe_with(Expanding {
                    shared: Arc::clone(&self.shared),
                    f: self.f.clone(),
                    key,
                })
            });
            work = lock(&self.shared.work);
        }
        work.subscribing = false;
    }
}

impl<F, R, I, T, E, O> Observer<T, E> for Expanding<F, I, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    I: Observable<Item = T, Error = E> + Send + 'static,
    R: IntoObservable<Item = T, Error = E, Observable = I>,
    F: FnMut(&T) -> R + Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn next(&mut self, value: &T) {
        self.shared.funnel.next(value);
        if self.shared.funnel.is_over() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let panicked = shared.funnel.gate().close_on_panic();
        let inner = (self.f)(value).into_observable();
        self.subscribe_to(inner);
        panicked.disarm();
    }

    fn error(&mut self, error: &E) {
        self.shared.funnel.error(error);
    }

    fn complete(&mut self) {
        self.shared.one_complete();
        self.shared.funnel.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.shared.funnel.is_over()
    }
}
