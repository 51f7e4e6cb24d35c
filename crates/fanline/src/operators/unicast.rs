//! The inner observables of windows and groups: one queue for one observer.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use super::gate::{Event, Gate, Out, Stage};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use crate::{BoxObserver, Guard, IntoObservable, Observable, Observer, observer};

/// An observable for one observer, made by [`unicast`], and emitted by
/// [`window_count`](crate::ObservableExt::window_count), [`window_time`](crate::TimeExt::window_time),
/// [`group_by`](crate::ObservableExt::group_by), and their siblings.
/// Values that arrive before the subscription are buffered without bound, and delivered first.
///
/// It is a handle: clones refer to the same observable. The first subscription receives all values. A later
/// subscription receives only a completion, at once. For several observers, use
/// [`share`](crate::ObservableExt::share). If all handles are dropped before a subscription, buffered and
/// later values are dropped.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fanline::{operators::Unicast, prelude::*};
///
/// let windows: Arc<Mutex<Vec<Unicast<u32>>>> = Arc::default();
/// let sink = windows.clone();
/// fanline::range(1..=4)
///     .window_count(2)
///     .subscribe(move |window| sink.lock().unwrap().push(window.clone()))
///     .detach();
/// // The values are buffered until the subscription.
/// let second = windows.lock().unwrap()[1].clone();
/// second.sum().subscribe(|sum| assert_eq!(*sum, 7)).detach();
/// ```
pub struct Unicast<T, E = core::convert::Infallible>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    handle: Arc<Handle<T, E>>,
}

/// Creates a producer and an observable for one observer, which cannot fail.
///
/// Values are buffered, without bound, until the observable is subscribed to. So the observer receives all
/// values, without replay for later observers. RxJava calls this a `UnicastSubject`.
///
/// ```
/// use fanline::{operators::unicast, prelude::*};
///
/// let (mut tx, values) = unicast::<u32>();
/// tx.next(1);
/// tx.next(2);
/// tx.complete();
/// values.sum().subscribe(|sum| assert_eq!(*sum, 3)).detach();
/// ```
pub fn unicast<T: Clone + Send + 'static>() -> (UnicastProducer<T>, Unicast<T>) {
    unicast_with_error()
}

/// Like [`unicast`], for values that an error may follow.
///
/// ```
/// use fanline::{operators::unicast_with_error, prelude::*};
///
/// let (mut tx, values) = unicast_with_error::<u32, &str>();
/// tx.next(1);
/// tx.error("offline");
/// values.on_error_return(|_| 0).count().subscribe(|count| assert_eq!(*count, 2)).detach();
/// ```
pub fn unicast_with_error<T, E>() -> (UnicastProducer<T, E>, Unicast<T, E>)
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    let (feed, unicast) = Feed::new(None);
    (UnicastProducer { feed }, unicast)
}

/// The emitting end of a [`Unicast`]; made by [`unicast`]. Dropping it without a completion or an error drops
/// the observer without a call.
///
/// It is an [`Observer`], so that it can be subscribed to an observable.
pub struct UnicastProducer<T, E = core::convert::Infallible>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    feed: Feed<T, E>,
}

impl<T, E> UnicastProducer<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// Emits a value to the observer, or buffers it if there is none yet.
    pub fn next(&mut self, value: T) {
        self.feed.next_owned(value);
    }

    /// Ends the observable with an error.
    pub fn error(self, error: E) {
        self.feed.error(&error);
    }

    /// Completes the observable.
    pub fn complete(self) {
        self.feed.complete();
    }

    /// Returns whether values are dropped, because the observer has unsubscribed, or because there is no
    /// observer and all handles of the observable are dropped.
    pub fn is_closed(&self) -> bool {
        self.feed.is_over()
    }
}

impl<T, E> Drop for UnicastProducer<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn drop(&mut self) {
        self.feed.disconnect();
    }
}

impl<T, E> Observer<T, E> for UnicastProducer<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn next(&mut self, value: &T) {
        self.feed.next(value);
    }

    fn next_owned(&mut self, value: T) {
        self.feed.next_owned(value);
    }

    fn error(&mut self, error: &E) {
        self.feed.error(error);
    }

    fn complete(&mut self) {
        self.feed.complete();
    }

    fn is_closed(&self) -> bool {
        self.feed.is_over()
    }
}

impl<T, E> core::fmt::Debug for UnicastProducer<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("UnicastProducer").finish_non_exhaustive()
    }
}

struct Handle<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    gate: Gate<Mailbox<T, E>>,
    /// Whether there has been a subscription. Relaxed: only the first swap matters, and the gate orders
    /// everything else.
    subscribed: AtomicBool,
}

impl<T, E> Drop for Handle<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn drop(&mut self) {
        if !self.subscribed.load(Ordering::Relaxed) {
            self.gate.close();
        }
    }
}

impl<T, E> Unicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// Calls `next` with each value; errors and completion are ignored.
    pub fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer, which receives the buffered values before this returns.
    pub fn subscribe_with(&self, mut observer: impl Observer<T, E> + Send + 'static) -> Guard {
        if self.handle.subscribed.swap(true, Ordering::Relaxed) {
            if !observer.is_closed() {
                observer.complete();
            }
            return Guard::closed();
        }
        let guard = self.handle.gate.guard();
        self.handle.gate.send(Message::Attach(Box::new(observer)));
        guard
    }
}

impl<T, E> Clone for Unicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn clone(&self) -> Self {
        Self {
            handle: Arc::clone(&self.handle),
        }
    }
}

impl<T, E> core::fmt::Debug for Unicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Unicast")
            .field("subscribed", &self.handle.subscribed)
            .finish_non_exhaustive()
    }
}

impl<T, E> IntoObservable for Unicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    type Item = T;
    type Error = E;
    type Observable = FromUnicast<T, E>;

    fn into_observable(self) -> FromUnicast<T, E> {
        FromUnicast { unicast: self }
    }
}

/// A [`Unicast`] at the head of a chain of operators.
#[derive(Clone, Debug)]
pub struct FromUnicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    unicast: Unicast<T, E>,
}

impl<T, E> Observable for FromUnicast<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.unicast.subscribe_with(observer)
    }
}

struct Mailbox<T, E> {
    buffered: VecDeque<Event<T, E>>,
    observer: Option<Out<BoxObserver<T, E>>>,
    /// Keeps the source of a window or group subscribed as long as this observable can have an observer.
    _source_ref: Option<SourceRef>,
    /// Whether the producer was dropped, so that nothing follows the buffered events.
    producer_dropped: bool,
}

enum Message<T, E> {
    Attach(BoxObserver<T, E>),
    Event(Event<T, E>),
    ProducerDropped,
}

impl<T: Send + 'static, E: Send + 'static> Stage for Mailbox<T, E> {
    type Message = Message<T, E>;

    fn receive(&mut self, message: Message<T, E>, _gate: &Gate<Self>) {
        match (message, &mut self.observer) {
            (Message::Event(event), Some(out)) => event.deliver(out),
            (Message::Event(event), None) => self.buffered.push_back(event),
            (Message::ProducerDropped, _) => self.producer_dropped = true,
            (Message::Attach(observer), _) => {
                let out = self.observer.insert(Out::new(observer));
                for event in core::mem::take(&mut self.buffered) {
                    if out.is_closed() {
                        break;
                    }
                    event.deliver(out);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.observer
            .as_ref()
            .is_some_and(|out| self.producer_dropped || Observer::<T, E>::is_closed(out))
    }
}

/// The emitting end of a [`Unicast`].
pub(super) struct Feed<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    gate: Gate<Mailbox<T, E>>,
}

impl<T, E> Feed<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    pub(super) fn new(source_ref: Option<SourceRef>) -> (Self, Unicast<T, E>) {
        let gate = Gate::new(Mailbox {
            buffered: VecDeque::new(),
            observer: None,
            _source_ref: source_ref,
            producer_dropped: false,
        });
        let unicast = Unicast {
            handle: Arc::new(Handle {
                gate: gate.clone(),
                subscribed: AtomicBool::new(false),
            }),
        };
        (Self { gate }, unicast)
    }

    pub(super) fn next(&self, value: &T) {
        self.gate.enter(
            value,
            |mailbox, value, _| match &mut mailbox.observer {
                Some(out) => out.next(value),
                None => mailbox.buffered.push_back(Event::Next(value.clone())),
            },
            |value| Message::Event(Event::Next(value.clone())),
        );
    }

    pub(super) fn next_owned(&self, value: T) {
        self.gate.send(Message::Event(Event::Next(value)));
    }

    pub(super) fn error(&self, error: &E) {
        self.gate.send(Message::Event(Event::Error(error.clone())));
    }

    pub(super) fn complete(&self) {
        self.gate.send(Message::Event(Event::Complete));
    }

    /// Reports that nothing follows, without an end.
    fn disconnect(&self) {
        self.gate.send(Message::ProducerDropped);
    }

    fn is_over(&self) -> bool {
        self.gate.is_over()
    }
}

impl<T, E> Clone for Feed<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn clone(&self) -> Self {
        Self {
            gate: self.gate.clone(),
        }
    }
}

/// A reference that keeps the source subscribed. The subscriber of the windows or groups has one, and so does
/// each window or group. Dropping the last one unsubscribes the source.
pub(super) struct SourceRef {
    shared: Arc<SourceRefs>,
}

/// The number of references, and the subscription to the source; see [`SourceRef`].
pub(super) struct SourceRefs {
    count: AtomicUsize,
    state: Mutex<Subscription>,
}

#[derive(Default)]
struct Subscription {
    guard: Guard,
    over: bool,
    /// Whether the subscriber's reference exists.
    outer: bool,
}

impl SourceRefs {
    /// Creates the references of a new subscription, with one for the subscriber.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            count: AtomicUsize::new(1),
            state: Mutex::new(Subscription {
                outer: true,
                ..Subscription::default()
            }),
        })
    }

    pub(super) fn add_ref(self: &Arc<Self>) -> SourceRef {
        // Relaxed: the count orders no other data. If the last reference was dropped before this, the source
        // is already unsubscribed.
        self.count.fetch_add(1, Ordering::Relaxed);
        SourceRef {
            shared: Arc::clone(self),
        }
    }

    /// Returns whether the subscriber still accepts windows or groups.
    pub(super) fn outer_is_open(&self) -> bool {
        lock(&self.state).outer
    }

    /// Drops the subscriber's reference.
    pub(super) fn close_outer(&self) {
        let was_open = core::mem::replace(&mut lock(&self.state).outer, false);
        if was_open {
            self.release();
        }
    }

    /// Returns whether there are no references.
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: only a hint to stop.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Stores the subscription to the source until the last reference is dropped.
    pub(super) fn set(&self, guard: Guard) {
        let mut state = lock(&self.state);
        if state.over {
            drop(state);
            drop(guard);
        } else {
            state.guard = guard;
        }
    }

    /// Returns the guard for the subscriber.
    pub(super) fn guard(self: &Arc<Self>) -> Guard {
        Guard::registered(Arc::clone(self) as Arc<dyn crate::guard::Registry>, 0)
    }

    fn release(&self) {
        drop(self.release_one());
    }

    /// Drops one reference. Returns the source's guard if it was the last.
    fn release_one(&self) -> Guard {
        // Acquire and release: the thread that drops the last reference sees the changes of the others.
        if self.count.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Guard::closed();
        }
        let mut state = lock(&self.state);
        state.over = true;
        core::mem::take(&mut state.guard)
    }
}

impl crate::guard::Registry for SourceRefs {
    fn remove(&self, _key: u64) {
        self.close_outer();
    }

    /// Waits only if no window or group is left, because otherwise the source remains subscribed.
    fn remove_and_wait(&self, _key: u64) {
        let was_open = core::mem::replace(&mut lock(&self.state).outer, false);
        if was_open {
            self.release_one().wait_and_close();
        }
    }

    fn contains(&self, _key: u64) -> bool {
        self.outer_is_open()
    }
}

impl Drop for SourceRef {
    fn drop(&mut self) {
        self.shared.release();
    }
}
