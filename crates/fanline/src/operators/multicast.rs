use alloc::boxed::Box;
use alloc::sync::Arc;

use super::upstreams::Upstreams;
use super::{AutoConnect, RefCount};
use crate::policy::{Flavor, Publish};
use crate::sync::{Mutex, lock};
use crate::unwind::{AssertUnwindSafe, catch_unwind};
use crate::{Guard, IntoObservable, Observable, Observer, SharedSubject, observer};

/// An observable that can be multicast, because each connection subscribes to a clone of it.
///
/// All observables with these properties implement this trait. Use it as a bound.
///
/// ```
/// use fanline::operators::{MulticastSource, RefCount};
///
/// struct Feed<S: MulticastSource<Item = u32>> {
///     prices: RefCount<S>,
/// }
///
/// # use fanline::prelude::*;
/// let feed = Feed { prices: fanline::from_iter([1, 2]).share() };
/// feed.prices.subscribe(|price| println!("{price}")).detach();
/// ```
pub trait MulticastSource:
    Observable<Item: Clone + Send + Sync + 'static, Error: Clone + Send + Sync + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> MulticastSource for S where
    S: Observable<Item: Clone + Send + Sync + 'static, Error: Clone + Send + Sync + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A source behind a subject, subscribed to once for all observers when [`connect`](Connectable::connect)
/// is called; see [`ObservableExt::publish`](crate::ObservableExt::publish). `P` is the flavor of the subject.
///
/// It is a handle: clones refer to the same connectable. Observers may subscribe before and after the
/// connection; the subject determines which earlier values they receive. When the source completes or fails,
/// so does the subject. The next `connect` then creates a new subject, but does not replace a subject passed
/// to [`multicast`](crate::ObservableExt::multicast). If the connection is closed before the source has
/// completed or failed, the observers stay subscribed, and another connection may serve them. An observer
/// that panics is removed and the panic hook reports it; the source and the other observers continue.
///
/// - [`publish`](crate::ObservableExt::publish) multicasts through a [`Subject`](crate::Subject): late
///   observers receive only later values.
/// - [`replay`](crate::ObservableExt::replay) multicasts through a [`ReplaySubject`](crate::ReplaySubject):
///   late observers first receive the values that `replay` retains.
/// - [`multicast`](crate::ObservableExt::multicast) multicasts through your own subject, which may have
///   other sources. After the subject has ended, connecting again has no effect.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let shared = source.map(|value| value * 2).publish(); // `map` runs once for both
/// let _one = shared.subscribe(|value| println!("one: {value}"));
/// let _two = shared.subscribe(|value| println!("two: {value}"));
/// let connection = shared.connect();
/// tx.next(1);
/// drop(connection);
/// assert!(!tx.has_observers());
/// ```
///
/// ```
/// use fanline::{Replay, prelude::*};
///
/// let shared = fanline::from_iter(0..5).replay(Replay::many(2));
/// shared.connect().detach();
/// shared.subscribe(|value| println!("{value}")).detach(); // 3 4
/// ```
///
/// ```
/// use fanline::{BehaviorSubject, prelude::*};
///
/// let state = BehaviorSubject::new(0);
/// let (mut tx, source) = fanline::subject::<u32>();
/// let shared = source.multicast(state.clone());
/// let connection = shared.connect();
/// tx.next(7);
/// assert_eq!(state.value(), Ok(7));
/// # drop(connection);
/// ```
pub struct Connectable<S: MulticastSource, P: Flavor = Publish> {
    inner: Arc<Inner<S, P>>,
}

/// The subject that the source is multicast through.
pub(super) type Hub<S, P> = SharedSubject<<S as Observable>::Item, <S as Observable>::Error, P>;

struct Inner<S: MulticastSource, P: Flavor> {
    source: S,
    make: Box<dyn Fn() -> Hub<S, P> + Send + Sync>,
    state: Mutex<State<Hub<S, P>>>,
}

pub(super) struct State<H> {
    pub(super) hub: H,
    pub(super) connection: Option<Arc<Upstreams>>,
}

impl<S: MulticastSource, P: Flavor> Clone for Connectable<S, P> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<S: MulticastSource, P: Flavor> core::fmt::Debug for Connectable<S, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connectable")
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

impl<S: MulticastSource, P: Flavor> Connectable<S, P> {
    pub(super) fn new(source: S, make: impl Fn() -> Hub<S, P> + Send + Sync + 'static) -> Self {
        let hub = make();
        Self {
            inner: Arc::new(Inner {
                source,
                make: Box::new(make),
                state: Mutex::new(State {
                    hub,
                    connection: None,
                }),
            }),
        }
    }

    /// Returns whether the source is subscribed to.
    pub fn is_connected(&self) -> bool {
        lock(&self.inner.state)
            .connection
            .as_ref()
            .is_some_and(|connection| !connection.is_closed())
    }

    pub(super) fn state(&self) -> crate::sync::MutexGuard<'_, State<Hub<S, P>>> {
        lock(&self.inner.state)
    }

    pub(super) fn make_hub(&self) -> Hub<S, P> {
        (self.inner.make)()
    }

    /// Subscribes to the source; dropping the guard unsubscribes. Values that the source has available are
    /// delivered before this method returns. If the source is already subscribed to, returns another guard of
    /// the same connection. The first of these guards that is dropped closes the connection.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (mut tx, source) = fanline::subject::<u32>();
    /// let shared = source.publish();
    /// shared.subscribe(|value| println!("{value}")).detach();
    /// tx.next(1); // not printed: nothing is connected yet
    /// let connection = shared.connect();
    /// assert!(shared.is_connected());
    /// tx.next(2);
    /// connection.unsubscribe();
    /// assert!(!tx.has_observers());
    /// ```
    pub fn connect(&self) -> Guard {
        let ended = lock(&self.inner.state).hub.has_ended();
        let mut fresh = ended.then(|| self.make_hub());
        let connection = Arc::new(Upstreams::default());
        let hub = {
            let mut state = lock(&self.inner.state);
            if let Some(open) = state.connection.as_ref().filter(|open| !open.is_closed()) {
                return open.guard();
            }
            state.connection = Some(Arc::clone(&connection));
            if let Some(fresh) = &mut fresh {
                core::mem::swap(&mut state.hub, fresh);
            }
            state.hub.clone()
        };
        drop(fresh); // By now the subject that has ended.
        let guard = connection.guard();
        if let Some(key) = connection.reserve() {
            let subscription = self.inner.source.clone().subscribe_with(Relay {
                hub,
                connection: Arc::clone(&connection),
            });
            connection.set(key, subscription);
        }
        guard
    }

    /// Calls `next` with each value; errors and completion are ignored.
    pub fn subscribe(&self, next: impl FnMut(&S::Item) + Send + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer to the subject.
    pub fn subscribe_with(
        &self,
        observer: impl Observer<S::Item, S::Error> + Send + 'static,
    ) -> Guard {
        let hub = lock(&self.inner.state).hub.clone();
        hub.source().subscribe_with(observer)
    }

    /// Returns a source that connects when the first observer subscribes, and disconnects when the last one
    /// leaves; see [`RefCount`](super::RefCount).
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (tx, source) = fanline::subject::<u32>();
    /// let shared = source.publish().ref_count();
    /// assert!(!tx.has_observers());
    /// let (one, two) = (shared.subscribe(|_| ()), shared.subscribe(|_| ()));
    /// assert_eq!(tx.observer_count(), 1);
    /// drop((one, two));
    /// assert!(!tx.has_observers());
    /// ```
    pub fn ref_count(self) -> RefCount<S, P> {
        RefCount::new(self, None, true)
    }

    /// Like [`ref_count`](Connectable::ref_count), but stays connected for `grace` after the last observer
    /// has left. An observer that subscribes within that time finds the connection and the subject's retained
    /// values unchanged. A worker of `scheduler` measures the time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fanline::{prelude::*, scheduler::VirtualTime};
    ///
    /// let time = VirtualTime::new();
    /// let (tx, source) = fanline::subject::<u32>();
    /// let shared = source.publish().ref_count_with_grace(Duration::from_secs(5), time.clone());
    /// drop(shared.subscribe(|_| ()));
    /// assert!(tx.has_observers());
    /// time.advance_by(Duration::from_secs(5));
    /// assert!(!tx.has_observers());
    /// ```
    pub fn ref_count_with_grace<C: crate::Scheduler>(
        self,
        grace: core::time::Duration,
        scheduler: C,
    ) -> RefCount<S, P> {
        let wait = super::ref_count::wait(grace, scheduler);
        RefCount::new(self, Some(wait), true)
    }

    /// Returns a source that connects when `count` observers have subscribed (at once if `count` is 0), and
    /// never disconnects.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// let (tx, source) = fanline::subject::<u32>();
    /// let shared = source.publish().auto_connect(2);
    /// let _one = shared.subscribe(|value| println!("one: {value}"));
    /// assert!(!tx.has_observers());
    /// let _two = shared.subscribe(|value| println!("two: {value}"));
    /// assert!(tx.has_observers());
    /// ```
    pub fn auto_connect(self, count: usize) -> AutoConnect<S, P> {
        AutoConnect::new(self, count)
    }
}

/// Passes the events of the source to the subject.
struct Relay<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    hub: SharedSubject<T, E, P>,
    connection: Arc<Upstreams>,
}

impl<T, E, P> Relay<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    /// Catches the panic of an observer. If the panic reached the source, it would close the connection for
    /// all observers. The panic hook has reported the panic, and the subject has removed the observer.
    #[inline]
    fn call(&self, call: impl FnOnce(&SharedSubject<T, E, P>)) {
        let _ = catch_unwind(AssertUnwindSafe(|| call(&self.hub)));
    }
}

impl<T, E, P> Observer<T, E> for Relay<T, E, P>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
    P: Flavor,
{
    fn next(&mut self, value: &T) {
        self.call(|hub| hub.next_slice(core::slice::from_ref(value)));
    }

    fn next_owned(&mut self, value: T) {
        self.call(|hub| hub.next(value));
    }

    fn next_slice(&mut self, values: &[T]) {
        self.call(|hub| hub.next_slice(values));
    }

    fn error(&mut self, error: &E) {
        // The connection is closed first, so that an observer that reconnects in its `error` or `complete`
        // gets a new connection.
        self.connection.close();
        self.call(|hub| hub.error(error.clone()));
    }

    fn complete(&mut self) {
        self.connection.close();
        self.call(SharedSubject::complete);
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed() || self.hub.has_ended()
    }
}

impl<T, E, P> Drop for Relay<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    /// Disposes of the subject if the source is dropped without completion or error. No more values can reach
    /// the subject's observers. An observer may own the connectable, which owns the subject, which owns the
    /// observer; disposing of the subject breaks this cycle.
    fn drop(&mut self) {
        if !self.connection.is_closed() {
            self.connection.close();
            if !self.hub.has_ended() {
                self.hub.dispose();
            }
        }
    }
}

mod private {
    pub trait Sealed {}
}

/// A source that can be subscribed to through a shared reference: a [`Connectable`], a
/// [`RefCount`](super::RefCount), or an [`AutoConnect`](super::AutoConnect).
///
/// It cannot be implemented outside this crate.
pub trait Shareable: private::Sealed + Clone {
    /// The type of the values.
    type Item;
    /// The type of the error.
    type Error;

    /// Subscribes an observer.
    fn share_with<O>(&self, observer: O) -> Guard
    where
        O: Observer<Self::Item, Self::Error> + Send + 'static;
}

/// A [`Shareable`] source at the head of a chain of operators.
#[derive(Clone, Debug)]
pub struct FromShared<C> {
    shared: C,
}

impl<C: Shareable> Observable for FromShared<C> {
    type Item = C::Item;
    type Error = C::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C::Item, C::Error> + Send + 'static,
    {
        self.shared.share_with(observer)
    }
}

macro_rules! shareable {
    ($($name:ident),+) => {$(
        impl<S: MulticastSource, P: Flavor> private::Sealed for $name<S, P> {}

        impl<S: MulticastSource, P: Flavor> Shareable for $name<S, P> {
            type Item = S::Item;
            type Error = S::Error;

            fn share_with<O>(&self, observer: O) -> Guard
            where
                O: Observer<S::Item, S::Error> + Send + 'static,
            {
                self.subscribe_with(observer)
            }
        }

        impl<S: MulticastSource, P: Flavor> IntoObservable for $name<S, P> {
            type Item = S::Item;
            type Error = S::Error;
            type Observable = FromShared<Self>;

            fn into_observable(self) -> FromShared<Self> {
                FromShared { shared: self }
            }
        }
    )+};
}

shareable!(Connectable, RefCount, AutoConnect);
