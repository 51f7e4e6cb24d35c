use std::sync::Arc;

use super::funnel::Funnel;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// What [`exhaust_map`](crate::ObservableExt::exhaust_map) gives.
///
/// Emits all of the observable that `f` makes of a value; values that come before it has completed
/// are ignored.
///
/// Completes when the source and the observable in progress have; fails with the first that fails.
/// Keeps nothing. A panic of `f` ends it without a word.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut click, clicks) = fanline::subject::<&str>();
/// let (mut answer, answers) = fanline::subject::<u32>();
/// let _guard = clicks.exhaust_map(move |_| answers.clone()).subscribe(|n| println!("{n}"));
/// click.next("send");
/// click.next("send again"); // ignored: the answer is not complete
/// answer.next(200);
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
                busy: Arc::new(Mutex::new(Busy::default())),
                f: self.f,
                key,
            })
        });
        guard
    }
}

#[derive(Default)]
struct Busy {
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
    busy: Arc<Mutex<Busy>>,
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
        if std::mem::replace(&mut lock(&self.busy).running, true) {
            return;
        }
        let panicked = self.funnel.gate().close_on_panic();
        self.funnel.gate().connect(|key| {
            let busy = Arc::clone(&self.busy);
            let inlet = self.funnel.inlet(move |funnel| {
                let last = {
                    let mut busy = lock(&busy);
                    busy.running = false;
                    busy.outer_complete
                };
                if last {
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
            let mut busy = lock(&self.busy);
            busy.outer_complete = true;
            !busy.running
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
