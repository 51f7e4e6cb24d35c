//! Operators: observables made of observables.

mod map;
mod observe_on;
mod subscribe_on;

pub use map::Map;
pub use observe_on::ObserveOn;
pub use subscribe_on::SubscribeOn;

use crate::scheduler::Bound;
use crate::{BoxObservable, IntoObservable, Observable, Scheduler};

/// The operators, on everything that can be turned into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // Each group of methods stands under its heading, alphabetically where nothing else decides.

    // -- Transforming

    /// Emits what `f` makes of each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    // -- Filtering

    // -- Folding

    // -- Combining

    // -- Errors

    // -- Time

    // -- Threads

    /// Calls the observer on a worker of `scheduler`, in order, the end after the values.
    ///
    /// The thread that emits puts values in an unbounded queue and never waits; clones them if they
    /// are emitted by reference, as subjects do. The worker empties the queue in bursts, one at a time:
    /// this moves the work to another thread and does not spread it over several. When the observer
    /// panics the subscription ends, and the panic goes where the scheduler sends panics.
    /// Unsubscribing drops what is queued.
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
    fn observe_on<C: Scheduler>(self, scheduler: C) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ObserveOn::new(self.into_observable(), scheduler, None)
    }

    /// [`observe_on`](ObservableExt::observe_on) with a queue that holds a number of values at most.
    /// [`Bound`] says how many, and what happens to one more: it blocks the thread that emits, drops
    /// the oldest, drops the newest, or ends with an error.
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
    fn observe_on_with<C: Scheduler>(
        self,
        scheduler: C,
        bound: Bound<Self::Error>,
    ) -> ObserveOn<Self::Observable, C, Self::Error>
    where
        Self::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ObserveOn::new(self.into_observable(), scheduler, Some(bound))
    }

    /// Subscribes on a worker of `scheduler`: what the source does on subscription, such as going
    /// through an iterator, is done there. Values and the end are passed on where the source emits
    /// them.
    ///
    /// Unsubscribing before the scheduler came to it means that the source is never subscribed. After
    /// that it stops a source that is at it after the value in progress, by
    /// [`is_closed`](crate::Observer::is_closed), and unsubscribes from any other on the thread that
    /// unsubscribes, or on the scheduler with [`and_unsubscribe`](SubscribeOn::and_unsubscribe). A
    /// panic of the source goes where the scheduler sends panics.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use fanline::{Observable, ObservableExt, Replay, scheduler::NewThread};
    ///
    /// let (mut tx, source) = fanline::replay::<u32>(Replay::all());
    /// tx.next_slice(&[1, 2, 3]);
    /// tx.complete();
    /// let (seen, rx) = mpsc::channel();
    /// source
    ///     .subscribe_on(NewThread)
    ///     .subscribe(move |value| seen.send(*value).unwrap())
    ///     .detach();
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    fn subscribe_on<C: Scheduler>(self, scheduler: C) -> SubscribeOn<Self::Observable, C>
    where
        Self::Observable: Send + 'static,
    {
        SubscribeOn::new(self.into_observable(), scheduler)
    }

    // -- Multicast

    // -- Looking on

    // -- Other shapes

    /// Hides the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }
}

impl<S: IntoObservable> ObservableExt for S {}
