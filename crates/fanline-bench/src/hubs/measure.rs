//! The measurement of all loads. All systems of a load are measured in alternation.

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

/// Number and length of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Number of rounds; each runs every system once.
    pub(super) rounds: u32,
    /// Number of elements of a run.
    pub(super) elements: u64,
    /// Target duration of a run, in milliseconds. A run that would take longer has fewer elements.
    pub(super) run_millis: u64,
    /// Largest number of consumers for which other systems than Fanline are measured.
    pub(super) rivals_consumers_max: usize,
}

/// All results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    /// Command line of the run.
    pub(super) command: String,
    pub(super) plan: Plan,
    /// The other measured systems, with their versions.
    pub(super) rivals: Vec<String>,
    /// Errors of JVMs that crashed and were restarted.
    pub(super) crashes: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// One load, with the results of all systems.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) load: Load,
    pub(super) results: Vec<Measurement>,
}

/// The result of one system, in the unit of the load.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Measurement {
    pub(super) system: System,
    /// Number of elements of a run, if the load has one.
    pub(super) elements: Option<u64>,
    pub(super) value: Summary,
}

impl Row {
    /// Returns the median of a system.
    pub(super) fn value(&self, system: System) -> Option<f64> {
        let found = self.results.iter().find(|result| result.system == system);
        found.map(|result| result.value.median)
    }

    pub(super) fn ratio(&self, system: System, other: System) -> Option<f64> {
        Some(self.value(system)? / self.value(other)?)
    }
}

impl Report {
    /// Creates a report without rows.
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            machine: Machine::read(),
            command: report::command_line(),
            plan,
            rivals: Vec::new(),
            crashes: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&self, load: Load) -> Option<&Row> {
        self.rows.iter().find(|row| row.load == load)
    }
}

/// Measures `loads`, except those that the file of an earlier run already contains.
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
        "--resume: {name} was measured with other rounds, elements, run-millis or rivals-consumers-max"
    );
    Ok(report)
}

/// Minimum number of elements for Pekko. Its streams take milliseconds to start, which should be a small part
/// of a run.
const PEKKO_ELEMENTS_MIN: u64 = 5000;

/// The systems that are measured, and the plan of the runs.
struct Contest<'a> {
    plan: Plan,
    options: &'a Options,
    /// Pekko, which is started on first use.
    pekko: Option<Pekko>,
    progress: ProgressBar,
}

impl Contest<'_> {
    fn measure(&mut self, load: Load) -> Result<Row> {
        let rivals_most = if self.options.rivals {
            self.plan.rivals_consumers_max
        } else {
            0
        };
        let mut systems = load.systems(rivals_most);
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
            // Reverse the order of the systems in each round.
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
        let results = taking_part.into_iter();
        let results = results.filter_map(|(system, elements, values)| {
            Some(Measurement {
                system,
                elements,
                value: Summary::of(values.into_iter())?,
            })
        });
        Ok(Row {
            load,
            results: results.collect(),
        })
    }

    /// Returns the number of elements of a run. Two runs determine the number, and serve as warm-up.
    fn elements(&mut self, system: System, load: Load) -> Result<Option<u64>> {
        let Some(mut least) = load.elements_min() else {
            return Ok(None);
        };
        if system == System::Pekko {
            least = least.max(PEKKO_ELEMENTS_MIN);
        }
        let most = (self.plan.elements * load.elements_factor()).max(least);
        let budget = Duration::from_millis(self.plan.run_millis).max(load.run_min());
        let mut elements = least;
        for share in [4, 1] {
            let time = self.run(system, load, elements)?;
            if elements == least && time > budget {
                break;
            }
            let fitting = u128::from(elements) * budget.as_nanos() / share;
            let fitting = fitting / time.as_nanos().max(1);
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
                Some(many::run_merge(system, threads, producers, elements))
            }
            Load::Partition { threads, consumers } => {
                Some(many::run_partition(system, threads, consumers, elements))
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

    /// Records the versions of other systems, and the crashes.
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
            report.crashes.append(&mut pekko.crashes);
        }
        for rival in rivals {
            if !report.rivals.contains(&rival) {
                report.rivals.push(rival);
            }
        }
    }
}

/// Measures a load that has no number of elements.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hubs::load::Cell;

    const PLAN: Plan = Plan {
        rounds: 1,
        elements: 50,
        run_millis: 1,
        rivals_consumers_max: 10_000,
    };

    /// Runs every system. Consumers check the elements, so a run that completes was correct.
    #[test]
    fn all_systems_deliver_everything() {
        let options = Options {
            rivals: true,
            systems: Vec::new(),
            java_home: None,
            pekko_threads: 2,
            json: None,
            resume: false,
        };
        let mut contest = Contest {
            plan: PLAN,
            options: &options,
            pekko: None,
            progress: ProgressBar::hidden(),
        };
        for threads in [1, 2] {
            // A buffer of 4 wraps around, and 50 is not a multiple of 4.
            let cell = Cell {
                threads,
                buffer: 4,
                consumers: 3,
            };
            for load in [
                Load::Lockstep(cell),
                Load::Law(cell),
                Load::Slow { threads, fast: 2 },
                Load::Merge {
                    threads,
                    producers: 5,
                },
                Load::Partition {
                    threads,
                    consumers: 3,
                },
            ] {
                let systems = load.systems(PLAN.rivals_consumers_max).into_iter();
                for system in systems.filter(|system| *system != System::Pekko) {
                    let time = contest.run(system, load, 50);
                    assert!(time.is_ok(), "{} in {}", system.name(), load.describe());
                }
            }
        }
    }

    #[test]
    fn run_resumes_from_its_file() {
        let load = Load::JoinLeave { present: 7 };
        let mut report = Report::new(PLAN);
        report.rows.push(Row {
            load,
            results: vec![Measurement {
                system: System::Fanline,
                elements: None,
                value: Summary::of([2.0].into_iter()).unwrap(),
            }],
        });
        let name = format!("fanline-bench-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        json::save(&report, &path).unwrap();
        let read_again = read(&path, PLAN);
        let other_plan = read(&path, Plan { rounds: 2, ..PLAN });
        fs::remove_file(&path).unwrap();
        let row = read_again.unwrap().row(load).cloned().unwrap();
        assert_eq!(row.value(System::Fanline), Some(2.0));
        assert!(other_plan.is_err());
    }
}
