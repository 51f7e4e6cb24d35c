//! The queue that passes values from the emitting thread to an observer on a worker: [`ScheduledObserver`].

mod bound;
mod bounded;
pub(crate) mod chunks;
mod drain;
mod space;

use std::sync::Arc;

pub use bound::Bound;
use bound::Overflow;
use drain::{Drain, End, Outlet, Shared};
use space::Space;

use crate::{Guard, Observable, Observer, Worker};

/// An observer that forwards its calls to another observer, in order, on a [`Worker`].
///
/// Each call of `next` queues the value and returns. An action on the worker empties the queue. The action is
/// scheduled again when there are new values. So calls of the downstream observer never overlap, and a burst
/// of values costs one action. A completion or error is delivered after the values.
///
/// [`next_owned`](Observer::next_owned) queues the value itself, and the other methods queue a clone. The
/// queue is unbounded with [`new`](ScheduledObserver::new) and bounded with
/// [`bounded`](ScheduledObserver::bounded). Delivery stops when the downstream observer is closed or panics,
/// or when its guard is dropped. Then the queued values are dropped, and [`is_closed`](Observer::is_closed)
/// returns `true`. The worker's scheduler handles the panic.
///
/// [`observe_on`](crate::ObservableExt::observe_on) uses this type.
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

/// Number of values that `next_owned_all` writes before it publishes them to the worker together.
const PUBLISH_VALUES_MAX: usize = 64;

enum Inlet<T, E> {
    Unbounded(chunks::Sender<T>),
    Bounded(Bounded<T, E>),
    DropOldest(Arc<bounded::Queue<T>>),
    /// The queue overflowed. The queued values are still delivered, and then an error.
    Failed,
}

struct Bounded<T, E> {
    sender: chunks::Sender<T>,
    space: Arc<Space>,
    /// Total number of written values at which the queue is full, as known from the last check for room.
    limit: u64,
    full: Full<E>,
}

/// The overflow policy of a bounded queue that does not drop the oldest value.
enum Full<E> {
    Block,
    DropNewest,
    Error(Arc<dyn Fn() -> E + Send + Sync>),
}

impl<T, E> Bounded<T, E> {
    #[inline]
    fn has_room(&mut self) -> bool {
        if self.sender.count() >= self.limit {
            self.limit = self.space.limit();
        }
        self.sender.count() < self.limit
    }

    #[inline]
    fn push(&mut self, value: T) {
        self.sender.write(value);
        self.sender.publish();
    }
}

impl<T, E, O, W> ScheduledObserver<T, E, O, W>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
    W: Worker,
{
    /// Returns an observer that calls `observer` on `worker`, with an unbounded queue. The guard unsubscribes
    /// `observer`.
    pub fn new(observer: O, worker: W) -> (Self, Guard) {
        let (sender, receiver) = chunks::channel();
        let outlet = Outlet::Unbounded(receiver);
        Self::with(Inlet::Unbounded(sender), outlet, observer, worker)
    }

    /// Does the same as [`new`](Self::new) with a bounded queue; [`Bound`] describes what happens when it is
    /// full.
    pub fn bounded(observer: O, worker: W, bound: Bound<E>) -> (Self, Guard) {
        let full = match bound.overflow {
            Overflow::Block => Full::Block,
            Overflow::DropNewest => Full::DropNewest,
            Overflow::Fail(make) => Full::Error(make),
            Overflow::DropOldest => {
                let queue = Arc::new(bounded::Queue::new(bound.capacity));
                let inlet = Inlet::DropOldest(Arc::clone(&queue));
                return Self::with(inlet, Outlet::DropOldest(queue), observer, worker);
            }
        };
        let (sender, receiver) = chunks::channel();
        let space = Arc::new(Space::new(bound.capacity));
        let outlet = Outlet::Bounded(receiver, Arc::clone(&space));
        let limit = space.limit();
        let inlet = Inlet::Bounded(Bounded {
            sender,
            space,
            limit,
            full,
        });
        Self::with(inlet, outlet, observer, worker)
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

    /// Subscribes to `source`. The guard of the subscription is dropped as soon as delivery stops.
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

    /// Queues a value and makes the worker empty the queue. In the common case no function is called, so no
    /// registers must be saved.
    #[inline]
    fn push(&mut self, value: T) {
        match &mut self.inlet {
            Inlet::Unbounded(sender) if sender.has_slot() => {
                sender.write_here(value);
                sender.publish();
            }
            _ => return self.push_slow_path(value),
        }
        self.wake();
    }

    #[inline(never)]
    fn push_slow_path(&mut self, value: T) {
        match &mut self.inlet {
            Inlet::Unbounded(sender) => {
                sender.write(value);
                sender.publish();
            }
            Inlet::Bounded(bounded) => {
                if bounded.has_room() {
                    bounded.push(value);
                } else {
                    self.push_to_full(value);
                }
            }
            Inlet::DropOldest(queue) => drop(queue.push_out(value)),
            Inlet::Failed => return,
        }
        self.wake();
    }

    #[cold]
    fn push_to_full(&mut self, value: T) {
        let Inlet::Bounded(bounded) = &mut self.inlet else {
            return;
        };
        match &bounded.full {
            Full::Block => Self::push_or_wait(bounded, &self.shared, &self.worker, value),
            Full::DropNewest => {}
            Full::Error(make) => {
                let error = make();
                self.inlet = Inlet::Failed;
                self.shared.end(End::Error(error));
            }
        }
    }

    fn push_or_wait(bounded: &mut Bounded<T, E>, shared: &Shared<T, E, O>, worker: &W, value: T) {
        while !bounded.has_room() {
            if shared.is_closed() {
                return;
            }
            // The queue is full. Usually another thread is emptying it or will do so, and this thread waits.
            // If only this thread can empty the queue, it does so here.
            let here = worker.runs_here();
            if here && shared.drains_here() {
                break;
            }
            if !here || !shared.drain_in_place() {
                let count = bounded.sender.count();
                bounded.space.wait(count, || shared.is_closed());
            }
        }
        bounded.push(value);
    }

    /// Schedules an action that empties the queue, unless one is scheduled or running.
    #[inline]
    fn wake(&self) {
        if self.shared.is_idle() {
            self.schedule();
        }
    }

    #[cold]
    #[inline(never)]
    fn schedule(&self) {
        if self.shared.clear_idle() {
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
        if !self.shared.is_closed() {
            self.push(value.clone());
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.shared.is_closed() {
            self.push(value);
        }
    }

    fn next_owned_all<I: Iterator<Item = T>>(&mut self, mut values: I) {
        // Publish the first value alone, so that the worker starts while the others are written.
        let mut batch = 1;
        while !self.is_closed() {
            let Some(first) = values.next() else { return };
            let Inlet::Unbounded(sender) = &mut self.inlet else {
                self.next_owned(first);
                continue;
            };
            sender.write(first);
            for value in values.by_ref().take(batch - 1) {
                sender.write(value);
            }
            sender.publish();
            self.wake();
            batch = PUBLISH_VALUES_MAX;
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
