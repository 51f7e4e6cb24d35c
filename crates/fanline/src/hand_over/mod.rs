//! From the thread that emits to the lane that observes: [`ScheduledObserver`].

mod bound;
mod bounded;
mod chunks;
mod drain;

use std::sync::Arc;

pub use bound::Bound;
use bound::Overflow;
use drain::{Drain, End, Outlet, Shared};

use crate::{Guard, Observable, Observer, Worker};

/// Passes on to an observer what it is called with, in order, on a [`Worker`].
///
/// Calls of `next` put the value in a queue and return; one action on the worker empties the queue,
/// and is scheduled when there is something in it again. So calls of the observer behind never overlap,
/// and a burst of values costs one action. The end waits its turn behind the values.
///
/// [`next_owned`](Observer::next_owned) queues the value itself, the other forms a clone. The queue is
/// unbounded with [`new`](ScheduledObserver::new) and bounded with
/// [`bounded`](ScheduledObserver::bounded). When the observer behind is closed, panics, or its guard is
/// dropped, what is queued is dropped and [`is_closed`](Observer::is_closed) answers so; a panic goes
/// where the worker's scheduler sends panics.
///
/// It is what [`observe_on`](crate::ObservableExt::observe_on) is made of.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Observer, Scheduler, observer};
/// use fanline::scheduler::{NewThread, ScheduledObserver};
///
/// let (tx, rx) = mpsc::channel();
/// let printer = observer(move |value: &u32| tx.send(*value).unwrap());
/// let (mut scheduled, guard) =
///     ScheduledObserver::<u32, std::convert::Infallible, _, _>::new(printer, NewThread.worker());
/// scheduled.next(&1);
/// scheduled.next(&2);
/// scheduled.complete();
/// assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2]);
/// drop(guard);
/// ```
pub struct ScheduledObserver<T, E, O, W> {
    inlet: Inlet<T, E>,
    shared: Arc<Shared<T, E, O>>,
    worker: W,
}

enum Inlet<T, E> {
    Unbounded(chunks::Sender<T>),
    Bounded(Arc<bounded::Queue<T>>, Overflow<E>),
    /// The queue ran over, and ends with an error for that.
    Failed,
}

impl<T, E, O, W> ScheduledObserver<T, E, O, W>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    /// An observer that calls `observer` on `worker`, with a queue that takes whatever comes. The
    /// guard unsubscribes `observer`.
    pub fn new(observer: O, worker: W) -> (Self, Guard) {
        let (sender, receiver) = chunks::channel();
        let outlet = Outlet::Unbounded(receiver);
        Self::with(Inlet::Unbounded(sender), outlet, observer, worker)
    }

    /// The same with a queue that holds a number of values at most; see [`Bound`] for what happens to
    /// one more.
    pub fn bounded(observer: O, worker: W, bound: Bound<E>) -> (Self, Guard) {
        let queue = Arc::new(bounded::Queue::new(bound.capacity));
        let inlet = Inlet::Bounded(Arc::clone(&queue), bound.overflow);
        Self::with(inlet, Outlet::Bounded(queue), observer, worker)
    }

    fn with(inlet: Inlet<T, E>, outlet: Outlet<T>, observer: O, worker: W) -> (Self, Guard) {
        let shared = Arc::new(Shared::new(Drain { observer, outlet }));
        let guard = Guard::registered(Arc::<Shared<T, E, O>>::clone(&shared), 0);
        let scheduled = Self {
            inlet,
            shared,
            worker,
        };
        (scheduled, guard)
    }

    /// Observes `source`, whose guard is dropped as soon as nothing more is wanted of it.
    pub(crate) fn subscribe_to<S>(self, source: S)
    where
        S: Observable<Item = T, Error = E>,
        T: Clone,
        E: Clone,
    {
        let shared = Arc::downgrade(&self.shared);
        let guard = source.subscribe_with(self);
        if let Some(shared) = shared.upgrade() {
            shared.set_upstream(guard);
        }
    }

    fn push(&mut self, value: T) {
        match &mut self.inlet {
            Inlet::Unbounded(sender) => {
                sender.write(value);
                sender.publish();
            }
            Inlet::Bounded(..) => self.push_bounded(value),
            Inlet::Failed => {}
        }
    }

    fn push_bounded(&mut self, value: T) {
        let Inlet::Bounded(queue, overflow) = &self.inlet else {
            return;
        };
        match overflow {
            Overflow::Block => self.push_or_wait(queue, value),
            Overflow::DropOldest => drop(queue.push_out(value)),
            Overflow::DropNewest => drop(queue.try_push(value)),
            Overflow::Error(make) => {
                if let Err(value) = queue.try_push(value) {
                    let error = make();
                    self.inlet = Inlet::Failed;
                    self.shared.end(End::Error(error));
                    drop(value);
                }
            }
        }
    }

    fn push_or_wait(&self, queue: &bounded::Queue<T>, mut value: T) {
        while let Err(back) = queue.try_push(value) {
            value = back;
            if self.shared.is_closed() {
                return;
            }
            // The queue is full, so it is being emptied, or about to be: but not by a thread that
            // waits here.
            if !self.worker.runs_here() {
                queue.wait_for_space();
            } else if self.shared.drains_here() {
                return queue.push_beyond(value);
            } else if !self.shared.drain_in_place() {
                queue.wait_for_space();
            }
        }
    }

    /// Has the queue emptied, unless that goes on.
    #[inline]
    fn wake(&self) {
        if self.shared.claim() {
            self.shared.schedule(&self.worker);
        }
    }
}

impl<T, E, O, W> Observer<T, E> for ScheduledObserver<T, E, O, W>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.is_closed() {
            self.next_owned(value.clone());
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.is_closed() {
            self.push(value);
            self.wake();
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if self.is_closed() {
            return;
        }
        if let Inlet::Unbounded(sender) = &mut self.inlet {
            for value in values {
                sender.write(value.clone());
            }
            sender.publish();
            self.wake();
            return;
        }
        for value in values {
            self.next(value);
        }
    }

    fn error(&mut self, error: &E) {
        if !self.is_closed() {
            self.shared.end(End::Error(error.clone()));
            self.wake();
        }
    }

    fn complete(&mut self) {
        if !self.is_closed() {
            self.shared.end(End::Complete);
            self.wake();
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.shared.is_closed() || matches!(self.inlet, Inlet::Failed)
    }
}

impl<T, E, O, W> std::fmt::Debug for ScheduledObserver<T, E, O, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScheduledObserver").finish_non_exhaustive()
    }
}

#[cfg(all(test, fanline_loom))]
mod loom;
