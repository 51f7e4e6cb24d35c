//! Adapters that run Fanline's subjects in a measurement.

use std::time::Duration;

use fanline::prelude::*;
use fanline::{AsyncSubject, BehaviorSubject, LocalSubject, Replay, ReplaySubject, Subject};

use super::audience::{Audience, Counter, Received};
use super::grid::{Flavor, Form};
use super::running::{Running, Step, emit_each, emit_slices};

/// Runs an exclusive producer. This is a macro because the producers of different flavors have different
/// types.
macro_rules! exclusive {
    ($pair:expr, $audience:expr, $observe:expr, $emit:ident, $method:ident) => {{
        let (tx, source) = $pair;
        let counters = $audience.counters();
        let mut guards: Vec<Guard> = counters
            .map(|counter| source.subscribe($observe(counter)))
            .collect();
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

/// Runs a shared handle.
macro_rules! shared {
    ($subject:expr, $audience:expr) => {{
        let subject = $subject;
        let counters = $audience.counters();
        let mut guards: Vec<Guard> = counters
            .map(|counter| subject.subscribe(count(counter)))
            .collect();
        Box::new(move |step| match step {
            Step::Emit(messages) => emit_each(messages, |value| subject.next(value)),
            Step::End => {
                subject.complete();
                guards.clear();
            }
        }) as Box<dyn FnMut(Step)>
    }};
}

/// Evaluates an expression with a flavor's policy. This is a macro because policies have different types.
macro_rules! with_policy {
    ($flavor:expr, $policy:ident => $work:expr) => {
        match $flavor {
            Flavor::All => {
                let $policy = Replay::all();
                Some($work)
            }
            Flavor::One => {
                let $policy = Replay::one();
                Some($work)
            }
            Flavor::Many => {
                let $policy = Replay::many(5);
                Some($work)
            }
            Flavor::Within => {
                let $policy = Replay::within(Duration::from_secs(5));
                Some($work)
            }
            Flavor::ManyWithin => {
                let $policy = Replay::many_within(5, Duration::from_secs(5));
                Some($work)
            }
            _ => None,
        }
    };
}
pub(super) use with_policy;

/// Emits with one call per message.
pub(super) fn each(flavor: Flavor, form: Form, audience: &Audience) -> Option<Running> {
    match form {
        Form::Exclusive => each_exclusive(flavor, audience),
        Form::Shared => each_shared(flavor, audience),
    }
}

fn each_exclusive(flavor: Flavor, audience: &Audience) -> Option<Running> {
    let step = match flavor {
        Flavor::Subject => {
            let pair = fanline::subject::<u32>();
            exclusive!(pair, audience, count, emit_each, next)
        }
        Flavor::Behavior => {
            let pair = fanline::behavior(0);
            exclusive!(pair, audience, count, emit_each, next)
        }
        Flavor::Async => {
            let pair = fanline::last_value::<u32>();
            exclusive!(pair, audience, count, emit_each, next)
        }
        _ => with_policy!(flavor, policy => {
            let pair = fanline::replay::<u32>(policy);
            exclusive!(pair, audience, count, emit_each, next)
        })?,
    };
    let received = received(flavor);
    Some(Running { received, step })
}

fn each_shared(flavor: Flavor, audience: &Audience) -> Option<Running> {
    let step = match flavor {
        Flavor::Subject => shared!(Subject::<u32>::new(), audience),
        Flavor::Behavior => shared!(BehaviorSubject::new(0), audience),
        Flavor::Async => shared!(AsyncSubject::new(), audience),
        _ => with_policy!(flavor, policy => {
            shared!(ReplaySubject::new(policy), audience)
        })?,
    };
    let received = received(flavor);
    Some(Running { received, step })
}

/// Emits slices of 64.
pub(super) fn slices(flavor: Flavor, form: Form, audience: &Audience) -> Option<Running> {
    let step = match (flavor, form) {
        (Flavor::Async, _) | (_, Form::Shared) => return None,
        (Flavor::Subject, Form::Exclusive) => {
            let pair = fanline::subject::<u32>();
            exclusive!(pair, audience, see, emit_slices, next_slice)
        }
        (Flavor::Behavior, Form::Exclusive) => {
            let pair = fanline::behavior(0);
            exclusive!(pair, audience, see, emit_slices, next_slice)
        }
        (_, Form::Exclusive) => with_policy!(flavor, policy => {
            let pair = fanline::replay::<u32>(policy);
            exclusive!(pair, audience, see, emit_slices, next_slice)
        })?,
    };
    let received = received(flavor);
    Some(Running { received, step })
}

/// Runs the single-threaded subject, which uses no atomics.
pub(super) fn local(flavor: Flavor, audience: &Audience) -> Option<Running> {
    (flavor == Flavor::Subject).then(|| Running {
        received: Received::All,
        step: shared!(LocalSubject::<u32>::new(), audience),
    })
}

/// Runs the subject with observers of one known type.
pub(super) fn one_type(flavor: Flavor, audience: &Audience) -> Option<Running> {
    if flavor != Flavor::Subject {
        return None;
    }
    let (tx, members) = fanline::subject_of();
    let subscribe = |counter| members.subscribe_with(observer(count(counter)));
    let mut guards: Vec<Guard> = audience.counters().map(subscribe).collect();
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

fn received(flavor: Flavor) -> Received {
    match flavor {
        Flavor::Behavior => Received::AllAndInitial,
        Flavor::Async => Received::TheLast,
        _ => Received::All,
    }
}

fn count(mut counter: Counter) -> impl FnMut(&u32) + Send + 'static {
    move |_| counter.count_value()
}

fn see(mut counter: Counter) -> impl FnMut(&u32) + Send + 'static {
    move |value| counter.see(*value)
}
