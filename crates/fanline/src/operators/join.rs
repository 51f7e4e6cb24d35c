//! Two unlike sources behind one gate.

use std::marker::PhantomData;

use super::gate::{Event, Gate, Stage};
use crate::{Guard, Observable, Observer};

/// What an operator on two sources makes of them. Calls never overlap.
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

    /// Of either source.
    fn error(&mut self, error: &E);

    fn is_over(&self) -> bool;
}

/// Which source is subscribed first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Left,
    Right,
}

/// Subscribes both sources; the second only if the first has not ended everything.
pub(super) fn join<A, B, J>(left: A, right: B, join: J, first: First) -> Guard
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    J: Join<A::Item, B::Item, A::Error>,
{
    let gate = Gate::new(Joined {
        join,
        taken: PhantomData,
    });
    let guard = gate.guard();
    let subscribe_left = || {
        gate.connect(|key| {
            left.subscribe_with(Left {
                gate: gate.clone(),
                key,
            })
        });
    };
    let subscribe_right = || {
        gate.connect(|key| {
            right.subscribe_with(Right {
                gate: gate.clone(),
                key,
            })
        });
    };
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
    taken: PhantomData<fn(A, B, E)>,
}

enum Message<A, B, E> {
    Left(Event<A, E>),
    Right(Event<B, E>),
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
            Message::Left(Event::Next(value)) => self.join.left_owned(value),
            Message::Right(Event::Next(value)) => self.join.right_owned(value),
            Message::Left(Event::Slice(values)) => {
                for value in values {
                    if !self.join.is_over() {
                        self.join.left_owned(value);
                    }
                }
            }
            Message::Right(Event::Slice(values)) => {
                for value in values {
                    if !self.join.is_over() {
                        self.join.right_owned(value);
                    }
                }
            }
            Message::Left(Event::Complete) => self.join.left_complete(),
            Message::Right(Event::Complete) => self.join.right_complete(),
            Message::Left(Event::Error(error)) | Message::Right(Event::Error(error)) => {
                self.join.error(&error);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.join.is_over()
    }
}

struct Left<J, A, B, E>
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    gate: Gate<Joined<J, A, B, E>>,
    key: u64,
}

impl<J, A, B, E> Observer<A, E> for Left<J, A, B, E>
where
    J: Join<A, B, E>,
    A: Clone + Send + 'static,
    B: Send + 'static,
    E: Clone + Send + 'static,
{
    #[inline]
    fn next(&mut self, value: &A) {
        self.gate.enter(
            value,
            |stage, value, _| stage.join.left(value),
            |value| Message::Left(Event::Next(value.clone())),
        );
    }

    #[inline]
    fn next_owned(&mut self, value: A) {
        self.gate.enter(
            value,
            |stage, value, _| stage.join.left_owned(value),
            |value| Message::Left(Event::Next(value)),
        );
    }

    fn error(&mut self, error: &E) {
        self.gate.enter(
            error,
            |stage, error, _| stage.join.error(error),
            |error| Message::Left(Event::Error(error.clone())),
        );
    }

    fn complete(&mut self) {
        self.gate.send(Message::Left(Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}

struct Right<J, A, B, E>
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Send + 'static,
    E: Send + 'static,
{
    gate: Gate<Joined<J, A, B, E>>,
    key: u64,
}

impl<J, A, B, E> Observer<B, E> for Right<J, A, B, E>
where
    J: Join<A, B, E>,
    A: Send + 'static,
    B: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    #[inline]
    fn next(&mut self, value: &B) {
        self.gate.enter(
            value,
            |stage, value, _| stage.join.right(value),
            |value| Message::Right(Event::Next(value.clone())),
        );
    }

    #[inline]
    fn next_owned(&mut self, value: B) {
        self.gate.enter(
            value,
            |stage, value, _| stage.join.right_owned(value),
            |value| Message::Right(Event::Next(value)),
        );
    }

    fn error(&mut self, error: &E) {
        self.gate.enter(
            error,
            |stage, error, _| stage.join.error(error),
            |error| Message::Right(Event::Error(error.clone())),
        );
    }

    fn complete(&mut self) {
        self.gate.send(Message::Right(Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}
