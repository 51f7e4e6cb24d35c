//! Adapters that run Fanline's subjects in a measurement.

use std::time::Duration;

use fanline::{
    AsyncSubject, BehaviorSubject, Guard, LocalSubject, Replay, ReplaySubject, Subject, observer,
};

use super::audience::{Audience, Counter, Received};
use super::grid::{Calls, Flavor, Form, Load};
use super::running::{Running, emit_each, emit_slices};
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
pub(super) fn subject(form: Form, load: Load, audience: &Audience) -> Option<Running> {
    let Load { flavor, calls, .. } = load;
    let received = match flavor {
        Flavor::Behavior => Received::AllAndInitial,
        Flavor::Async => Received::TheLast,
        _ => Received::All,
    };
    match (calls, form, flavor) {
        (Calls::Next, ..) => Some(with_subject!(form, flavor, each(audience, received))),
        (Calls::NextSlice, Form::Shared, _) | (Calls::NextSlice, _, Flavor::Async) => None,
        (Calls::NextSlice, ..) => Some(with_subject!(form, flavor, slices(audience, received))),
    }
}

fn each<S: Emits<u32>>(subject: S, audience: &Audience, received: Received) -> Running {
    let subscribe = |counter| subject.subscribe(count(counter));
    let guards: Vec<Guard> = audience.counters().map(subscribe).collect();
    let emit = |(subject, _): &mut (S, Vec<Guard>), messages| {
        emit_each(messages, |value| subject.next(value));
    };
    Running::ending(received, (subject, guards), emit, complete)
}

fn slices<S: Emits<u32>>(subject: S, audience: &Audience, received: Received) -> Running {
    let subscribe = |mut counter: Counter| subject.subscribe(move |value| counter.see(*value));
    let guards: Vec<Guard> = audience.counters().map(subscribe).collect();
    let emit = |(subject, _): &mut (S, Vec<Guard>), messages| {
        emit_slices(messages, |values| subject.next_slice(values));
    };
    Running::ending(received, (subject, guards), emit, complete)
}

fn complete<S: Emits<u32>>((subject, guards): (S, Vec<Guard>)) {
    subject.complete();
    drop(guards);
}

/// Runs the single-threaded subject, which uses no atomics.
pub(super) fn local(load: Load, audience: &Audience) -> Option<Running> {
    load.is_plain()
        .then(|| each(LocalSubject::new(), audience, Received::All))
}

/// Runs the subject with observers of one known type.
pub(super) fn one_type(load: Load, audience: &Audience) -> Option<Running> {
    if !load.is_plain() {
        return None;
    }
    let (tx, members) = fanline::subject_of();
    let subscribe = |counter| members.subscribe_with(observer(count(counter)));
    let guards: Vec<Guard> = audience.counters().map(subscribe).collect();
    Some(Running::ending(
        Received::All,
        (tx, guards),
        |(tx, _), messages| emit_each(messages, |value| tx.next(value)),
        |(tx, guards)| {
            tx.complete();
            drop(guards);
        },
    ))
}

fn count(mut counter: Counter) -> impl FnMut(&u32) + Send + 'static {
    move |_| counter.count_value()
}
