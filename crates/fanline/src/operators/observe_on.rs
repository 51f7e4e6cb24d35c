use crate::scheduler::{Bound, ScheduledObserver};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// What [`observe_on`](crate::ObservableExt::observe_on) and
/// [`observe_on_with`](crate::ObservableExt::observe_on_with) give.
///
/// Calls the observer on a worker of `scheduler`, in order, the end after the values.
///
/// The thread that emits puts values in an unbounded queue and never waits; clones them if they
/// are emitted by reference, as subjects do. The worker empties the queue in bursts, one at a time:
/// this moves the work to another thread and does not spread it over several. When the observer
/// panics the subscription ends, and the panic goes where the scheduler sends panics.
/// Unsubscribing drops what is queued.
///
/// [`observe_on_with`](crate::ObservableExt::observe_on_with):
/// [`observe_on`](crate::ObservableExt::observe_on) with a queue that holds a number of values at
/// most. [`Bound`](crate::scheduler::Bound) says how many, and what happens to one more: it blocks
/// the thread that emits, drops the oldest, drops the newest, or ends with an error.
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
