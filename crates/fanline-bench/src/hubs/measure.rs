//! All loads, each with all systems in turns.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::load::{Load, System};
use super::pekko::Pekko;
use super::{Options, json, lockstep, many, others};
use crate::report::machine::Machine;
use crate::report::metric::Summary;
use crate::report::{self, versions};

/// How long and how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// In each, every system has one run.
    pub(super) rounds: u32,
    /// Elements of a run.
    pub(super) elements: u64,
    /// A run that would take longer has fewer.
    pub(super) run_millis: u64,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    /// How this was asked for.
    pub(super) command: String,
    pub(super) plan: Plan,
    /// The rivals that took part, with their versions.
    pub(super) rivals: Vec<String>,
    /// JVMs that died, and were started again.
    pub(super) deaths: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// One load, and all systems under it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) load: Load,
    pub(super) figures: Vec<Figure>,
}

/// One system's, in the unit of the load.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) system: System,
    /// Of a run, where that is chosen.
    pub(super) elements: Option<u64>,
    pub(super) value: Summary,
}

impl Row {
    /// Its median.
    pub(super) fn value(&self, system: System) -> Option<f64> {
        let found = self.figures.iter().find(|figure| figure.system == system);
        found.map(|figure| figure.value.median)
    }

    pub(super) fn ratio(&self, system: System, other: System) -> Option<f64> {
        Some(self.value(system)? / self.value(other)?)
    }
}

impl Report {
    /// Without rows yet.
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            machine: Machine::read(),
            command: report::command_line(),
            plan,
            rivals: Vec::new(),
            deaths: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&self, load: Load) -> Option<&Row> {
        self.rows.iter().find(|row| row.load == load)
    }
}

/// Measures `loads`, but for those that the file of an earlier run has.
pub(super) fn all(loads: &[Load], plan: Plan, options: &Options) -> Result<Report> {
    let mut report = match &options.json {
        Some(path) if options.resume && path.exists() => read(path, plan)?,
        _ => Report::new(plan),
    };
    let is_open = |load: &&Load| report.row(**load).is_none();
    let open: Vec<Load> = loads.iter().filter(is_open).copied().collect();
    let mut contest = Contest {
        plan,
        options,
        pekko: None,
        progress: report::progress(open.len() as u64),
    };
    for load in open {
        contest.progress.set_message(load.describe());
        let row = contest.measure(load);
        report.rows.push(row.with_context(|| load.describe())?);
        contest.progress.inc(1);
        contest.note(&mut report);
        report.rows.sort_by_key(|row| {
            let place = loads.iter().position(|load| *load == row.load);
            place.unwrap_or(loads.len())
        });
        if let Some(path) = &options.json {
            json::save(&report, path)?;
        }
    }
    contest.progress.finish_and_clear();
    Ok(report)
}

fn read(path: &Path, plan: Plan) -> Result<Report> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| name.to_string())?;
    let report: Report = serde_json::from_str(&text).with_context(|| name.to_string())?;
    ensure!(
        report.plan == plan,
        "--resume: {name} was measured with other rounds, elements or run-millis"
    );
    Ok(report)
}

/// Those who take part.
struct Contest<'a> {
    plan: Plan,
    options: &'a Options,
    /// Started when it is needed first.
    pekko: Option<Pekko>,
    progress: ProgressBar,
}

impl Contest<'_> {
    fn measure(&mut self, load: Load) -> Result<Row> {
        let mut systems = load.systems(self.options.rivals);
        let wanted = &self.options.systems;
        systems.retain(|system| {
            let is_named = |text: &String| system.name().contains(text.as_str());
            wanted.is_empty() || wanted.iter().any(is_named)
        });
        let mut taking_part = Vec::new();
        for system in systems {
            let elements = self.elements(system, load)?;
            taking_part.push((system, elements, Vec::new()));
        }
        for round in 0..self.plan.rounds {
            // Who comes first, and after whom, changes.
            if round > 0 {
                taking_part.reverse();
            }
            for (system, elements, values) in &mut taking_part {
                values.push(match *elements {
                    Some(elements) => {
                        let time = self.run(*system, load, elements)?;
                        elements as f64 / time.as_secs_f64()
                    }
                    None => value(*system, load),
                });
            }
        }
        taking_part.sort_by_key(|entry| entry.0);
        let figures = taking_part.into_iter();
        let figures = figures.filter_map(|(system, elements, values)| {
            Some(Figure {
                system,
                elements,
                value: Summary::of(values.into_iter())?,
            })
        });
        Ok(Row {
            load,
            figures: figures.collect(),
        })
    }

    /// How many elements a run has, found in two runs that are the warm-up as well.
    fn elements(&mut self, system: System, load: Load) -> Result<Option<u64>> {
        let Some(least) = load.elements_min() else {
            return Ok(None);
        };
        let most = (self.plan.elements * load.elements_factor()).max(least);
        let mut budget = Duration::from_millis(self.plan.run_millis);
        if system == System::Pekko {
            // Its streams take milliseconds to be there, which are a part of the run.
            budget *= 2;
        }
        let mut elements = least;
        for share in [4, 1] {
            let nanos = self.run(system, load, elements)?.as_nanos().max(1);
            let fitting = u128::from(elements) * budget.as_nanos() / share / nanos;
            elements = u64::try_from(fitting).unwrap_or(most).clamp(least, most);
        }
        Ok(Some(elements))
    }

    fn run(&mut self, system: System, load: Load, elements: u64) -> Result<Duration> {
        let time = match load {
            Load::Lockstep(cell) if system == System::Pekko => {
                return self.pekko()?.run(cell, elements);
            }
            Load::Lockstep(cell) | Load::Law(cell) => lockstep::run(system, cell, elements),
            Load::Slow { threads, fast } => Some(others::slow(system, threads, fast, elements)),
            Load::Merge { threads, producers } => {
                Some(many::merged(system, threads, producers, elements))
            }
            Load::Partition { threads, consumers } => {
                Some(many::parted(system, threads, consumers, elements))
            }
            _ => None,
        };
        time.with_context(|| format!("{} has no such run", system.name()))
    }

    fn pekko(&mut self) -> Result<&mut Pekko> {
        if self.pekko.is_none() {
            let java_home = self.options.java_home.as_deref();
            self.pekko = Some(Pekko::start(java_home, self.options.pekko_threads)?);
        }
        self.pekko.as_mut().context("no JVM")
    }

    /// Who took part, and what went wrong.
    fn note(&mut self, report: &mut Report) {
        let mut rivals = Vec::new();
        if self.options.rivals {
            rivals.push(versions::built_with(&[
                "tokio",
                "async-broadcast",
                "asyncband",
            ]));
        }
        if let Some(pekko) = &mut self.pekko {
            rivals.push(pekko.version());
            report.deaths.append(&mut pekko.deaths);
        }
        for rival in rivals {
            if !report.rivals.contains(&rival) {
                report.rivals.push(rival);
            }
        }
    }
}

/// Of loads that are not given a number of elements.
fn value(system: System, load: Load) -> f64 {
    match load {
        Load::JoinLeave { present } => others::join_leave(system, present),
        Load::Memory { consumers } => others::memory(system, consumers),
        Load::Allocations { consumers } => others::allocations(system, consumers),
        Load::Latency { threads, consumers } => others::latency(system, threads, consumers),
        Load::Lockstep(_)
        | Load::Law(_)
        | Load::Slow { .. }
        | Load::Merge { .. }
        | Load::Partition { .. } => f64::NAN,
    }
}
