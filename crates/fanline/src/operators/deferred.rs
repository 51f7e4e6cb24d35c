//! Subscribing on a lane of a scheduler.

use std::sync::Arc;

use super::upstreams::Upstreams;
use crate::{Guard, Observable, Observer, Scheduler};

/// A source that is subscribed on a worker of its own: what `flat_map_on` makes of each inner source.
#[derive(Clone, Debug)]
pub struct SubscribedOn<S, C> {
    source: S,
    scheduler: C,
}

impl<S, C> SubscribedOn<S, C> {
    pub(super) fn new(source: S, scheduler: C) -> Self {
        Self { source, scheduler }
    }
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
