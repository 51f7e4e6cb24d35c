//! The cost of subscribing and unsubscribing while other observers are subscribed.

use std::collections::VecDeque;
use std::time::Instant;

use fanline::{AsyncSubject, BehaviorSubject, Guard, Replay, ReplaySubject, Subject};

use super::grid::{Flavor, Form};
use super::library::{WINDOW, with_subject};
use crate::report::metric::{Metric, Summary};
use crate::report::{Row, count};
use crate::subjects::Emits;

const PRESENT: [usize; 5] = [0, 16, 256, 1_000, 10_000];

/// Number of pairs of a subscription and an unsubscription in a sample. One message follows the pairs and is
/// timed with them, so the result includes work that unsubscribing defers.
const PAIRS: usize = 10_000;

const SAMPLES: usize = 9;

/// Returns the name of the row in which the `order` subscription is removed first.
pub(super) fn name(order: &str, flavor: Flavor, present: usize) -> String {
    format!("churn-{order}-{}-{present}", flavor.name())
}

pub(super) fn measure(flavor: Flavor) -> Vec<Row> {
    let mut rows = Vec::new();
    for present in PRESENT {
        let mut both = ["newest", "oldest"].map(|order| Row {
            title: flavor.title().to_owned(),
            column: format!("{} present", count(present)),
            headline: Metric::Pair,
            is_plotted: false,
            ..Row::new(
                name(order, flavor, present),
                format!("Subscribe and unsubscribe, the {order} leaves"),
            )
        });
        for form in Form::BOTH {
            let results = with_subject!(form, flavor, sample(present));
            for (row, summary) in both.iter_mut().zip(results) {
                row.record(form.fanline(), Metric::Pair, summary);
            }
        }
        rows.extend(both);
    }
    rows
}

/// Returns the time of a subscription and its end in nanoseconds, if the newest and if the oldest subscription is
/// removed first.
fn sample(mut subject: impl Emits<u32>, present: usize) -> [Summary; 2] {
    let mut guards: VecDeque<Guard> = (0..present).map(|_| subject.subscribe(|_| {})).collect();
    subject.next(1);
    let (mut newest, mut oldest) = (Vec::new(), Vec::new());
    for _ in 0..=SAMPLES {
        newest.push(timed(&mut subject, |subject| {
            drop(subject.subscribe(|_| {}));
        }));
        oldest.push(timed(&mut subject, |subject| {
            guards.push_back(subject.subscribe(|_| {}));
            drop(guards.pop_front());
        }));
    }
    // The first sample of each is a warm-up.
    let summary = |samples: Vec<f64>| Summary::of(samples.into_iter().skip(1));
    [newest, oldest].map(|samples| summary(samples).expect("there are samples"))
}

fn timed<S: Emits<u32>>(subject: &mut S, mut pair: impl FnMut(&S)) -> f64 {
    let start = Instant::now();
    (0..PAIRS).for_each(|_| pair(subject));
    subject.next(1);
    start.elapsed().as_nanos() as f64 / PAIRS as f64
}
