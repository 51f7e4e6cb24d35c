//! Fanline's subjects, brought into the shape of a measurement.

use fanline::prelude::*;
use fanline::{AsyncSubject, BehaviorSubject, Replay, ReplaySubject, Subject};

use super::audience::{Audience, Received, Seat};
use super::grid::{Flavour, Form};
use super::running::{Running, Step, emit_each, emit_slices};

/// A producer that is alone; a macro, as the producers of each flavour are types of their own.
macro_rules! exclusive {
    ($pair:expr, $audience:expr, $observe:expr, $emit:ident, $method:ident) => {{
        let (tx, source) = $pair;
        let seats = $audience.seats();
        let mut guards: Vec<Guard> = seats.map(|seat| source.subscribe($observe(seat))).collect();
        let mut tx = Some(tx);
        Box::new(move |step| match step {
            Step::Emit(messages) => {
                let tx = tx.as_mut().expect("emission comes before the end");
                $emit(messages, |values| tx.$method(values));
            }
            Step::End => {
                if let Some(tx) = tx.take() {
                    tx.complete();
                }
                guards.clear();
            }
        }) as Box<dyn FnMut(Step)>
    }};
}

/// A handle that could be cloned.
macro_rules! shared {
    ($subject:expr, $audience:expr) => {{
        let subject = $subject;
        let seats = $audience.seats();
        let mut guards: Vec<Guard> = seats.map(|seat| subject.subscribe(count(seat))).collect();
        Box::new(move |step| match step {
            Step::Emit(messages) => emit_each(messages, |value| subject.next(value)),
            Step::End => {
                subject.complete();
                guards.clear();
            }
        }) as Box<dyn FnMut(Step)>
    }};
}

/// One call per message.
pub(super) fn each(flavour: Flavour, form: Form, audience: &Audience) -> Running {
    let step = match (flavour, form) {
        (Flavour::Subject, Form::Exclusive) => {
            exclusive!(fanline::subject::<u32>(), audience, count, emit_each, next)
        }
        (Flavour::Behavior, Form::Exclusive) => {
            exclusive!(fanline::behavior(0), audience, count, emit_each, next)
        }
        (Flavour::Async, Form::Exclusive) => {
            exclusive!(fanline::async_subject(), audience, count, emit_each, next)
        }
        (_, Form::Exclusive) => {
            let pair = fanline::replay::<u32>(policy(flavour));
            exclusive!(pair, audience, count, emit_each, next)
        }
        (Flavour::Subject, Form::Shared) => shared!(Subject::<u32>::new(), audience),
        (Flavour::Behavior, Form::Shared) => shared!(BehaviorSubject::new(0), audience),
        (Flavour::Async, Form::Shared) => shared!(AsyncSubject::new(), audience),
        (_, Form::Shared) => shared!(ReplaySubject::new(policy(flavour)), audience),
    };
    let received = received(flavour);
    Running { received, step }
}

/// Slices of 64.
pub(super) fn slices(flavour: Flavour, form: Form, audience: &Audience) -> Option<Running> {
    let step = match (flavour, form) {
        (Flavour::Async, _) | (_, Form::Shared) => return None,
        (Flavour::Subject, Form::Exclusive) => {
            let pair = fanline::subject::<u32>();
            exclusive!(pair, audience, see, emit_slices, next_slice)
        }
        (Flavour::Behavior, Form::Exclusive) => {
            let pair = fanline::behavior(0);
            exclusive!(pair, audience, see, emit_slices, next_slice)
        }
        (_, Form::Exclusive) => {
            let pair = fanline::replay::<u32>(policy(flavour));
            exclusive!(pair, audience, see, emit_slices, next_slice)
        }
    };
    let received = received(flavour);
    Some(Running { received, step })
}

/// Observers of one known type.
pub(super) fn one_type(_flavour: Flavour, _audience: &Audience) -> Option<Running> {
    None
}

pub(super) fn policy(flavour: Flavour) -> Replay {
    let window = std::time::Duration::from_secs(5);
    match flavour {
        Flavour::Many => Replay::many(5),
        Flavour::One => Replay::one(),
        Flavour::Within => Replay::within(window),
        Flavour::ManyWithin => Replay::many_within(5, window),
        Flavour::All | Flavour::Subject | Flavour::Behavior | Flavour::Async => Replay::all(),
    }
}

fn received(flavour: Flavour) -> Received {
    match flavour {
        Flavour::Behavior => Received::AllAndInitial,
        Flavour::Async => Received::TheLast,
        _ => Received::All,
    }
}

fn count(mut seat: Seat) -> impl FnMut(&u32) + Send + 'static {
    move |_| seat.bump()
}

fn see(mut seat: Seat) -> impl FnMut(&u32) + Send + 'static {
    move |value| seat.see(*value)
}
