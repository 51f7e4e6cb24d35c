//! `fanline-bench schedulers`: the cost of moving values to another thread, compared with hand-written
//! reference loops and with RxJava.

mod floors;
mod library;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::report::behind::Rule;
use crate::report::metric::Metric;
use crate::report::target::Limit;
use crate::report::{self, Kind, Report, Row};
use crate::rxjava::RxJava;
use crate::turns::{Options, Plan, Repetition, Turn, contest, timed, turn};

struct Case {
    name: &'static str,
    items: u32,
    systems: &'static [System],
    target: Limit,
    /// Published results of other libraries, which were not measured in this run.
    quoted: &'static str,
}

struct System {
    label: &'static str,
    work: Work,
}

impl System {
    fn kind(&self) -> Kind {
        match self.work {
            Work::RxJava(_) => Kind::Rival,
            _ if self.label == FANLINE => Kind::Own,
            _ => Kind::Reference,
        }
    }
}

#[derive(Clone, Copy)]
enum Work {
    /// Moves the given number of items to another thread, and returns the number that was counted there.
    Here(fn(u32) -> u64),
    /// A function without items, which measures the unavoidable cost of the load: starting and joining a
    /// thread that does nothing.
    Nothing(fn()),
    /// A load of the project `rivals/rxjava`, by name.
    RxJava(&'static str),
}

/// Label of the system that has the targets. It is the first system of each case.
const FANLINE: &str = "Fanline";

const SPAWN_AND_JOIN: &str = "floor: thread spawn + join";
const ONE_VEC: &str = "floor: one Vec to a parked thread";
const NOT_FUSED: &str = "RxJava Observable, not fused";

const fn here(label: &'static str, work: fn(u32) -> u64) -> System {
    let work = Work::Here(work);
    System { label, work }
}

const fn rxjava(label: &'static str, load: &'static str) -> System {
    let work = Work::RxJava(load);
    System { label, work }
}

const CASES: &[Case] = &[
    Case {
        name: "10,000 items from an iterator, new thread, count",
        items: 10_000,
        systems: &[
            here(FANLINE, library::on_new_thread),
            System {
                label: SPAWN_AND_JOIN,
                work: Work::Nothing(floors::spawn_and_join),
            },
            here(
                "floor: a loop on a new thread, and join",
                floors::counted_on_new_thread,
            ),
            rxjava("RxJava", "new-thread"),
        ],
        target: Limit::at_most(Metric::Time, 2.0).to(SPAWN_AND_JOIN),
        quoted: "Rx in 2011 0.14 s, Rx.NET 184 µs, RxJava 216 µs",
    },
    Case {
        name: "range of 10,000, observe_on(pool), count",
        items: 10_000,
        systems: &[
            here(FANLINE, library::observed_on_pool),
            here(ONE_VEC, floors::one_vec_to_parked_thread),
            rxjava(NOT_FUSED, "observe-on"),
            rxjava("RxJava Observable, fused with range", "observe-on-fused"),
            rxjava("RxJava Flowable", "observe-on-flowable"),
        ],
        target: Limit::at_most(Metric::Time, 2.0).to(ONE_VEC),
        quoted: "Rx in 2011 0.2 s, Rx.NET 4.77 ms, RxJava 148 µs fused, 437 µs not",
    },
    Case {
        name: "1,000,000 items through observe_on, count",
        items: 1_000_000,
        systems: &[
            here(FANLINE, library::observed_on_pool),
            rxjava(NOT_FUSED, "observe-on"),
            rxjava("RxJava Observable, fused with range", "observe-on-fused"),
            rxjava("RxJava Flowable", "observe-on-flowable"),
        ],
        target: Limit::at_least(Metric::Rate, 3.0).to(NOT_FUSED),
        quoted: "RxJava 34.9 ms Observable, 12.9 ms Flowable",
    },
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let line = |case: &Case| {
        let target = Limit::list(&[case.target]);
        [case.name.to_owned(), String::new(), target]
    };
    if options.output.lists(|| CASES.iter().map(line).collect()) {
        return Ok(());
    }
    let plan = options.plan(Plan::new(9, 50, 0, 3_000), Plan::new(3, 20, 0, 500));
    let plan = Plan {
        warm_up: plan.turn,
        ..plan
    };
    let rxjava = options.rivals.then(RxJava::build).transpose()?;
    let mut report = Report::new("Values onto another thread: Fanline beside floors and RxJava");
    plan.note(&mut report);
    report.notes = notes(&plan, rxjava.as_ref());
    let progress = report::progress(CASES.len());
    for case in progress.wrap_iter(CASES.iter()) {
        progress.set_message(case.name);
        for system in case.systems {
            report.add_system(system.label, system.kind(), "");
        }
        let row = measure(case, &plan, rxjava.as_ref()).context(case.name)?;
        report.targets.push(case.target.check(&row, FANLINE));
        report.rows.push(row);
    }
    options.output.write(&report)
}

fn notes(plan: &Plan, rxjava: Option<&RxJava>) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Medians over {} rounds in alternating order of repetitions that take about {} ms in \
             all, after a warm-up of {} ms ({} ms in a JVM). Each repetition's count is checked.",
            plan.rounds,
            plan.turn.as_millis(),
            plan.warm_up.as_millis(),
            plan.warm_up_jvm.as_millis()
        ),
        "The floors are written by hand, in src/schedulers/floors.rs, with their omissions."
            .to_owned(),
        "Quoted results were not measured in this run: those of 2011 are of Rx for .NET on an i5 of \
         that time; those of Rx.NET 2.2.5 (on CoreCLR 3.1) and RxJava 3.1.12 (on OpenJDK 17, with \
         less warm-up than here) were taken on a virtual machine with two Xeon cores."
            .to_owned(),
    ];
    let quoted = CASES.iter();
    notes.extend(quoted.map(|case| format!("Quoted for {}: {}.", case.name, case.quoted)));
    notes.extend(rxjava.map(|rxjava| {
        let version = &rxjava.version;
        format!("Rival: {version}; one JVM for each of its rows.")
    }));
    notes
}

fn measure(case: &'static Case, plan: &Plan, rxjava: Option<&RxJava>) -> Result<Row> {
    let mut systems: Vec<(&str, Turn<'_>)> = Vec::new();
    for System { label, work } in case.systems {
        let (mut turn, warm_up): (Turn<'_>, Duration) = match (*work, rxjava) {
            (Work::RxJava(_), None) => continue,
            (Work::RxJava(load), Some(rxjava)) => {
                let mut jvm = rxjava.start(load)?;
                let turn = move |budget| jvm.turn(case.items, 1, budget);
                (Box::new(turn), plan.warm_up_jvm)
            }
            (work, _) => {
                let turn = move |budget| turn(budget, || repeat(work, case.items));
                (Box::new(turn), plan.warm_up)
            }
        };
        // A turn has a limited number of repetitions, so short repetitions need several turns.
        let mut nanos = 0.0;
        while nanos < warm_up.as_nanos() as f64 {
            let done = turn(warm_up).context(*label)?;
            nanos += done.iter().map(|one| one.nanos).sum::<f64>();
        }
        systems.push((*label, turn));
    }
    let mut row = Row {
        rate: "items/s".to_owned(),
        ..Row::new(case.name, case.name)
    };
    for (label, results) in contest(plan, systems)? {
        row.record(label, Metric::Rate, results.rate(case.items));
        row.record(label, Metric::Time, results.nanos);
    }
    for system in &case.systems[1..] {
        let rule = match system.kind() {
            Kind::Rival => Rule::Median,
            _ => Rule::Never,
        };
        row.compare(FANLINE, system.label, Metric::Time, rule);
        row.compare(FANLINE, system.label, Metric::Rate, Rule::Never);
    }
    Ok(row)
}

fn repeat(work: Work, items: u32) -> Result<Repetition> {
    match work {
        Work::Here(run) => {
            let mut counted = 0;
            let repetition = timed(|| counted = run(items));
            ensure!(
                counted == u64::from(items),
                "{counted} of {items} items were counted"
            );
            Ok(repetition)
        }
        Work::Nothing(run) => Ok(timed(run)),
        Work::RxJava(load) => anyhow::bail!("{load} runs in a JVM"),
    }
}
