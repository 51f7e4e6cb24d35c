//! Helpers for tests on [`VirtualTime`]: an observer that records calls, and observables that emit at given
//! times.
//!
//! Times are in nanoseconds of the virtual clock, and usually small numbers.
//!
//! ```
//! use std::convert::Infallible;
//! use fanline::{ObservableExt, Observable, scheduler::VirtualTime};
//! use fanline::testing::{Recorder, complete, hot, next};
//!
//! let time = VirtualTime::new();
//! let source = hot::<u32, Infallible>(&time, [next(10, 1), next(20, 2), complete(30)]);
//! let recorder = Recorder::new(&time);
//! source
//!     .clone()
//!     .map(|value| value * 100)
//!     .subscribe_with(recorder.clone())
//!     .detach();
//! time.run();
//! assert_eq!(recorder.events(), [next(10, 100), next(20, 200), complete(30)]);
//! assert_eq!(source.subscriptions().len(), 1);
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use crate::guard::Registry;
use crate::scheduler::VirtualTime;
use crate::sync::{Mutex, lock};
use crate::{BoxObserver, Guard, Notification, Observable, Observer, Scheduler, Time};

/// A call of an observer, and its time. The time is measured from the clock's start. For [`cold`] observables, it is
/// measured from the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Recorded<T, E = Infallible> {
    /// Time of the call.
    pub at: Time,
    /// The call: a value, an error, or the completion.
    pub event: Notification<T, E>,
}

/// Returns a value that is emitted at the time `nanos`.
pub fn next<T, E>(nanos: u64, value: T) -> Recorded<T, E> {
    Recorded {
        at: Time::from_nanos(nanos),
        event: Notification::Next(value),
    }
}

/// Returns an error that is emitted at the time `nanos`.
pub fn error<T, E>(nanos: u64, error: E) -> Recorded<T, E> {
    Recorded {
        at: Time::from_nanos(nanos),
        event: Notification::Error(error),
    }
}

/// Returns completion at `nanos`.
pub fn complete<T, E>(nanos: u64) -> Recorded<T, E> {
    Recorded {
        at: Time::from_nanos(nanos),
        event: Notification::Complete,
    }
}

/// An observer that records each call and its time. Clones share the record.
///
/// ```
/// use std::convert::Infallible;
/// use fanline::{Subject, scheduler::VirtualTime, testing::{Recorder, complete, next}};
///
/// let recorder = Recorder::<u32, Infallible>::new(&VirtualTime::starting_at(fanline::Time::from_nanos(5)));
/// let s = Subject::new();
/// s.subscribe_with(recorder.clone()).detach();
/// s.next(1);
/// s.complete();
/// assert_eq!(recorder.events(), [next(5, 1), complete(5)]);
/// ```
#[derive(Debug)]
pub struct Recorder<T, E = Infallible> {
    clock: VirtualTime,
    events: Arc<Mutex<Vec<Recorded<T, E>>>>,
}

impl<T, E> Recorder<T, E> {
    /// Returns an empty recorder that takes its times from `clock`.
    pub fn new(clock: &VirtualTime) -> Self {
        Self {
            clock: clock.clone(),
            events: Arc::new(Mutex::new(Vec::new())),
        }
    }

    fn record(&self, event: Notification<T, E>) {
        let at = self.clock.now();
        lock(&self.events).push(Recorded { at, event });
    }
}

impl<T: Clone, E: Clone> Recorder<T, E> {
    /// Returns the events recorded so far.
    pub fn events(&self) -> Vec<Recorded<T, E>> {
        lock(&self.events).clone()
    }

    /// Returns the values recorded so far, without their times, and without the completion or error.
    pub fn values(&self) -> Vec<T> {
        let value = |recorded| match recorded {
            Recorded {
                event: Notification::Next(value),
                ..
            } => Some(value),
            _ => None,
        };
        self.events().into_iter().filter_map(value).collect()
    }
}

impl<T, E> Clone for Recorder<T, E> {
    fn clone(&self) -> Self {
        Self {
            clock: self.clock.clone(),
            events: Arc::clone(&self.events),
        }
    }
}

impl<T: Clone, E: Clone> Observer<T, E> for Recorder<T, E> {
    fn next(&mut self, value: &T) {
        self.record(Notification::Next(value.clone()));
    }

    fn next_owned(&mut self, value: T) {
        self.record(Notification::Next(value));
    }

    fn error(&mut self, error: &E) {
        self.record(Notification::Error(error.clone()));
    }

    fn complete(&mut self) {
        self.record(Notification::Complete);
    }
}

/// Returns an observable that emits at given times, each time to the observers that are subscribed at that
/// moment. Clones share their subscribers.
pub fn hot<T, E>(clock: &VirtualTime, events: impl IntoIterator<Item = Recorded<T, E>>) -> Hot<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let subscriptions = Subscriptions::new(clock);
    for Recorded { at, event } in events {
        let subscriptions = Arc::clone(&subscriptions);
        clock
            .schedule_at(at, move || subscriptions.emit(&event))
            .detach();
    }
    Hot { subscriptions }
}

/// The observable that [`hot`] returns.
pub struct Hot<T, E = Infallible> {
    subscriptions: Arc<Subscriptions<T, E>>,
}

impl<T, E> Hot<T, E> {
    /// Returns the start and end time of each subscription; the end time is `None` if the subscription is
    /// still open.
    pub fn subscriptions(&self) -> Vec<(Time, Option<Time>)> {
        self.subscriptions.times()
    }
}

impl<T, E> std::fmt::Debug for Hot<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hot")
            .field("subscriptions", &self.subscriptions())
            .finish_non_exhaustive()
    }
}

impl<T, E> Clone for Hot<T, E> {
    fn clone(&self) -> Self {
        Self {
            subscriptions: Arc::clone(&self.subscriptions),
        }
    }
}

impl<T: 'static, E: 'static> Observable for Hot<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let key = self.subscriptions.add(Box::new(observer));
        Guard::registered(self.subscriptions, key)
    }
}

/// Returns an observable that emits to each subscriber at times that are measured from its own subscription.
/// Clones share their list of subscriptions.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use fanline::{Observable, scheduler::VirtualTime, testing::{Recorder, cold, complete, next}};
///
/// let time = VirtualTime::new();
/// let source = cold::<u32, Infallible>(&time, [next(10, 1), complete(20)]);
/// time.advance_by(Duration::from_nanos(5));
/// let recorder = Recorder::new(&time);
/// source.subscribe_with(recorder.clone()).detach();
/// time.run();
/// assert_eq!(recorder.events(), [next(15, 1), complete(25)]);
/// ```
pub fn cold<T, E>(
    clock: &VirtualTime,
    events: impl IntoIterator<Item = Recorded<T, E>>,
) -> Cold<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    Cold {
        subscriptions: Subscriptions::new(clock),
        events: events.into_iter().collect(),
    }
}

/// The observable that [`cold`] returns.
pub struct Cold<T, E = Infallible> {
    subscriptions: Arc<Subscriptions<T, E>>,
    events: Vec<Recorded<T, E>>,
}

impl<T, E> Cold<T, E> {
    /// Returns the start and end time of each subscription; the end time is `None` if the subscription is
    /// still open.
    pub fn subscriptions(&self) -> Vec<(Time, Option<Time>)> {
        self.subscriptions.times()
    }
}

impl<T, E> std::fmt::Debug for Cold<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cold")
            .field("subscriptions", &self.subscriptions())
            .finish_non_exhaustive()
    }
}

impl<T: Clone, E: Clone> Clone for Cold<T, E> {
    fn clone(&self) -> Self {
        Self {
            subscriptions: Arc::clone(&self.subscriptions),
            events: self.events.clone(),
        }
    }
}

impl<T, E> Observable for Cold<T, E>
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
        let key = self.subscriptions.add(Box::new(observer));
        for Recorded { at, event } in self.events {
            let subscriptions = Arc::clone(&self.subscriptions);
            // After the subscription has ended, `emit_to` finds no observer under the key.
            let emit = move || subscriptions.emit_to(key, &event);
            let delay = at.since(Time::ZERO);
            self.subscriptions
                .clock
                .schedule_after(delay, emit)
                .detach();
        }
        Guard::registered(self.subscriptions, key)
    }
}

/// The subscriptions of an observable, including past ones.
struct Subscriptions<T, E> {
    clock: VirtualTime,
    list: Mutex<Vec<Subscription<T, E>>>,
}

struct Subscription<T, E> {
    from: Time,
    until: Option<Time>,
    /// `None` after the subscription has ended, and during a call of the observer.
    observer: Option<BoxObserver<T, E>>,
}

impl<T, E> Subscriptions<T, E> {
    fn new(clock: &VirtualTime) -> Arc<Self> {
        Arc::new(Self {
            clock: clock.clone(),
            list: Mutex::new(Vec::new()),
        })
    }

    /// Adds a subscription and returns its key, which is its index in the list.
    fn add(&self, observer: BoxObserver<T, E>) -> u64 {
        let subscription = Subscription {
            from: self.clock.now(),
            until: None,
            observer: Some(observer),
        };
        let mut list = lock(&self.list);
        list.push(subscription);
        list.len() as u64 - 1
    }

    /// Returns the start and end time of each subscription.
    fn times(&self) -> Vec<(Time, Option<Time>)> {
        let list = lock(&self.list);
        list.iter()
            .map(|subscription| (subscription.from, subscription.until))
            .collect()
    }

    fn emit(&self, event: &Notification<T, E>) {
        let present = lock(&self.list).len() as u64;
        for key in 0..present {
            self.emit_to(key, event);
        }
    }

    fn emit_to(&self, key: u64, event: &Notification<T, E>) {
        let taken = self.with(key, |subscription| subscription.observer.take());
        let Some(mut observer) = taken.flatten() else {
            return;
        };
        let ended = match event {
            Notification::Next(value) => {
                observer.next(value);
                observer.is_closed()
            }
            Notification::Error(error) => {
                observer.error(error);
                true
            }
            Notification::Complete => {
                observer.complete();
                true
            }
        };
        let now = self.clock.now();
        let left = self.with(key, |subscription| {
            if ended {
                subscription.until.get_or_insert(now);
            }
            match subscription.until {
                Some(_) => Some(observer),
                None => {
                    subscription.observer = Some(observer);
                    None
                }
            }
        });
        drop(left);
    }

    /// Calls `f` with a subscription, under the lock.
    fn with<R>(&self, key: u64, f: impl FnOnce(&mut Subscription<T, E>) -> R) -> Option<R> {
        let index = usize::try_from(key).ok()?;
        lock(&self.list).get_mut(index).map(f)
    }
}

impl<T, E> Registry for Subscriptions<T, E> {
    fn remove(&self, key: u64) {
        let now = self.clock.now();
        let observer = self.with(key, |subscription| {
            subscription.until.get_or_insert(now);
            subscription.observer.take()
        });
        drop(observer);
    }

    fn contains(&self, key: u64) -> bool {
        self.with(key, |subscription| subscription.until.is_none())
            .unwrap_or(false)
    }
}
