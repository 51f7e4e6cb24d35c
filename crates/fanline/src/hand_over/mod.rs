//! From the thread that emits to the lane that observes: [`ScheduledObserver`].

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

/// How many values that take no time to come are shown to the worker at once.
const PUBLISH_VALUES_MAX: usize = 64;

enum Inlet<T, E> {
    Unbounded(chunks::Sender<T>),
    Bounded(Bounded<T, E>),
    DropOldest(Arc<bounded::Queue<T>>),
    /// The queue ran over, and ends with an error for that.
    Failed,
}

struct Bounded<T, E> {
    sender: chunks::Sender<T>,
    space: Arc<Space>,
    /// Up to which count there was room when last looked at.
    limit: u64,
    full: Full<E>,
}

/// What happens to a value for which there is no room.
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
        let full = match bound.overflow {
            Overflow::Block => Full::Block,
            Overflow::DropNewest => Full::DropNewest,
            Overflow::Error(make) => Full::Error(make),
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

    /// Queues a value and has the queue emptied. The usual case calls nothing, so that it need not
    /// save registers for a call.
    #[inline]
    fn push(&mut self, value: T) {
        match &mut self.inlet {
            Inlet::Unbounded(sender) if sender.has_slot() => {
                sender.write_here(value);
                sender.publish();
            }
            _ => return self.push_elsewhere(value),
        }
        self.wake();
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, value: T) {
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
            // The queue is full, so it is being emptied, or about to be: but not by a thread that
            // waits here.
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

    /// Has the queue emptied, unless that goes on.
    #[inline]
    fn wake(&self) {
        if self.shared.is_idle() {
            self.schedule();
        }
    }

    #[cold]
    #[inline(never)]
    fn schedule(&self) {
        if self.shared.take_flag() {
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
        // The first alone, so that the worker is on its way while the others are written.
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
