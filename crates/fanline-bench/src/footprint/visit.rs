//! The time of a visit: an observer subscribes, receives one value, and unsubscribes.

use std::cell::Cell;
use std::convert::Infallible;
use std::hint::black_box;

use anyhow::{Result, ensure};
use fanline::{BehaviorSubject, LocalSubject, Replay, ReplaySubject, Subject};
use rxrust::prelude::{
    Local, Observable as _, ObservableFactory, Observer as _, Shared, Subscription,
};
use tokio::sync::{broadcast, watch};

use super::add_system;
use crate::report::metric::{Metric, Summary};
use crate::report::{Report, Row, count};
use crate::rxjava::RxJava;
use crate::turns::{Measurements, Plan, Repetition, timed, turn};

/// Numbers of observers that stay subscribed.
const PRESENT: [usize; 2] = [0, 1_000];

/// Number of visits in a repetition.
const VISITS: u32 = 1_000;

thread_local! {
    /// Number of received values.
    static RECEIVED: Cell<u64> = const { Cell::new(0) };
}

fn receive() {
    RECEIVED.set(RECEIVED.get() + 1);
}

/// Makes visits. The argument is their number.
type Visits = Box<dyn FnMut(u32)>;

/// One system with one flavor.
struct Visited {
    flavor: &'static str,
    system: &'static str,
    /// Creates a subject on which the given number of observers stays.
    prepare: fn(usize) -> Visits,
    /// Number of values that a visitor receives.
    own: u64,
    /// Whether the observers that stay receive the values too.
    reaches_all: bool,
}

const fn emitted(
    flavor: &'static str,
    system: &'static str,
    own: u64,
    prepare: fn(usize) -> Visits,
) -> Visited {
    Visited {
        flavor,
        system,
        prepare,
        own,
        reaches_all: true,
    }
}

const fn pulled(system: &'static str, prepare: fn(usize) -> Visits) -> Visited {
    Visited {
        reaches_all: false,
        ..emitted("subject", system, 1, prepare)
    }
}

/// Visits a pair of a producer and a source.
macro_rules! exclusive {
    ($present:expr, $pair:expr) => {{
        let (mut tx, source) = $pair;
        // A replay subject has a value for the first visitor.
        tx.next(0);
        visits(
            $present,
            move || source.subscribe(see),
            move |value| tx.next(value),
            drop,
        )
    }};
}

/// Visits a subject that is its own source.
macro_rules! shared {
    ($present:expr, $subject:expr) => {{
        let subject = $subject;
        subject.next(0);
        let source = subject.clone();
        let emit = move |value| {
            subject.next(value);
        };
        visits($present, move || source.subscribe(see), emit, drop)
    }};
}

macro_rules! rxrust {
    ($present:expr, $subject:expr) => {{
        let mut subject = $subject;
        let source = subject.clone();
        let subscribe = move || source.clone().subscribe(|_| receive());
        let emit = move |value| subject.next(value);
        visits($present, subscribe, emit, Subscription::unsubscribe)
    }};
}

/// Every measured system but RxJava. A behavior and a replay subject also emit the retained value to a visitor.
const VISITED: &[Visited] = &[
    emitted("subject", "Fanline, exclusive", 1, |present| {
        exclusive!(present, fanline::subject::<u32>())
    }),
    emitted("subject", "Fanline, shared", 1, |present| {
        shared!(present, Subject::<u32>::new())
    }),
    emitted("subject", "Fanline, LocalSubject", 1, |present| {
        shared!(present, LocalSubject::<u32>::new())
    }),
    emitted("subject", "rxRust, Local", 1, |present| {
        rxrust!(present, Local::subject::<'static, u32, Infallible>())
    }),
    emitted("subject", "rxRust, Shared", 1, |present| {
        rxrust!(present, Shared::subject::<'static, u32, Infallible>())
    }),
    pulled("tokio broadcast", |present| {
        let (tx, _) = broadcast::channel::<u32>(16);
        let source = tx.clone();
        let leave = |mut receiver: broadcast::Receiver<u32>| {
            while receiver.try_recv().is_ok() {
                receive();
            }
        };
        visits(
            present,
            move || source.subscribe(),
            move |value| {
                let _ = tx.send(value);
            },
            leave,
        )
    }),
    pulled("tokio watch", |present| {
        let (tx, _) = watch::channel(0);
        let source = tx.clone();
        let leave = |mut receiver: watch::Receiver<u32>| {
            black_box(*receiver.borrow_and_update());
            receive();
        };
        visits(
            present,
            move || source.subscribe(),
            move |value| {
                let _ = tx.send(value);
            },
            leave,
        )
    }),
    emitted("behavior", "Fanline, exclusive", 2, |present| {
        exclusive!(present, fanline::behavior(0))
    }),
    emitted("behavior", "Fanline, shared", 2, |present| {
        shared!(present, BehaviorSubject::new(0))
    }),
    emitted("behavior", "rxRust, Local", 2, |present| {
        rxrust!(
            present,
            Local::behavior_subject::<'static, u32, Infallible>(0)
        )
    }),
    emitted("behavior", "rxRust, Shared", 2, |present| {
        rxrust!(
            present,
            Shared::behavior_subject::<'static, u32, Infallible>(0)
        )
    }),
    emitted("replay one", "Fanline, exclusive", 2, |present| {
        exclusive!(present, fanline::replay::<u32>(Replay::one()))
    }),
    emitted("replay one", "Fanline, shared", 2, |present| {
        shared!(present, ReplaySubject::<u32>::new(Replay::one()))
    }),
];

fn see(_: &u32) {
    receive();
}

fn visits<G: 'static>(
    present: usize,
    subscribe: impl Fn() -> G + 'static,
    mut emit: impl FnMut(u32) + 'static,
    leave: impl Fn(G) + 'static,
) -> Visits {
    let present: Vec<G> = (0..present).map(|_| subscribe()).collect();
    Box::new(move |visits| {
        let _ = &present;
        for value in 0..visits {
            let visitor = subscribe();
            emit(value);
            leave(visitor);
        }
    })
}

/// Adds a row for each flavor and number of present observers.
pub(super) fn add(report: &mut Report, plan: &Plan, rxjava: Option<&RxJava>) -> Result<()> {
    for flavor in ["subject", "behavior", "replay one"] {
        for present in PRESENT {
            let row = row(report, plan, rxjava, flavor, present)?;
            report.rows.push(row);
        }
    }
    Ok(())
}

fn row(
    report: &mut Report,
    plan: &Plan,
    rxjava: Option<&RxJava>,
    flavor: &str,
    present: usize,
) -> Result<Row> {
    let slug = flavor.rsplit(' ').next().unwrap_or(flavor);
    let mut row = Row {
        title: flavor.to_owned(),
        column: format!("{} present", count(present)),
        headline: Metric::Operation,
        is_plotted: false,
        ..Row::new(
            format!("visit-{slug}-{present}"),
            "Subscribe, one value, unsubscribe",
        )
    };
    let is_measured = |one: &&Visited| {
        let is_own = one.system.starts_with("Fanline");
        one.flavor == flavor && (is_own || rxjava.is_some())
    };
    let mut contest = Vec::new();
    for visited in VISITED.iter().filter(is_measured) {
        visited.turn(present, plan.warm_up)?;
        contest.push((visited, Vec::new()));
    }
    let mut jvm = match rxjava {
        Some(rxjava) => Some(rxjava.start(&format!("visit-{slug}"))?),
        None => None,
    };
    let mut of_jvm = Vec::new();
    if let Some(jvm) = &mut jvm {
        jvm.turn(VISITS, present, plan.warm_up_jvm)?;
    }
    for _ in 0..plan.rounds {
        for (visited, repetitions) in &mut contest {
            repetitions.extend(visited.turn(present, plan.turn)?);
        }
        if let Some(jvm) = &mut jvm {
            of_jvm.extend(jvm.turn(VISITS, present, plan.turn)?);
        }
        contest.reverse();
    }
    let order = |system: &str| VISITED.iter().position(|one| one.system == system);
    contest.sort_by_key(|entry| order(entry.0.system));
    let own = contest.iter().map(|entry| (entry.0.system, &entry.1));
    for (system, repetitions) in own.chain([("RxJava", &of_jvm)]) {
        if let Some(results) = Measurements::of(repetitions) {
            add_system(report, system, rxjava);
            let each = f64::from(VISITS);
            let nanos = Summary {
                median: results.nanos.median / each,
                min: results.nanos.min / each,
                max: results.nanos.max / each,
            };
            row.record(system, Metric::Operation, nanos);
        }
    }
    Ok(row)
}

impl Visited {
    /// Makes visits for the length of a turn, and checks the number of received values.
    fn turn(&self, present: usize, budget: std::time::Duration) -> Result<Vec<Repetition>> {
        let mut visits = (self.prepare)(present);
        let deliveries = self.own + if self.reaches_all { present as u64 } else { 0 };
        let expected = deliveries * u64::from(VISITS);
        turn(budget, || {
            let before = RECEIVED.get();
            let repetition = timed(|| visits(VISITS));
            let received = RECEIVED.get() - before;
            ensure!(
                received == expected,
                "{}: {received} values of {expected}",
                self.system
            );
            Ok(repetition)
        })
    }
}
