//! What a subscription costs that comes and goes, with others present.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fanline::prelude::*;
use fanline::{AsyncSubject, BehaviorSubject, Replay, ReplaySubject, Subject};
use serde::Serialize;

use super::grid::{Flavour, Form};
use super::library::with_policy;
use crate::report::metric::Summary;

/// How many are subscribed all the while.
pub(super) const PRESENT: [usize; 5] = [0, 16, 256, 1_000, 10_000];

/// Pairs in a sample. One message follows them and is timed with them, so that what unsubscribing
/// has put off is paid for.
const PAIRS: usize = 10_000;

const SAMPLES: usize = 9;

/// Nanoseconds for a pair, by flavour.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Churn {
    pub(super) flavour: Flavour,
    pub(super) figures: Vec<Figure>,
}

/// Nanoseconds for a subscription and an unsubscription.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) form: Form,
    pub(super) present: usize,
    /// Who comes last goes first.
    pub(super) newest_leaves: Summary,
    /// Who came first goes first.
    pub(super) oldest_leaves: Summary,
}

/// Both forms of `flavour`, with each number present.
pub(super) fn measure(flavour: Flavour) -> Churn {
    let both = |form| PRESENT.map(|present| figure(flavour, form, present));
    let figures = Form::BOTH.into_iter().flat_map(both).flatten();
    Churn {
        flavour,
        figures: figures.collect(),
    }
}

/// The producer and the source of a flavour as two closures: types differ, the measurement does not.
macro_rules! pair {
    ($present:expr, $form:expr, $pair:expr) => {{
        let (mut tx, source) = $pair;
        sample($present, $form, || source.subscribe(|_| {}), || tx.next(1))
    }};
    (shared $present:expr, $form:expr, $subject:expr) => {{
        let subject = $subject;
        sample(
            $present,
            $form,
            || subject.subscribe(|_| {}),
            || {
                subject.next(1);
            },
        )
    }};
}

/// `None` when there is no such subject.
fn figure(flavour: Flavour, form: Form, present: usize) -> Option<Figure> {
    Some(match (flavour, form) {
        (Flavour::Subject, Form::Exclusive) => pair!(present, form, fanline::subject::<u32>()),
        (Flavour::Behavior, Form::Exclusive) => pair!(present, form, fanline::behavior(0)),
        (Flavour::Async, Form::Exclusive) => pair!(present, form, fanline::last_value()),
        (_, Form::Exclusive) => with_policy!(flavour, policy => {
            pair!(present, form, fanline::replay::<u32>(policy))
        })?,
        (Flavour::Subject, Form::Shared) => pair!(shared present, form, Subject::<u32>::new()),
        (Flavour::Behavior, Form::Shared) => pair!(shared present, form, BehaviorSubject::new(0)),
        (Flavour::Async, Form::Shared) => pair!(shared present, form, AsyncSubject::new()),
        (_, Form::Shared) => with_policy!(flavour, policy => {
            pair!(shared present, form, ReplaySubject::new(policy))
        })?,
    })
}

fn sample(
    present: usize,
    form: Form,
    subscribe: impl Fn() -> Guard,
    mut emit: impl FnMut(),
) -> Figure {
    let mut guards: VecDeque<Guard> = (0..present).map(|_| subscribe()).collect();
    emit();
    let mut timed = |pair: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..PAIRS).for_each(|_| pair());
        emit();
        nanos_per_pair(start.elapsed())
    };
    let mut newest = Vec::new();
    let mut oldest = Vec::new();
    for _ in 0..=SAMPLES {
        newest.push(timed(&mut || drop(subscribe())));
        oldest.push(timed(&mut || {
            guards.push_back(subscribe());
            drop(guards.pop_front());
        }));
    }
    // The first of each is the warm-up.
    let summary = |samples: Vec<f64>| Summary::of(samples.into_iter().skip(1));
    Figure {
        form,
        present,
        newest_leaves: summary(newest).expect("there are samples"),
        oldest_leaves: summary(oldest).expect("there are samples"),
    }
}

fn nanos_per_pair(elapsed: Duration) -> f64 {
    elapsed.as_nanos() as f64 / PAIRS as f64
}
