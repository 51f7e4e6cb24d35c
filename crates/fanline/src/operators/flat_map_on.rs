use std::sync::Arc;

use super::FlatMap;
use super::upstreams::Upstreams;
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
        // The action may run before its own guard is here, so each has a place of its own.
        let upstreams = Arc::new(Upstreams::default());
        let (Some(action), Some(subscription)) = (upstreams.reserve(), upstreams.reserve()) else {
            return Guard::closed();
        };
        let places = Arc::clone(&upstreams);
        let source = self.source;
        let scheduled = self.scheduler.schedule(move || {
            places.finish(action);
            let observer = UntilClosed {
                observer,
                upstreams: Arc::clone(&places),
            };
            places.set(subscription, source.subscribe_with(observer));
        });
        upstreams.set(action, scheduled);
        Guard::new(move || upstreams.close())
    }
}

/// Tells a source that runs inside its own subscription that nobody listens any more.
struct UntilClosed<O> {
    observer: O,
    upstreams: Arc<Upstreams>,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for UntilClosed<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.observer.next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.observer.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.observer.error(error);
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    fn is_closed(&self) -> bool {
        self.upstreams.is_closed() || self.observer.is_closed()
    }
}
