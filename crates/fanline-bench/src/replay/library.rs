//! Adapters that run Fanline's subjects in a measurement.

use std::time::Duration;

use fanline::{
    AsyncSubject, BehaviorSubject, Guard, LocalSubject, Replay, ReplaySubject, Subject, observer,
};

use super::audience::{Audience, Counter, Received};
use super::grid::{Calls, Flavor, Form};
use super::running::{Running, Step, emit_each, emit_slices};
use crate::subjects::Emits;

/// Window of the flavors that retain values for a time.
pub(super) const WINDOW: Duration = Duration::from_secs(5);

/// Calls a function with a new subject, whose type depends on form and flavor.
macro_rules! with_subject {
    ($form:expr, $flavor:expr, $work:ident($($argument:expr),*)) => {
        match ($form, $flavor) {
            (Form::Exclusive, Flavor::Subject) => $work(fanline::subject(), $($argument),*),
            (Form::Exclusive, Flavor::Behavior) => $work(fanline::behavior(0), $($argument),*),
            (Form::Exclusive, Flavor::All) => $work(fanline::replay(Replay::all()), $($argument),*),
            (Form::Exclusive, Flavor::One) => $work(fanline::replay(Replay::one()), $($argument),*),
            (Form::Exclusive, Flavor::Many) => $work(fanline::replay(Replay::many(5)), $($argument),*),
            (Form::Exclusive, Flavor::Within) => $work(fanline::replay(Replay::within(WINDOW)), $($argument),*),
            (Form::Exclusive, Flavor::ManyWithin) => {
                $work(fanline::replay(Replay::many_within(5, WINDOW)), $($argument),*)
            }
            (Form::Exclusive, Flavor::Async) => $work(fanline::last_value(), $($argument),*),
            (Form::Shared, Flavor::Subject) => $work(Subject::new(), $($argument),*),
            (Form::Shared, Flavor::Behavior) => $work(BehaviorSubject::new(0), $($argument),*),
            (Form::Shared, Flavor::All) => $work(ReplaySubject::new(Replay::all()), $($argument),*),
            (Form::Shared, Flavor::One) => $work(ReplaySubject::new(Replay::one()), $($argument),*),
            (Form::Shared, Flavor::Many) => $work(ReplaySubject::new(Replay::many(5)), $($argument),*),
            (Form::Shared, Flavor::Within) => $work(ReplaySubject::new(Replay::within(WINDOW)), $($argument),*),
            (Form::Shared, Flavor::ManyWithin) => {
                $work(ReplaySubject::new(Replay::many_within(5, WINDOW)), $($argument),*)
            }
            (Form::Shared, Flavor::Async) => $work(AsyncSubject::new(), $($argument),*),
        }
    };
}
pub(super) use with_subject;

/// Runs a subject with one call per message, or an exclusive producer with slices of 64.
pub(super) fn subject(
    form: Form,
    flavor: Flavor,
    calls: Calls,
    audience: &Audience,
) -> Option<Running> {
    let received = match flavor {
        Flavor::Behavior => Received::AllAndInitial,
        Flavor::Async => Received::TheLast,
        _ => Received::All,
    };
    let step = match (calls, form, flavor) {
        (Calls::Next, ..) => with_subject!(form, flavor, each(audience)),
        (Calls::NextSlice, Form::Shared, _) | (Calls::NextSlice, _, Flavor::Async) => return None,
        (Calls::NextSlice, ..) => with_subject!(form, flavor, slices(audience)),
    };
    Some(Running { received, step })
}

fn each<S: Emits<u32>>(subject: S, audience: &Audience) -> Box<dyn FnMut(Step)> {
    let subscribe = |subject: &S, counter| subject.subscribe(count(counter));
    running(subject, audience, subscribe, |subject, messages| {
        emit_each(messages, |value| subject.next(value));
    })
}

fn slices<S: Emits<u32>>(subject: S, audience: &Audience) -> Box<dyn FnMut(Step)> {
    let subscribe =
        |subject: &S, mut counter: Counter| subject.subscribe(move |value| counter.see(*value));
    running(subject, audience, subscribe, |subject, messages| {
        emit_slices(messages, |values| subject.next_slice(values));
    })
}

fn running<S: Emits<u32>>(
    subject: S,
    audience: &Audience,
    subscribe: impl Fn(&S, Counter) -> Guard,
    emit: impl Fn(&mut S, u32) + 'static,
) -> Box<dyn FnMut(Step)> {
    let counters = audience.counters();
    let guards: Vec<Guard> = counters
        .map(|counter| subscribe(&subject, counter))
        .collect();
    let mut open = Some((subject, guards));
    Box::new(move |step| match (step, &mut open) {
        (Step::Emit(messages), Some((subject, _))) => emit(subject, messages),
        _ => {
            if let Some((subject, guards)) = open.take() {
                subject.complete();
                drop(guards);
            }
        }
    })
}

/// Runs the single-threaded subject, which uses no atomics.
pub(super) fn local(flavor: Flavor, calls: Calls, audience: &Audience) -> Option<Running> {
    ((flavor, calls) == (Flavor::Subject, Calls::Next)).then(|| Running {
        received: Received::All,
        step: each(LocalSubject::new(), audience),
    })
}

/// Runs the subject with observers of one known type.
pub(super) fn one_type(flavor: Flavor, calls: Calls, audience: &Audience) -> Option<Running> {
    if (flavor, calls) != (Flavor::Subject, Calls::Next) {
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

fn count(mut counter: Counter) -> impl FnMut(&u32) + Send + 'static {
    move |_| counter.count_value()
}
