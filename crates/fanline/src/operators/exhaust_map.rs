use alloc::sync::Arc;

use super::funnel::Funnel;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`exhaust_map`](crate::CombineExt::exhaust_map).
///
/// Emits the values of the observable that `f` returns for a value of the source. Values of the source that
/// arrive before that observable has completed are ignored.
///
/// Completes when the source and the current observable have completed; fails with the first error. Stores no
/// values. If `f` panics, the subscription ends without a call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut click, clicks) = fanline::subject::<&str>();
/// let (mut response, responses) = fanline::subject::<u32>();
/// let _guard = clicks.exhaust_map(move |_| responses.clone()).subscribe(|n| println!("{n}"));
/// click.next("send");
/// click.next("send again"); // ignored: the response is not complete
/// response.next(200);
/// ```
#[derive(Clone, Debug)]
pub struct ExhaustMap<S, F> {
    source: S,
    f: F,
}

impl<S, F> ExhaustMap<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for ExhaustMap<S, F>
where
    S: Observable,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error>,
    S::Error: Clone + Send + 'static,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let funnel = Funnel::new(observer);
        let guard = funnel.guard();
        funnel.gate().connect(|key| {
            self.source.subscribe_with(Outer {
                funnel: funnel.clone(),
                state: Arc::new(Mutex::new(InnerState::default())),
                f: self.f,
                key,
            })
        });
        guard
    }
}

#[derive(Default)]
struct InnerState {
    running: bool,
    outer_complete: bool,
}

struct Outer<F, T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    state: Arc<Mutex<InnerState>>,
    f: F,
    key: u64,
}

impl<V, R, F, O> Observer<V, R::Error> for Outer<F, R::Item, R::Error, O>
where
    R: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    F: FnMut(&V) -> R,
    O: Observer<R::Item, R::Error> + Send + 'static,
{
    fn next(&mut self, value: &V) {
        if core::mem::replace(&mut lock(&self.state).running, true) {
            return;
        }
        let panicked = self.funnel.gate().close_on_panic();
        self.funnel.gate().connect(|key| {
            let state = Arc::clone(&self.state);
            let inlet = self.funnel.inlet(move |funnel| {
                let is_last = {
                    let mut state = lock(&state);
                    state.running = false;
                    state.outer_complete
                };
                if is_last {
                    funnel.complete();
                }
                funnel.upstreams().finish(key);
            });
            (self.f)(value).into_observable().subscribe_with(inlet)
        });
        panicked.disarm();
    }

    fn error(&mut self, error: &R::Error) {
        self.funnel.error(error);
    }

    fn complete(&mut self) {
        let idle = {
            let mut state = lock(&self.state);
            state.outer_complete = true;
            !state.running
        };
        if idle {
            self.funnel.complete();
        }
        self.funnel.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.funnel.is_over()
    }
}
