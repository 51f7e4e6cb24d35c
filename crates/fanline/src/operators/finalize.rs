use alloc::sync::Arc;

use crate::guard::Registry;
use crate::operators::forward::forward;
use crate::sync::{Mutex, lock};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`finalize`](crate::ObservableExt::finalize).
///
/// Runs `action` once when the subscription ends: after the completion or error has been passed on, when the
/// guard is dropped, or when the source drops a closed observer. Runs on the thread that ends the
/// subscription.
///
/// ```
/// use fanline::prelude::*;
///
/// let guard = fanline::never::<u32>()
///     .finalize(|| println!("unsubscribed"))
///     .subscribe(|_| unreachable!());
/// drop(guard); // prints
/// ```
#[derive(Clone, Debug)]
pub struct Finalize<S, F> {
    source: S,
    action: F,
}

impl<S, F> Finalize<S, F> {
    pub(super) fn new(source: S, action: F) -> Self {
        Self { source, action }
    }
}

impl<S, F> Observable for Finalize<S, F>
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
        Once::subscribe(self.source, self.action, |action| FinalizeObserver {
            observer,
            action,
        })
    }
}

struct FinalizeObserver<O, F: FnOnce()> {
    observer: O,
    /// Declared after the observer, so that the observer's data is dropped first.
    action: RunOnDrop<F>,
}

impl<T, E, O, F> Observer<T, E> for FinalizeObserver<O, F>
where
    O: Observer<T, E>,
    F: FnOnce(),
{
    fn error(&mut self, error: &E) {
        self.observer.error(error);
        self.action.0.run();
    }

    fn complete(&mut self) {
        self.observer.complete();
        self.action.0.run();
    }

    forward!(next, is_closed);
}

/// An action that runs once: when the source completes or fails, or when the guard or the observer is dropped
/// before that.
pub(super) struct Once<F>(Mutex<Option<F>>);

impl<F: FnOnce()> Once<F> {
    fn run(&self) {
        let action = lock(&self.0).take();
        if let Some(action) = action {
            action();
        }
    }

    /// Drops the action without running it.
    pub(super) fn cancel(&self) {
        let action = lock(&self.0).take();
        drop(action);
    }
}

impl<F: FnOnce() + Send> Registry for Once<F> {
    fn remove(&self, _key: u64) {
        self.run();
    }

    fn contains(&self, _key: u64) -> bool {
        lock(&self.0).is_some()
    }
}

impl<F: FnOnce() + Send + 'static> Once<F> {
    /// Subscribes the observer that `observe` makes, and runs `action` when the subscription ends, unless the
    /// observer has run or canceled it.
    pub(super) fn subscribe<S, O>(
        source: S,
        action: F,
        observe: impl FnOnce(RunOnDrop<F>) -> O,
    ) -> Guard
    where
        S: Observable,
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let action = Arc::new(Once(Mutex::new(Some(action))));
        let mut guard = source.subscribe_with(observe(RunOnDrop(action.clone())));
        // Added after the source's own guard, so that the action runs after the unsubscription.
        if action.contains(0) {
            guard.add(Guard::registered(action, 0));
        }
        guard
    }
}

/// Runs the action when a source drops its observer without completion or error, which also ends the
/// subscription.
pub(super) struct RunOnDrop<F: FnOnce()>(pub(super) Arc<Once<F>>);

impl<F: FnOnce()> Drop for RunOnDrop<F> {
    fn drop(&mut self) {
        self.0.run();
    }
}
