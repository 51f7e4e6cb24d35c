//! Closures that run at the start of a subscription, or at its end without a completion or an error.

use super::finalize::{Once, RunOnDrop};
use super::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`on_subscribe`](crate::ObservableExt::on_subscribe).
///
/// Runs `action` at each subscription, before the source is subscribed to.
///
/// ```
/// use fanline::prelude::*;
///
/// let chain = fanline::of(1).on_subscribe(|| println!("subscribed"));
/// chain.subscribe(|n| println!("{n}")).detach(); // subscribed 1
/// ```
#[derive(Clone, Debug)]
pub struct OnSubscribe<S, F> {
    source: S,
    action: F,
}

impl<S, F> OnSubscribe<S, F> {
    pub(super) fn new(source: S, action: F) -> Self {
        Self { source, action }
    }
}

impl<S: Observable, F: FnOnce()> Observable for OnSubscribe<S, F> {
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        (self.action)();
        self.source.subscribe_with(observer)
    }
}

/// The observable returned by [`on_dispose`](crate::ObservableExt::on_dispose).
///
/// Runs `action` once if the subscription ends before the source has completed or failed: when the guard is
/// dropped, or when the source drops the observer, for example because an operator after this one needs no
/// more values. Runs on the thread that ends the subscription.
///
/// [`finalize`](crate::ObservableExt::finalize) also runs its action after a completion or an error.
///
/// ```
/// use fanline::prelude::*;
///
/// let guard = fanline::never::<u32>()
///     .on_dispose(|| println!("unsubscribed"))
///     .subscribe(|_| unreachable!());
/// drop(guard); // unsubscribed
/// ```
#[derive(Clone, Debug)]
pub struct OnDispose<S, F> {
    source: S,
    action: F,
}

impl<S, F> OnDispose<S, F> {
    pub(super) fn new(source: S, action: F) -> Self {
        Self { source, action }
    }
}

impl<S, F> Observable for OnDispose<S, F>
where
    S: Observable,
    F: FnOnce() + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Once::subscribe(self.source, self.action, |action| OnDisposeObserver {
            observer,
            action,
        })
    }
}

struct OnDisposeObserver<O, F: FnOnce()> {
    observer: O,
    /// Declared after the observer, so that the observer's data is dropped first.
    action: RunOnDrop<F>,
}

impl<T, E, O, F> Observer<T, E> for OnDisposeObserver<O, F>
where
    O: Observer<T, E>,
    F: FnOnce(),
{
    fn error(&mut self, error: &E) {
        self.action.0.cancel();
        self.observer.error(error);
    }

    fn complete(&mut self) {
        self.action.0.cancel();
        self.observer.complete();
    }

    forward!(next, is_closed);
}
