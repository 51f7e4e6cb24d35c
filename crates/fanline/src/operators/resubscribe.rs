//! Repeated subscriptions to one source, called attempts, for `repeat`, `retry`, and `retry_with`.

use alloc::sync::Arc;
use core::time::Duration;

use super::series::{Series, Step};
use crate::{Guard, Observable, Observer, Worker};

/// What happens after the source has completed or failed in a attempt.
pub(super) enum Decision {
    /// Pass the completion or error on.
    Stop,
    /// Subscribe to the source again.
    Resubscribe,
    /// Subscribe to the source again after a delay.
    ResubscribeAfter(Duration),
}

/// A rule that decides after each attempt.
pub(super) trait Policy<E>: Send + 'static {
    fn after_error(&mut self, error: &E) -> Decision;
    fn after_completion(&mut self) -> Decision;
    /// Called for each value.
    fn on_value(&mut self) {}
}

/// A way to wait between attempts.
pub(super) trait Wait: Send + 'static {
    fn wait<S: Send + 'static>(
        &self,
        delay: Duration,
        state: S,
        then: impl FnOnce(S) + Send + 'static,
    ) -> Guard;
}

/// For policies without delays.
pub(super) struct NoWait;

impl Wait for NoWait {
    fn wait<S: Send + 'static>(
        &self,
        _delay: Duration,
        state: S,
        then: impl FnOnce(S) + Send + 'static,
    ) -> Guard {
        then(state);
        Guard::closed()
    }
}

/// Waits on a worker.
pub(super) struct OnWorker<W>(pub(super) W);

impl<W: Worker> Wait for OnWorker<W> {
    fn wait<S: Send + 'static>(
        &self,
        delay: Duration,
        state: S,
        then: impl FnOnce(S) + Send + 'static,
    ) -> Guard {
        self.0
            .schedule_after(delay, state, move |state, _| then(state))
    }
}

pub(super) struct Attempt<S, O, P, W> {
    pub(super) source: S,
    pub(super) observer: O,
    pub(super) policy: P,
    pub(super) wait: W,
    /// The delay before this attempt.
    pub(super) delay: Option<Duration>,
}

impl<S, O, P, W> Step for Attempt<S, O, P, W>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
    O: Observer<S::Item, S::Error> + Send + 'static,
    P: Policy<S::Error>,
    W: Wait + Clone,
{
    fn start(mut self, series: &Arc<Series<Self>>) -> Guard {
        if let Some(delay) = self.delay.take() {
            let wait = self.wait.clone();
            return wait.wait(delay, (self, Arc::clone(series)), |(attempt, series)| {
                series.start_next(attempt)
            });
        }
        self.source.clone().subscribe_with(AttemptObserver {
            attempt: Some(self),
            series: Arc::clone(series),
        })
    }
}

impl Clone for NoWait {
    fn clone(&self) -> Self {
        Self
    }
}

impl<W: Clone> Clone for OnWorker<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct AttemptObserver<S, O, P, W> {
    /// `None` after the source has ended.
    attempt: Option<Attempt<S, O, P, W>>,
    series: Arc<Series<Attempt<S, O, P, W>>>,
}

impl<S, O, P, W> AttemptObserver<S, O, P, W>
where
    Attempt<S, O, P, W>: Step,
{
    fn ended(&mut self, decide: impl FnOnce(&mut P) -> Decision, pass_on: impl FnOnce(&mut O)) {
        let Some(mut attempt) = self.attempt.take() else {
            return;
        };
        match decide(&mut attempt.policy) {
            Decision::Stop => {
                pass_on(&mut attempt.observer);
                self.series.close();
            }
            Decision::Resubscribe => self.series.start_next(attempt),
            Decision::ResubscribeAfter(delay) => {
                attempt.delay = Some(delay);
                self.series.start_next(attempt);
            }
        }
    }
}

impl<T, E, S, O, P, W> Observer<T, E> for AttemptObserver<S, O, P, W>
where
    S: Observable<Item = T, Error = E>,
    Attempt<S, O, P, W>: Step,
    O: Observer<T, E>,
    P: Policy<E>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some(attempt) = &mut self.attempt {
            attempt.policy.on_value();
            attempt.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if let Some(attempt) = &mut self.attempt {
            attempt.policy.on_value();
            attempt.observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if let Some(attempt) = &mut self.attempt {
            attempt.policy.on_value();
            attempt.observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        self.ended(
            |policy| policy.after_error(error),
            |observer| observer.error(error),
        );
    }

    fn complete(&mut self) {
        self.ended(Policy::after_completion, Observer::complete);
    }

    fn is_closed(&self) -> bool {
        self.series.is_closed()
            || self
                .attempt
                .as_ref()
                .is_none_or(|attempt| attempt.observer.is_closed())
    }
}
