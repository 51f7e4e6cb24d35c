//! Observers that turn the calls of a source into messages for a stage.

use super::gate::{Event, Gate, Stage};
use crate::{IntoObservable, Observable, Observer};

/// Subscribes to `source`, and sends the message that `wrap` makes for each of its events.
pub(super) fn connect<S, U, W>(gate: &Gate<S>, source: U, wrap: W)
where
    S: Stage,
    U: Observable<Item: Clone, Error: Clone>,
    W: FnMut(Event<U::Item, U::Error>) -> S::Message + Send + 'static,
{
    gate.connect(|key| {
        source.subscribe_with(Input {
            gate: gate.clone(),
            key,
            wrap,
        })
    });
}

struct Input<S: Stage, W> {
    gate: Gate<S>,
    key: u64,
    wrap: W,
}

impl<T, E, S, W> Observer<T, E> for Input<S, W>
where
    T: Clone,
    E: Clone,
    S: Stage,
    W: FnMut(Event<T, E>) -> S::Message,
{
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.gate.send((self.wrap)(Event::Next(value)));
    }

    fn error(&mut self, error: &E) {
        self.gate.send((self.wrap)(Event::Error(error.clone())));
    }

    fn complete(&mut self) {
        self.gate.send((self.wrap)(Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}

/// Subscribes to `notifier`. Sends the message that `message` makes when the notifier emits its first value,
/// completes, or fails, and unsubscribes from it.
///
/// Returns the key of the subscription; `None` if the gate is closed. Unlike other inner observables, a
/// notifier may be subscribed to by the stage itself, because it is left after one value.
pub(super) fn notify<S, N, M>(gate: &Gate<S>, notifier: N, message: M) -> Option<u64>
where
    S: Stage,
    N: IntoObservable<Error: Clone>,
    M: FnOnce(Result<(), N::Error>) -> S::Message + Send + 'static,
{
    let key = gate.upstreams().reserve()?;
    let guard = notifier.into_observable().subscribe_with(Notified {
        gate: gate.clone(),
        key,
        message: Some(message),
    });
    gate.upstreams().set(key, guard);
    Some(key)
}

struct Notified<S: Stage, M> {
    gate: Gate<S>,
    key: u64,
    /// `None` after the message was sent.
    message: Option<M>,
}

impl<S: Stage, M> Notified<S, M> {
    fn send<E>(&mut self, result: Result<(), E>)
    where
        M: FnOnce(Result<(), E>) -> S::Message,
    {
        if let Some(message) = self.message.take() {
            self.gate.send(message(result));
            self.gate.upstreams().finish(self.key);
        }
    }
}

impl<T, E, S, M> Observer<T, E> for Notified<S, M>
where
    E: Clone,
    S: Stage,
    M: FnOnce(Result<(), E>) -> S::Message,
{
    fn next(&mut self, _value: &T) {
        self.send(Ok(()));
    }

    fn error(&mut self, error: &E) {
        self.send(Err(error.clone()));
    }

    fn complete(&mut self) {
        self.send(Ok(()));
    }

    fn is_closed(&self) -> bool {
        self.message.is_none() || self.gate.is_over()
    }
}
