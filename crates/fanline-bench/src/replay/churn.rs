//! The cost of subscribing and unsubscribing while other observers are subscribed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fanline::prelude::*;
use fanline::{AsyncSubject, BehaviorSubject, Replay, ReplaySubject, Subject};

use super::grid::{Flavor, Form};
use super::library::with_policy;
use crate::report::metric::Summary;

/// Numbers of observers that stay subscribed.
const PRESENT: [usize; 5] = [0, 16, 256, 1_000, 10_000];

/// Number of pairs of a subscription and an unsubscription in a sample. One message follows the pairs and is
/// timed with them, so the result includes work that unsubscribing defers.
const PAIRS: usize = 10_000;

const SAMPLES: usize = 9;

/// The results of one flavor.
#[derive(Clone, Debug)]
pub(super) struct Churn {
    pub(super) flavor: Flavor,
    pub(super) results: Vec<Measurement>,
}

/// The time of a subscription and an unsubscription, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    pub(super) form: Form,
    pub(super) present: usize,
    /// The newest subscription is removed first.
    pub(super) newest_leaves: Summary,
    /// The oldest subscription is removed first.
    pub(super) oldest_leaves: Summary,
}

/// Measures both forms of `flavor` with each number of other subscriptions.
pub(super) fn measure(flavor: Flavor) -> Churn {
    let both = |form| PRESENT.map(|present| result(flavor, form, present));
    let results = Form::BOTH.into_iter().flat_map(both).flatten();
    Churn {
        flavor,
        results: results.collect(),
    }
}

/// Measures a producer and a source as two closures, because their types differ between flavors.
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

/// Returns a measurement, or `None` if the form does not have the flavor.
fn result(flavor: Flavor, form: Form, present: usize) -> Option<Measurement> {
    Some(match (flavor, form) {
        (Flavor::Subject, Form::Exclusive) => pair!(present, form, fanline::subject::<u32>()),
        (Flavor::Behavior, Form::Exclusive) => pair!(present, form, fanline::behavior(0)),
        (Flavor::Async, Form::Exclusive) => pair!(present, form, fanline::last_value()),
        (_, Form::Exclusive) => with_policy!(flavor, policy => {
            pair!(present, form, fanline::replay::<u32>(policy))
        })?,
        (Flavor::Subject, Form::Shared) => pair!(shared present, form, Subject::<u32>::new()),
        (Flavor::Behavior, Form::Shared) => pair!(shared present, form, BehaviorSubject::new(0)),
        (Flavor::Async, Form::Shared) => pair!(shared present, form, AsyncSubject::new()),
        (_, Form::Shared) => with_policy!(flavor, policy => {
            pair!(shared present, form, ReplaySubject::new(policy))
        })?,
    })
}

fn sample(
    present: usize,
    form: Form,
    subscribe: impl Fn() -> Guard,
    mut emit: impl FnMut(),
) -> Measurement {
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
    // The first sample of each is a warm-up.
    let summary = |samples: Vec<f64>| Summary::of(samples.into_iter().skip(1));
    Measurement {
        form,
        present,
        newest_leaves: summary(newest).expect("there are samples"),
        oldest_leaves: summary(oldest).expect("there are samples"),
    }
}

fn nanos_per_pair(elapsed: Duration) -> f64 {
    elapsed.as_nanos() as f64 / PAIRS as f64
}
