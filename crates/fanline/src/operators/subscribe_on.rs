use alloc::sync::Arc;

use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The observable returned by [`subscribe_on`](crate::ObservableExt::subscribe_on).
///
/// Subscribes on a worker of `scheduler`. Work that the source does during the subscription, such as running
/// an iterator, happens there. Values and the completion or error are passed on by the thread on which the
/// source emits them.
///
/// If the guard is dropped before the scheduler has run the action, the source is never subscribed to. If it
/// is dropped later, a source that emits during the subscription stops after the current value, because
/// [`is_closed`](crate::Observer::is_closed) returns `true`. Any other source is unsubscribed on the thread
/// that drops the guard, or on the scheduler with [`and_unsubscribe`](SubscribeOn::and_unsubscribe). The
/// scheduler handles a panic of the source.
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
#[derive(Clone, Debug)]
pub struct SubscribeOn<S, C> {
    source: S,
    scheduler: C,
    unsubscribe: bool,
}

impl<S, C> SubscribeOn<S, C> {
    pub(super) fn new(source: S, scheduler: C) -> Self {
        Self {
            source,
            scheduler,
            unsubscribe: false,
        }
    }

    /// Also unsubscribes from the source on the scheduler, for sources whose guards must be dropped there.
    /// [`is_closed`](Observer::is_closed) still returns `true` at once, so that the source can stop.
    #[must_use]
    pub fn and_unsubscribe(mut self) -> Self {
        self.unsubscribe = true;
        self
    }
}

impl<S, C> Observable for SubscribeOn<S, C>
where
    S: Observable + Send + 'static,
    C: Scheduler,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let worker = self.scheduler.worker();
        let subscription = Arc::new(Subscription {
            cancelled: AtomicBool::new(false),
            stage: Mutex::new(Stage::Waiting(Guard::closed())),
            unsubscribe_on: self.unsubscribe.then(|| worker.clone()),
        });
        let guard = Guard::registered(Arc::<Subscription<C::Worker>>::clone(&subscription), 0);
        let observer = CancelledObserver {
            observer,
            subscription: Arc::clone(&subscription),
        };
        let action = worker.schedule((self.source, observer), |(source, observer), _| {
            let subscription = Arc::clone(&observer.subscription);
            if subscription.begin() {
                subscription.subscribed(source.subscribe_with(observer));
            }
        });
        subscription.scheduled(action);
        guard
    }
}

/// The progress of the subscription; owned by the observer. The scheduled action owns the observer, and
/// passes the observer to the source.
struct Subscription<W> {
    /// Whether the guard was dropped; the source reads it after each value. Relaxed: it protects no data.
    cancelled: AtomicBool,
    stage: Mutex<Stage>,
    unsubscribe_on: Option<W>,
}

enum Stage {
    /// The action has not begun.
    Waiting(Guard),
    /// The action is subscribing. If the source emits during the subscription, this stage lasts until the
    /// source has ended.
    Subscribing(Guard),
    /// The source may emit.
    Subscribed(Guard),
    Over,
}

impl<W: Worker> Subscription<W> {
    fn scheduled(&self, action: Guard) {
        let mut stage = lock(&self.stage);
        let unused = match &mut *stage {
            Stage::Waiting(guard) | Stage::Subscribing(guard) => {
                *guard = action;
                None
            }
            Stage::Subscribed(_) | Stage::Over => Some(action),
        };
        drop(stage);
        drop(unused);
    }

    /// Begins the action. Returns whether it must subscribe.
    fn begin(&self) -> bool {
        let mut stage = lock(&self.stage);
        match core::mem::replace(&mut *stage, Stage::Over) {
            Stage::Waiting(action) => {
                *stage = Stage::Subscribing(action);
                true
            }
            Stage::Subscribing(_) | Stage::Subscribed(_) | Stage::Over => false,
        }
    }

    fn subscribed(&self, source: Guard) {
        let mut stage = lock(&self.stage);
        if matches!(&*stage, Stage::Over) {
            drop(stage);
            // The guard was dropped meanwhile. Drop the source here: this is a thread of the scheduler, so
            // the drop is in the right place even with `unsubscribe_on`.
            drop(source);
            return;
        }
        let before = core::mem::replace(&mut *stage, Stage::Subscribed(source));
        drop(stage);
        drop(before);
    }

    /// Ends the subscription, and returns the guard to drop.
    fn end(&self) -> Guard {
        self.cancelled.store(true, Ordering::Relaxed);
        let stage = core::mem::replace(&mut *lock(&self.stage), Stage::Over);
        match stage {
            Stage::Waiting(action) | Stage::Subscribing(action) => action,
            Stage::Subscribed(source) => match &self.unsubscribe_on {
                Some(worker) => {
                    worker.schedule(source, |source, _| drop(source)).detach();
                    Guard::closed()
                }
                None => source,
            },
            Stage::Over => Guard::closed(),
        }
    }
}

impl<W: Worker> Registry for Subscription<W> {
    fn remove(&self, _key: u64) {
        drop(self.end());
    }

    fn remove_and_wait(&self, _key: u64) {
        self.end().wait_and_close();
    }

    fn contains(&self, _key: u64) -> bool {
        match &*lock(&self.stage) {
            Stage::Waiting(_) | Stage::Subscribing(_) => true,
            Stage::Subscribed(source) => !source.is_closed(),
            Stage::Over => false,
        }
    }
}

struct CancelledObserver<O, W> {
    observer: O,
    subscription: Arc<Subscription<W>>,
}

impl<T, E, O, W> Observer<T, E> for CancelledObserver<O, W>
where
    O: Observer<T, E>,
    W: Worker,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.observer.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.observer.next_owned(value);
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        self.observer.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.observer.error(error);
    }

    fn complete(&mut self) {
        self.observer.complete();
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.subscription.cancelled.load(Ordering::Relaxed) || self.observer.is_closed()
    }
}
