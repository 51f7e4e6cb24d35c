use crate::scheduler::{Bound, ScheduledObserver};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The observable returned by [`observe_on`](crate::ObservableExt::observe_on) and
/// [`observe_on_with`](crate::ObservableExt::observe_on_with).
///
/// Calls the observer on a worker of `scheduler`, in order: first the values, then the completion or the
/// error.
///
/// The emitting thread puts values into an unbounded queue and never waits. It clones values that are emitted
/// by reference, for example by subjects. The worker empties the queue in bursts, and calls the observer for
/// one value at a time. So the work moves to another thread, but is not spread over several. If the observer
/// panics, the subscription ends, and the scheduler handles the panic. Unsubscribing drops the queued values.
///
/// [`observe_on_with`](crate::ObservableExt::observe_on_with) has a bounded queue.
/// [`Bound`](crate::scheduler::Bound) sets the queue's capacity and what happens when the queue is full:
/// block the emitting thread, drop the oldest value, drop the newest value, or end with an error.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{IntoObservable, Observable, ObservableExt, scheduler::EventLoop};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (seen, rx) = mpsc::channel();
/// source
///     .into_observable()
///     .observe_on(EventLoop::new())
///     .subscribe(move |value| seen.send(*value).unwrap())
///     .detach();
/// tx.next(1);
/// tx.next(2);
/// tx.complete();
/// assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2]);
/// ```
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fanline::{IntoObservable, Observable, ObservableExt};
/// use fanline::scheduler::{Bound, VirtualTime};
///
/// let time = VirtualTime::new();
/// let (mut tx, source) = fanline::subject::<u32>();
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let values = seen.clone();
/// source
///     .into_observable()
///     .observe_on_with(time.clone(), Bound::drop_oldest(2))
///     .subscribe(move |value| values.lock().unwrap().push(*value))
///     .detach();
/// for value in 1..=5 {
///     tx.next(value);
/// }
/// time.run();
/// assert_eq!(*seen.lock().unwrap(), [4, 5]);
/// ```
#[derive(Clone, Debug)]
pub struct ObserveOn<S, C, E = core::convert::Infallible> {
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
