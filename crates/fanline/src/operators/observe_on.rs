use crate::scheduler::{Bound, ScheduledObserver};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// See [`ObservableExt::observe_on`](crate::ObservableExt::observe_on) and
/// [`ObservableExt::observe_on_with`](crate::ObservableExt::observe_on_with).
#[derive(Clone, Debug)]
pub struct ObserveOn<S, C, E = std::convert::Infallible> {
    source: S,
    scheduler: C,
    bound: Option<Bound<E>>,
}

impl<S, C, E> ObserveOn<S, C, E> {
    pub(super) fn new(source: S, scheduler: C, bound: Option<Bound<E>>) -> Self {
        Self {
            source,
            scheduler,
            bound,
        }
    }
}

impl<S, C> Observable for ObserveOn<S, C, S::Error>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
    S::Error: Clone + Send + 'static,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let worker = self.scheduler.worker();
        if worker.runs_at_once() {
            return self.source.subscribe_with(observer);
        }
        let (scheduled, guard) = match self.bound {
            None => ScheduledObserver::new(observer, worker),
            Some(bound) => ScheduledObserver::bounded(observer, worker, bound),
        };
        scheduled.subscribe_to(self.source);
        guard
    }
}
