//! The measurement of every case. All systems of a case are measured in alternation.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::cases::{CASES, Case, FANLINE, Work};
use crate::report::behind::Rule;
use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::{self, Kind, Report, Row};
use crate::rxjava::{Jvm, RxJava};
use crate::turns::{Measurements, Plan, Repetition, timed, turn};

const TITLE: &str = "Values onto another thread: Fanline beside floors and RxJava";

/// Measures every case as specified by `plan`.
pub(super) fn all(plan: &Plan, with_rivals: bool) -> Result<Report> {
    let rxjava = with_rivals.then(RxJava::build).transpose()?;
    let mut report = Report::new(TITLE);
    plan.note(&mut report);
    report.notes = notes(plan, rxjava.as_ref());
    let progress = report::progress(CASES.len() as u64);
    for case in CASES {
        progress.set_message(case.name);
        for contestant in case.contestants {
            report.add_system(contestant.label, contestant.kind(), "");
        }
        let row = measure(case, plan, rxjava.as_ref()).context(case.name)?;
        report.targets.push(target(case, &row));
        report.rows.push(row);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(report)
}

fn target(case: &Case, row: &Row) -> Target {
    let target = &case.target;
    let metric = match target.bound {
        Bound::AtMost(_) => Metric::Time,
        Bound::AtLeast(_) => Metric::Rate,
    };
    let what = format!(
        "{}, {}, to {}",
        case.name,
        row.metric_title(metric),
        target.against
    );
    let measured = row.ratio(FANLINE, target.against, metric);
    Target::new(what, vec![measured], target.bound, Unit::Times)
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
    notes.extend(CASES.iter().map(|case| {
        let quoted = case.quoted.describe();
        format!("Quoted for {}: {quoted}.", case.name)
    }));
    notes.extend(rxjava.map(|rxjava| {
        let version = &rxjava.version;
        format!("Rival: {version}; one JVM for each of its rows.")
    }));
    notes
}

/// A system with its resources, ready to run.
struct PreparedContestant {
    label: &'static str,
    runner: Runner,
    repetitions: Vec<Repetition>,
}

enum Runner {
    Here(Work),
    Jvm(Jvm),
}

impl Runner {
    fn turn(&mut self, items: u32, budget: Duration) -> Result<Vec<Repetition>> {
        match self {
            Self::Jvm(jvm) => jvm.turn(items, 1, budget),
            Self::Here(work) => turn(budget, || repeat(*work, items)),
        }
    }
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

fn measure(case: &'static Case, plan: &Plan, rxjava: Option<&RxJava>) -> Result<Row> {
    let mut entrants = Vec::new();
    for contestant in case.contestants {
        let (mut runner, warm_up) = match (contestant.work, rxjava) {
            (Work::RxJava(_), None) => continue,
            (Work::RxJava(load), Some(rxjava)) => {
                (Runner::Jvm(rxjava.start(load)?), plan.warm_up_jvm)
            }
            (work, _) => (Runner::Here(work), plan.warm_up),
        };
        warm(&mut runner, case.items, warm_up).context(contestant.label)?;
        entrants.push(PreparedContestant {
            label: contestant.label,
            runner,
            repetitions: Vec::new(),
        });
    }
    for round in 0..plan.rounds {
        // Reverse the order of the systems in each round.
        if round > 0 {
            entrants.reverse();
        }
        for entrant in &mut entrants {
            let done = entrant.runner.turn(case.items, plan.turn);
            entrant.repetitions.extend(done.context(entrant.label)?);
        }
    }
    let mut row = Row {
        rate: "items/s".to_owned(),
        ..Row::new(case.name, case.name)
    };
    for contestant in case.contestants {
        let label = contestant.label;
        let entrant = entrants.iter().find(|entrant| entrant.label == label);
        let results = entrant.and_then(|entrant| Measurements::of(&entrant.repetitions));
        if let Some(results) = results {
            row.record(label, Metric::Rate, results.rate(case.items));
            row.record(label, Metric::Time, results.nanos);
        }
    }
    for contestant in case.contestants.iter().skip(1) {
        let rule = match contestant.kind() {
            Kind::Rival => Rule::Median,
            _ => Rule::Never,
        };
        row.compare(FANLINE, contestant.label, Metric::Time, rule);
        row.compare(FANLINE, contestant.label, Metric::Rate, Rule::Never);
    }
    Ok(row)
}

/// Warms up a system. A turn has a limited number of repetitions, so short repetitions need several turns.
fn warm(runner: &mut Runner, items: u32, budget: Duration) -> Result<()> {
    let mut nanos = 0.0;
    while nanos < budget.as_nanos() as f64 {
        let done = runner.turn(items, budget)?;
        nanos += done.iter().map(|one| one.nanos).sum::<f64>();
    }
    Ok(())
}
