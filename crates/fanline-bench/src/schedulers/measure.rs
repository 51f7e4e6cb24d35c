//! The measurement of every case. All systems of a case are measured in alternation.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::cases::{CASES, Case, FANLINE, Work};
use crate::report::{self, Bound, Verdict, machine::Machine};
use crate::rxjava::{Jvm, RxJava};
use crate::turns::{Measurements, Plan, Repetition, timed, turn};

/// All results of one invocation.
pub(super) struct Report {
    pub(super) machine: Machine,
    /// Command line of the run.
    pub(super) command: String,
    pub(super) plan: Plan,
    pub(super) rxjava: Option<String>,
    pub(super) rows: Vec<Row>,
}

/// One case, with its results.
pub(super) struct Row {
    pub(super) case: &'static Case,
    /// The results of each system, with its label.
    pub(super) results: Vec<(&'static str, Measurements)>,
}

impl Row {
    pub(super) fn results(&self, label: &str) -> Option<&Measurements> {
        let found = self.results.iter().find(|entry| entry.0 == label);
        found.map(|entry| &entry.1)
    }

    /// Returns Fanline's time divided by that of the system with this label.
    pub(super) fn times_as_long_as(&self, label: &str) -> Option<f64> {
        let other = self.results(label)?;
        Some(self.results(FANLINE)?.nanos.median / other.nanos.median)
    }

    /// Returns the ratio that the target bounds.
    pub(super) fn measured(&self) -> Option<f64> {
        let times_as_long = self.times_as_long_as(self.case.target.against)?;
        Some(match self.case.target.bound {
            Bound::AtMost(_) => times_as_long,
            Bound::AtLeast(_) => 1.0 / times_as_long,
        })
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.measured() {
            Some(ratio) if self.case.target.bound.is_met(ratio) => Verdict::Met,
            Some(_) => Verdict::Missed,
            None => Verdict::Unknown,
        }
    }
}

/// Measures every case as specified by `plan`.
pub(super) fn all(plan: &Plan, with_rivals: bool) -> Result<Report> {
    let rxjava = with_rivals.then(RxJava::build).transpose()?;
    let mut report = Report {
        machine: Machine::read(),
        command: report::command_line(),
        plan: *plan,
        rxjava: rxjava.as_ref().map(|rxjava| rxjava.version.clone()),
        rows: Vec::new(),
    };
    let progress = report::progress(CASES.len() as u64);
    for case in CASES {
        progress.set_message(case.name);
        let row = measure(case, plan, rxjava.as_ref()).context(case.name)?;
        report.rows.push(row);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(report)
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
    let in_order = case.contestants.iter().filter_map(|contestant| {
        let entrant = entrants
            .iter()
            .find(|entrant| entrant.label == contestant.label)?;
        Some((entrant.label, Measurements::of(&entrant.repetitions)?))
    });
    Ok(Row {
        case,
        results: in_order.collect(),
    })
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
