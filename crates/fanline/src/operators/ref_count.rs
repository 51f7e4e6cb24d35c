use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use super::upstreams::Upstreams;
use super::{Connectable, MulticastSource};
use crate::policy::{Flavor, Publish};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::{Guard, Observer, Scheduler, Worker, observer};

/// Runs an action after the grace period.
type Wait = Box<dyn Fn(Box<dyn FnOnce() + Send>) -> Guard + Send + Sync>;

pub(super) fn wait<C: Scheduler>(grace: Duration, scheduler: C) -> Wait {
    Box::new(move |action| {
        scheduler
            .worker()
            .schedule_after(grace, action, |action, _| action())
    })
}

/// A source that is subscribed to once while it has observers; returned by
/// [`share`](crate::ObservableExt::share). `P` is the flavor of the subject.
///
/// It is a handle: clones refer to the same source. The first observer connects, and when the last one
/// leaves, the source is unsubscribed. An observer that subscribes after that, or after the source has
/// completed or failed, starts over: with a new subscription to a clone of the source, and a new subject.
///
/// - [`share`](crate::ObservableExt::share) is `publish().ref_count()`.
/// - [`share_replay`](crate::ObservableExt::share_replay) replays the values that `replay` retains to late
///   observers. After the source has completed or failed, late observers receive the retained values and the
///   completion or the error, and the source is not subscribed to again. If all observers leave before that,
///   the next observer starts over, without retained values.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let shared = source.map(|value| value * 2).share();
/// let one = shared.subscribe(|value| println!("one: {value}"));
/// let two = shared.clone().take(5).subscribe(|value| println!("two: {value}"));
/// assert_eq!(tx.observer_count(), 1);
/// tx.next(1);
/// drop((one, two));
/// assert!(!tx.has_observers());
/// ```
///
/// ```
/// use fanline::{Replay, prelude::*};
///
/// let shared = fanline::from_iter(0..3).share_replay(Replay::all());
/// shared.subscribe(|value| println!("{value}")).detach();
/// shared.subscribe(|value| println!("{value}")).detach(); // the same, replayed
/// ```
pub struct RefCount<S: MulticastSource, P: Flavor = Publish> {
    inner: Arc<Inner<S, P>>,
}

struct Inner<S: MulticastSource, P: Flavor> {
    connectable: Connectable<S, P>,
    wait: Option<Wait>,
    /// Whether an observer that subscribes after the source has completed or failed causes a new subscription
    /// to the source.
    restarts: bool,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    observers: usize,
    /// Whether the subject belongs to a connection that was closed.
    stale: bool,
    /// Number of the latest grace period. When an earlier grace period expires, nothing happens.
    grace: u64,
    waiting: Guard,
}

impl<S: MulticastSource, P: Flavor> Clone for RefCount<S, P> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<S: MulticastSource, P: Flavor> core::fmt::Debug for RefCount<S, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RefCount")
            .field("observers", &lock(&self.inner.count).observers)
            .field("connectable", &self.inner.connectable)
            .finish_non_exhaustive()
    }
}

impl<S: MulticastSource, P: Flavor> RefCount<S, P> {
    pub(super) fn new(connectable: Connectable<S, P>, wait: Option<Wait>, restarts: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                connectable,
                wait,
                restarts,
                count: Mutex::new(Count::default()),
            }),
        }
    }

    /// Calls `next` with each value; errors and completion are ignored.
    pub fn subscribe(&self, next: impl FnMut(&S::Item) + Send + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer; the first one also subscribes to the source.
    pub fn subscribe_with(
        &self,
        observer: impl Observer<S::Item, S::Error> + Send + 'static,
    ) -> Guard {
        let first = self.inner.enter();
        let count_guard = CountGuard {
            inner: Arc::clone(&self.inner),
        };
        let guard = self.inner.connectable.subscribe_with(Counted {
            observer,
            _count_guard: count_guard,
        });
        if first && !self.inner.has_ended() {
            self.inner.connectable.connect().detach();
            // The observer may have left before there was a connection that `leave` could close.
            self.inner
                .disconnect_if(|count| count.observers == 0 && count.waiting.is_closed());
        }
        guard
    }
}

impl<S: MulticastSource, P: Flavor> Inner<S, P> {
    fn has_ended(&self) -> bool {
        self.connectable.state().hub.has_ended()
    }

    /// Counts a new observer, and returns whether that observer must connect.
    fn enter(&self) -> bool {
        let mut fresh = None;
        loop {
            let mut count = lock(&self.count);
            let restart =
                count.observers == 0 && (count.stale || (self.restarts && self.has_ended()));
            if restart && fresh.is_none() {
                drop(count);
                fresh = Some(self.connectable.make_hub());
                continue;
            }
            count.observers += 1;
            count.grace += 1;
            let waiting = core::mem::take(&mut count.waiting);
            if let (true, Some(fresh)) = (restart, &mut fresh) {
                count.stale = false;
                core::mem::swap(&mut self.connectable.state().hub, fresh);
            }
            let first = count.observers == 1;
            drop(count);
            drop(waiting);
            drop(fresh);
            return first;
        }
    }

    /// Removes an observer from the count. The last one disconnects, at once or after the grace period.
    fn leave(self: &Arc<Self>) {
        let grace = {
            let mut count = lock(&self.count);
            count.observers -= 1;
            if count.observers > 0 {
                return;
            }
            count.grace += 1;
            count.grace
        };
        let Some(wait) = self.wait.as_ref().filter(|_| !self.has_ended()) else {
            self.disconnect_if(|count| count.observers == 0 && count.grace == grace);
            return;
        };
        let inner = Arc::clone(self);
        let waiting = wait(Box::new(move || {
            inner.disconnect_if(|count| count.observers == 0 && count.grace == grace);
        }));
        let mut count = lock(&self.count);
        if count.grace == grace {
            count.waiting = waiting;
        } else {
            drop(count);
            drop(waiting);
        }
    }

    /// Closes the connection if `condition` holds. The check and the removal of the connection are one step
    /// under the lock. So a later observer does not find this connection, and makes a new one.
    fn disconnect_if(&self, condition: impl FnOnce(&Count) -> bool) {
        let connection: Option<Arc<Upstreams>> = {
            let mut count = lock(&self.count);
            if !condition(&count) {
                return;
            }
            let mut state = self.connectable.state();
            if !state.hub.has_ended() {
                count.stale = true;
            }
            state.connection.take()
        };
        if let Some(connection) = connection {
            connection.close();
        }
    }
}

/// The entry of one observer in the count, for as long as the subject stores the observer.
struct CountGuard<S: MulticastSource, P: Flavor> {
    inner: Arc<Inner<S, P>>,
}

impl<S: MulticastSource, P: Flavor> Drop for CountGuard<S, P> {
    fn drop(&mut self) {
        self.inner.leave();
    }
}

struct Counted<S: MulticastSource, P: Flavor, O> {
    // Fields are dropped in this order. The guard, which may unsubscribe the source, is the last.
    observer: O,
    _count_guard: CountGuard<S, P>,
}

impl<T, E, S, P, O> Observer<T, E> for Counted<S, P, O>
where
    S: MulticastSource,
    P: Flavor,
    O: Observer<T, E>,
{
    super::forward::forward!(next, error, complete, is_closed);
}

/// A source that is subscribed to when it has a given number of observers; see [`Connectable::auto_connect`].
///
/// ```
/// use fanline::prelude::*;
///
/// let shared = fanline::from_iter(1..=2).publish().auto_connect(2);
/// let _one = shared.subscribe(|value| println!("one: {value}"));
/// let _two = shared.subscribe(|value| println!("two: {value}")); // both get 1 and 2
/// ```
pub struct AutoConnect<S: MulticastSource, P: Flavor = Publish> {
    connectable: Connectable<S, P>,
    count: usize,
    seen: Arc<AtomicUsize>,
}

impl<S: MulticastSource, P: Flavor> Clone for AutoConnect<S, P> {
    fn clone(&self) -> Self {
        Self {
            connectable: self.connectable.clone(),
            count: self.count,
            seen: Arc::clone(&self.seen),
        }
    }
}

impl<S: MulticastSource, P: Flavor> core::fmt::Debug for AutoConnect<S, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AutoConnect")
            .field("connectable", &self.connectable)
            .finish_non_exhaustive()
    }
}

impl<S: MulticastSource, P: Flavor> AutoConnect<S, P> {
    pub(super) fn new(connectable: Connectable<S, P>, count: usize) -> Self {
        if count == 0 {
            connectable.connect().detach();
        }
        Self {
            connectable,
            count,
            seen: Arc::default(),
        }
    }

    /// Calls `next` with each value; errors and completion are ignored.
    pub fn subscribe(&self, next: impl FnMut(&S::Item) + Send + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer. When the given number of observers is reached, also subscribes to the source.
    pub fn subscribe_with(
        &self,
        observer: impl Observer<S::Item, S::Error> + Send + 'static,
    ) -> Guard {
        let guard = self.connectable.subscribe_with(observer);
        // Relaxed: each observer gets its own number, and no other data is ordered.
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.count {
            self.connectable.connect().detach();
        }
        guard
    }
}
