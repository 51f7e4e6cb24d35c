//! Fanline's subjects, brought into the shape of a measurement.

use std::time::Duration;

use fanline::prelude::*;
use fanline::{AsyncSubject, BehaviorSubject, LocalSubject, Replay, ReplaySubject, Subject};

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
        Box::new(move |step| match (step, &mut tx) {
            (Step::Emit(messages), Some(tx)) => $emit(messages, |values| tx.$method(values)),
            _ => {
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

/// The policies are types of their own too.
macro_rules! with_policy {
    ($flavour:expr, $policy:ident => $work:expr) => {
        match $flavour {
            Flavour::All => {
                let $policy = Replay::all();
                Some($work)
            }
            Flavour::One => {
                let $policy = Replay::one();
                Some($work)
            }
            Flavour::Many => {
                let $policy = Replay::many(5);
                Some($work)
            }
            Flavour::Within => {
                let $policy = Replay::within(Duration::from_secs(5));
                Some($work)
            }
            Flavour::ManyWithin => {
                let $policy = Replay::many_within(5, Duration::from_secs(5));
                Some($work)
            }
            _ => None,
        }
    };
}
pub(super) use with_policy;

/// One call per message.
pub(super) fn each(flavour: Flavour, form: Form, audience: &Audience) -> Option<Running> {
    match form {
        Form::Exclusive => each_exclusive(flavour, audience),
        Form::Shared => each_shared(flavour, audience),
    }
}

fn each_exclusive(flavour: Flavour, audience: &Audience) -> Option<Running> {
    let step = match flavour {
        Flavour::Subject => {
            let pair = fanline::subject::<u32>();
            exclusive!(pair, audience, count, emit_each, next)
        }
        Flavour::Behavior => {
            let pair = fanline::behavior(0);
            exclusive!(pair, audience, count, emit_each, next)
        }
        Flavour::Async => {
            let pair = fanline::last_value::<u32>();
            exclusive!(pair, audience, count, emit_each, next)
        }
        _ => with_policy!(flavour, policy => {
            let pair = fanline::replay::<u32>(policy);
            exclusive!(pair, audience, count, emit_each, next)
        })?,
    };
    let received = received(flavour);
    Some(Running { received, step })
}

fn each_shared(flavour: Flavour, audience: &Audience) -> Option<Running> {
    let step = match flavour {
        Flavour::Subject => shared!(Subject::<u32>::new(), audience),
        Flavour::Behavior => shared!(BehaviorSubject::new(0), audience),
        Flavour::Async => shared!(AsyncSubject::new(), audience),
        _ => with_policy!(flavour, policy => {
            shared!(ReplaySubject::new(policy), audience)
        })?,
    };
    let received = received(flavour);
    Some(Running { received, step })
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
        (_, Form::Exclusive) => with_policy!(flavour, policy => {
            let pair = fanline::replay::<u32>(policy);
            exclusive!(pair, audience, see, emit_slices, next_slice)
        })?,
    };
    let received = received(flavour);
    Some(Running { received, step })
}

/// For one thread: no atomics at all.
pub(super) fn local(flavour: Flavour, audience: &Audience) -> Option<Running> {
    (flavour == Flavour::Subject).then(|| Running {
        received: Received::All,
        step: shared!(LocalSubject::<u32>::new(), audience),
    })
}

/// Observers of one known type.
pub(super) fn one_type(flavour: Flavour, audience: &Audience) -> Option<Running> {
    if flavour != Flavour::Subject {
        return None;
    }
    let (tx, members) = fanline::subject_of();
    let subscribe = |seat| members.subscribe_with(observer(count(seat)));
    let mut guards: Vec<Guard> = audience.seats().map(subscribe).collect();
    let mut tx = Some(tx);
    Some(Running {
        received: Received::All,
        step: Box::new(move |step| match (step, &mut tx) {
            (Step::Emit(messages), Some(tx)) => emit_each(messages, |value| tx.next(value)),
            _ => {
                if let Some(tx) = tx.take() {
                    tx.complete();
                }
                guards.clear();
            }
        }),
    })
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
