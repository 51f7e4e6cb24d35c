use super::FlatMap;
use super::delay_subscription::subscribe_later;
use crate::{Guard, IntoObservable, Observable, Observer, Scheduler};

/// The observable returned by [`flat_map_on`](crate::CombineExt::flat_map_on).
///
/// Like [`flat_map`](crate::CombineExt::flat_map), but subscribes to each observable on its own worker of
/// `scheduler`: a parallel map of at most `max_concurrent` values, with results in the order of completion.
///
/// (`observe_on` moves values to one other thread, in order, so it does not make anything parallel.) Put
/// the work into the observable, not into `f`, which is called on the source's thread:
///
/// ```
/// use fanline::{prelude::*, scheduler::ThreadPool};
///
/// let pool = ThreadPool::new(4);
/// let guard = fanline::from_iter(0..100_u64)
///     .flat_map_on(pool, 4, |&n| fanline::defer(move || fanline::of(n * n))) // squared on the pool
///     .subscribe(|square| println!("{square}"));
/// # drop(guard);
/// ```
///
/// # Panics
///
/// If `max_concurrent` is 0.
#[derive(Clone, Debug)]
pub struct FlatMapOn<S, C, F> {
    source: S,
    scheduler: C,
    max_concurrent: usize,
    f: F,
}

impl<S, C, F> FlatMapOn<S, C, F> {
    pub(super) fn new(source: S, scheduler: C, max_concurrent: usize, f: F) -> Self {
        assert!(max_concurrent > 0, "`max_concurrent` must be at least 1");
        Self {
            source,
            scheduler,
            max_concurrent,
            f,
        }
    }
}

impl<S, C, R, F> Observable for FlatMapOn<S, C, F>
where
    S: Observable<Error: Clone + Send + 'static>,
    C: Scheduler,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error, Observable: Send + 'static>,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let Self {
            source,
            scheduler,
            max_concurrent,
            mut f,
        } = self;
        FlatMap::new(source, max_concurrent, move |value: &S::Item| {
            SubscribedOn {
                source: f(value).into_observable(),
                scheduler: scheduler.clone(),
            }
        })
        .subscribe_with(observer)
    }
}

/// A source that is subscribed to on its own worker.
struct SubscribedOn<S, C> {
    source: S,
    scheduler: C,
}

impl<S, C> Observable for SubscribedOn<S, C>
where
    S: Observable + Send + 'static,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        subscribe_later(self.source, observer, |action| {
            self.scheduler.schedule(action)
        })
    }
}
