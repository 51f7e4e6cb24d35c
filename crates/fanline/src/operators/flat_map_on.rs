use super::FlatMap;
use super::delay_subscription::subscribe_later;
use crate::{Guard, IntoObservable, Observable, Observer, Scheduler};

/// See [`ObservableExt::flat_map_on`](crate::ObservableExt::flat_map_on).
#[derive(Clone, Debug)]
pub struct FlatMapOn<S, C, F> {
    source: S,
    scheduler: C,
    most: usize,
    f: F,
}

impl<S, C, F> FlatMapOn<S, C, F> {
    pub(super) fn new(source: S, scheduler: C, most: usize, f: F) -> Self {
        assert!(most > 0, "`most` must be at least 1");
        Self {
            source,
            scheduler,
            most,
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
            most,
            mut f,
        } = self;
        FlatMap::new(source, most, move |value: &S::Item| SubscribedOn {
            source: f(value).into_observable(),
            scheduler: scheduler.clone(),
        })
        .subscribe_with(observer)
    }
}

/// A source that is subscribed on a worker of its own.
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
