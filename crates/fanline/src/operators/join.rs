//! Operators with two sources of different types, whose calls pass one gate.

use core::marker::PhantomData;

use super::gate::{Gate, Stage};
use crate::{Guard, Observable, Observer};

/// The behavior of an operator with two sources. Calls never overlap.
pub(super) trait Join<A, B, E>: Send + 'static {
    fn left(&mut self, value: &A);

    fn left_owned(&mut self, value: A) {
        self.left(&value);
    }

    fn right(&mut self, value: &B);

    fn right_owned(&mut self, value: B) {
        self.right(&value);
    }

    fn left_complete(&mut self);

    fn right_complete(&mut self);

    /// Called when the left source has dropped its observer, whether or not it has completed or failed
    /// before. If the operator can emit nothing more without this source, it must end in this call. Otherwise
    /// the other source would keep the operator alive.
    fn left_disconnected(&mut self) {}

    /// Like [`left_disconnected`](Self::left_disconnected), for the right source.
    fn right_disconnected(&mut self) {}

    /// Called for an error of either source.
    fn error(&mut self, error: &E);

    fn is_over(&self) -> bool;
}

/// The source that is subscribed to first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Left,
    Right,
}

/// Subscribes to both sources. Does not subscribe to the second one if the operator has ended before that.
pub(super) fn join<A, B, J>(left: A, right: B, join: J, first: First) -> Guard
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    J: Join<A::Item, B::Item, A::Error>,
{
    let gate = Gate::new(Joined {
        join,
        types: PhantomData,
    });
    let guard = gate.guard();
    let subscribe_left = || gate.connect(|key| left.subscribe_with(Left::input(&gate, key)));
    let subscribe_right = || gate.connect(|key| right.subscribe_with(Right::input(&gate, key)));
    if first == First::Left {
        subscribe_left();
        subscribe_right();
    } else {
        subscribe_right();
        subscribe_left();
    }
    guard
}

struct Joined<J, A, B, E> {
    join: J,
    types: PhantomData<fn(A, B, E)>,
}

enum Message<A, B, E> {
    Left(SourceEvent<A, E>),
    Right(SourceEvent<B, E>),
}

/// An event of a source.
enum SourceEvent<T, E> {
    Next(T),
    Error(E),
    Complete,
    Disconnected,
}

impl<J, A, B, E> Stage for Joined<J, A, B, E>
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    type Message = Message<A, B, E>;

    fn receive(&mut self, message: Self::Message, _gate: &Gate<Self>) {
        match message {
            Message::Left(event) => Left::receive_event(&mut self.join, event),
            Message::Right(event) => Right::receive_event(&mut self.join, event),
        }
    }

    fn is_over(&self) -> bool {
        self.join.is_over()
    }
}

/// One of the two sources, for the operator `J`.
trait Side<J, A, B, E>: Sized + Send + 'static
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    type Value: Send + 'static;

    fn next(join: &mut J, value: &Self::Value);

    fn next_owned(join: &mut J, value: Self::Value);

    fn complete(join: &mut J);

    fn disconnected(join: &mut J);

    fn message(event: SourceEvent<Self::Value, E>) -> Message<A, B, E>;

    fn receive_event(join: &mut J, event: SourceEvent<Self::Value, E>) {
        match event {
            SourceEvent::Next(value) => Self::next_owned(join, value),
            SourceEvent::Error(error) => join.error(&error),
            SourceEvent::Complete => Self::complete(join),
            SourceEvent::Disconnected => Self::disconnected(join),
        }
    }

    /// Returns the observer of this source.
    fn input(gate: &Gate<Joined<J, A, B, E>>, key: u64) -> Input<Self, J, A, B, E> {
        Input {
            gate: gate.clone(),
            key,
            side: PhantomData,
        }
    }
}

struct Left;

impl<J, A, B, E> Side<J, A, B, E> for Left
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    type Value = A;

    #[inline]
    fn next(join: &mut J, value: &A) {
        join.left(value);
    }

    #[inline]
    fn next_owned(join: &mut J, value: A) {
        join.left_owned(value);
    }

    fn complete(join: &mut J) {
        join.left_complete();
    }

    fn disconnected(join: &mut J) {
        join.left_disconnected();
    }

    fn message(event: SourceEvent<A, E>) -> Message<A, B, E> {
        Message::Left(event)
    }
}

struct Right;

impl<J, A, B, E> Side<J, A, B, E> for Right
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    type Value = B;

    #[inline]
    fn next(join: &mut J, value: &B) {
        join.right(value);
    }

    #[inline]
    fn next_owned(join: &mut J, value: B) {
        join.right_owned(value);
    }

    fn complete(join: &mut J) {
        join.right_complete();
    }

    fn disconnected(join: &mut J) {
        join.right_disconnected();
    }

    fn message(event: SourceEvent<B, E>) -> Message<A, B, E> {
        Message::Right(event)
    }
}

/// The observer of one of the two sources.
struct Input<S, J, A, B, E>
where
    S: Side<J, A, B, E>,
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    gate: Gate<Joined<J, A, B, E>>,
    key: u64,
    side: PhantomData<S>,
}

impl<S, J, A, B, E> Observer<S::Value, E> for Input<S, J, A, B, E>
where
    S: Side<J, A, B, E, Value: Clone>,
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Clone + Send + 'static,
{
    #[inline]
    fn next(&mut self, value: &S::Value) {
        self.gate.enter(
            value,
            |stage, value, _| S::next(&mut stage.join, value),
            |value| S::message(SourceEvent::Next(value.clone())),
        );
    }

    #[inline]
    fn next_owned(&mut self, value: S::Value) {
        self.gate.enter(
            value,
            |stage, value, _| S::next_owned(&mut stage.join, value),
            |value| S::message(SourceEvent::Next(value)),
        );
    }

    fn error(&mut self, error: &E) {
        self.gate.enter(
            error,
            |stage, error, _| stage.join.error(error),
            |error| S::message(SourceEvent::Error(error.clone())),
        );
    }

    fn complete(&mut self) {
        self.gate.send(S::message(SourceEvent::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}

impl<S, J, A, B, E> Drop for Input<S, J, A, B, E>
where
    S: Side<J, A, B, E>,
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    fn drop(&mut self) {
        // Has no effect if the operator has ended or was unsubscribed.
        self.gate.send(S::message(SourceEvent::Disconnected));
    }
}
