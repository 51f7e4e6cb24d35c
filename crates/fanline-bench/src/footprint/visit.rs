//! The time of a visit: an observer subscribes, receives one value, and unsubscribes.

use std::cell::Cell;
use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use fanline::{BehaviorSubject, Guard, LocalSubject, Replay, ReplaySubject, Subject};
use rxrust::prelude::{
    Local, Observable as _, ObservableFactory, Observer as _, Shared, Subscription,
};
use tokio::sync::{broadcast, watch};

use super::is_own;
use crate::report::metric::Metric;
use crate::report::{Report, Row, count};
use crate::rxjava::RxJava;
use crate::subjects::{EXCLUSIVE, Emits, LOCAL, SHARED};
use crate::turns::{Plan, Repetition, Turn, contest, timed, turn};

/// Every system of this command, in the order of the tables.
pub(super) const SYSTEMS: &[&str] = &[
    EXCLUSIVE,
    SHARED,
    LOCAL,
    "rxRust, Local",
    "rxRust, Shared",
    "tokio broadcast",
    "tokio watch",
    "RxJava",
];

const PRESENT: [usize; 2] = [0, 1_000];

const VISITS: u32 = 1_000;

thread_local! {
    static RECEIVED: Cell<u64> = const { Cell::new(0) };
}

fn receive() {
    RECEIVED.set(RECEIVED.get() + 1);
}

/// Makes visits. The argument is their number.
type Visits = Box<dyn FnMut(u32)>;

struct Visited {
    flavor: &'static str,
    system: &'static str,
    /// Creates a subject on which the given number of observers stays.
    prepare: fn(usize) -> Visits,
    /// Whether the observers that stay receive the values too.
    reaches_all: bool,
}

const fn emitted(
    flavor: &'static str,
    system: &'static str,
    prepare: fn(usize) -> Visits,
) -> Visited {
    Visited {
        flavor,
        system,
        prepare,
        reaches_all: true,
    }
}

const fn pulled(system: &'static str, prepare: fn(usize) -> Visits) -> Visited {
    Visited {
        reaches_all: false,
        ..emitted("subject", system, prepare)
    }
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

/// Every measured system but RxJava.
#[rustfmt::skip]
const VISITED: &[Visited] = &[
    emitted("subject", EXCLUSIVE, |present| visits_of(fanline::subject(), present)),
    emitted("subject", SHARED, |present| visits_of(Subject::new(), present)),
    emitted("subject", LOCAL, |present| visits_of(LocalSubject::new(), present)),
    emitted("subject", "rxRust, Local", |present| rxrust!(present, Local::subject::<'static, u32, Infallible>())),
    emitted("subject", "rxRust, Shared", |present| rxrust!(present, Shared::subject::<'static, u32, Infallible>())),
    pulled("tokio broadcast", |present| {
        let (tx, _) = broadcast::channel(16);
        let source = tx.clone();
        let leave = |mut receiver: broadcast::Receiver<u32>| {
            while receiver.try_recv().is_ok() {
                receive();
            }
        };
        visits(present, move || source.subscribe(), move |value| _ = tx.send(value), leave)
    }),
    pulled("tokio watch", |present| {
        let (tx, _) = watch::channel(0);
        let source = tx.clone();
        let leave = |mut receiver: watch::Receiver<u32>| {
            black_box(*receiver.borrow_and_update());
            receive();
        };
        visits(present, move || source.subscribe(), move |value| _ = tx.send(value), leave)
    }),
    emitted("behavior", EXCLUSIVE, |present| visits_of(fanline::behavior(0), present)),
    emitted("behavior", SHARED, |present| visits_of(BehaviorSubject::new(0), present)),
    emitted("behavior", "rxRust, Local", |present| {
        rxrust!(present, Local::behavior_subject::<'static, u32, Infallible>(0))
    }),
    emitted("behavior", "rxRust, Shared", |present| {
        rxrust!(present, Shared::behavior_subject::<'static, u32, Infallible>(0))
    }),
    emitted("replay one", EXCLUSIVE, |present| visits_of(fanline::replay(Replay::one()), present)),
    emitted("replay one", SHARED, |present| visits_of(ReplaySubject::new(Replay::one()), present)),
];

fn visits_of<S: Emits<u32>>(mut subject: S, present: usize) -> Visits {
    // A replay subject has a value for the first visitor.
    subject.next(0);
    let subscribe = |subject: &S| subject.subscribe(|_| receive());
    let present: Vec<Guard> = (0..present).map(|_| subscribe(&subject)).collect();
    Box::new(move |visits| {
        let _ = &present;
        for value in 0..visits {
            let visitor = subscribe(&subject);
            subject.next(value);
            drop(visitor);
        }
    })
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

pub(super) fn add(report: &mut Report, plan: &Plan, rxjava: Option<&RxJava>) -> Result<()> {
    for flavor in ["subject", "behavior", "replay one"] {
        for present in PRESENT {
            report.rows.push(row(plan, rxjava, flavor, present)?);
        }
    }
    Ok(())
}

fn row(plan: &Plan, rxjava: Option<&RxJava>, flavor: &str, present: usize) -> Result<Row> {
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
    let is_measured =
        |one: &&Visited| one.flavor == flavor && (is_own(one.system) || rxjava.is_some());
    let mut systems: Vec<(&str, Turn<'_>)> = Vec::new();
    for visited in VISITED.iter().filter(is_measured) {
        let mut turn: Turn<'_> = Box::new(move |budget| visited.turn(present, budget));
        turn(plan.warm_up)?;
        systems.push((visited.system, turn));
    }
    if let Some(rxjava) = rxjava {
        let mut jvm = rxjava.start(&format!("visit-{slug}"))?;
        jvm.turn(VISITS, present, plan.warm_up_jvm)?;
        let turn = move |budget| jvm.turn(VISITS, present, budget);
        systems.push(("RxJava", Box::new(turn)));
    }
    for (system, results) in contest(plan, systems)? {
        row.record(
            system,
            Metric::Operation,
            results.nanos.per(f64::from(VISITS)),
        );
    }
    Ok(row)
}

impl Visited {
    /// Makes visits for the length of a turn, and checks the number of received values.
    fn turn(&self, present: usize, budget: Duration) -> Result<Vec<Repetition>> {
        let mut visits = (self.prepare)(present);
        // A behavior and a replay subject also emit the retained value to a visitor.
        let own = if self.flavor == "subject" { 1 } else { 2 };
        let deliveries = own + if self.reaches_all { present as u64 } else { 0 };
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
