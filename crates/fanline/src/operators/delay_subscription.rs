use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use super::upstreams::{UntilClosed, Upstreams};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// The observable returned by [`delay_subscription`](crate::TimeExt::delay_subscription).
///
/// Subscribes to the source after `delay`, on a worker of `scheduler`.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let (tx, source) = fanline::subject::<u32>();
/// let guard = source
///     .delay_subscription_on(Duration::from_secs(1), time.clone())
///     .subscribe(|value| println!("{value}"));
/// assert!(!tx.has_observers());
/// time.advance_by(Duration::from_secs(1));
/// assert!(tx.has_observers());
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct DelaySubscription<S, C> {
    source: S,
    delay: Duration,
    scheduler: C,
}

impl<S, C> DelaySubscription<S, C> {
    pub(super) fn new(source: S, delay: Duration, scheduler: C) -> Self {
        Self {
            source,
            delay,
            scheduler,
        }
    }
}

impl<S, C> Observable for DelaySubscription<S, C>
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
        subscribe_later(self.source, observer, |action| {
            worker.schedule_after(self.delay, action, |action, _| action())
        })
    }
}

/// Subscribes when the action passed to `schedule` runs.
pub(super) fn subscribe_later<S, O>(
    source: S,
    observer: O,
    schedule: impl FnOnce(Box<dyn FnOnce() + Send>) -> Guard,
) -> Guard
where
    S: Observable + Send + 'static,
    O: Observer<S::Item, S::Error> + Send + 'static,
{
    // The action may run before `set` stores the action's guard, so the action and the subscription have
    // separate keys.
    let upstreams = Arc::new(Upstreams::default());
    let (Some(action), Some(subscription)) = (upstreams.reserve(), upstreams.reserve()) else {
        return Guard::closed();
    };
    let action_upstreams = Arc::clone(&upstreams);
    let scheduled = schedule(Box::new(move || {
        action_upstreams.finish(action);
        let observer = UntilClosed {
            observer,
            upstreams: Arc::clone(&action_upstreams),
        };
        action_upstreams.set(subscription, source.subscribe_with(observer));
    }));
    upstreams.set(action, scheduled);
    upstreams.guard()
}
