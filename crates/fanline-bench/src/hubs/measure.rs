//! The measurement of all loads. All systems of a load are measured in alternation.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;

use super::load::{Load, Part, System};
use super::pekko::Pekko;
use super::{Options, lockstep, many, others, targets};
use crate::report::behind::Rule;
use crate::report::metric::{Metric, Summary};
use crate::report::{self, Kind, Report, Row, json, versions};
use crate::turns;

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of rounds; each runs every system once.
    pub(super) rounds: u32,
    pub(super) elements: u64,
    /// Target duration of a run, in milliseconds. A run that would take longer has fewer elements.
    pub(super) run_millis: u64,
    /// Largest number of consumers for which other systems than Fanline are measured.
    pub(super) rivals_consumers_max: usize,
}

impl Plan {
    fn settings(&self) -> BTreeMap<String, f64> {
        BTreeMap::from([
            ("rounds".to_owned(), f64::from(self.rounds)),
            ("elements".to_owned(), self.elements as f64),
            ("run_millis".to_owned(), self.run_millis as f64),
            (
                "rivals_consumers_max".to_owned(),
                self.rivals_consumers_max as f64,
            ),
        ])
    }
}

/// Returns a report without rows.
pub(super) fn empty(plan: Plan) -> Report {
    let mut report = Report::new("Hubs: Fanline beside its rivals");
    report.settings = plan.settings();
    report.notes = notes(plan);
    report
}

pub(super) fn read(path: &Path, plan: Plan) -> Result<Report> {
    let report = json::read(path)?;
    ensure!(
        report.settings == plan.settings(),
        "--resume: {} was measured with other rounds, elements, run-millis or rivals-consumers-max",
        path.display()
    );
    Ok(report)
}

fn notes(plan: Plan) -> Vec<String> {
    let measured = format!(
        "Medians of {} rounds; each round runs every system of a cell once, in alternating \
         order, after two runs to warm up. A run has {} elements, fewer if a system would take \
         more than {} ms (in the cost law at least 30 µs per consumer), and is timed from \
         before the hub is created until the last consumer has ended. Every consumer checks every element, value and order.",
        plan.rounds, plan.elements, plan.run_millis
    );
    let notes = [
        measured.as_str(),
        "One thread is tokio's current-thread runtime, two are its multi-thread runtime with two \
         workers. (feed): consumers are woken when the buffer is full; (send each): for each element.",
        "tokio's broadcast overwrites old values, so the sender waits after each full buffer until all \
         consumers have read it. Pekko has its dispatcher's threads in every cell, one of which sends; \
         each of its consumers is a stream of one stage; it is not run with more than 2,000 consumers, since \
         each run would take minutes.",
        "The floor is written by hand for one thread (src/hubs/floor.rs, with its omissions): the \
         cost of the runtime to wake and poll tasks, and one read per delivery.",
        "Merge and partition: 256 buffered elements per producer or consumer; tokio's mpsc has \
         one bound of the same sum for all producers, or one channel per consumer.",
    ];
    notes.map(str::to_owned).to_vec()
}

/// Measures `loads`, except those that `report` already contains. Writes the report to `path` after each load.
pub(super) fn all(
    mut report: Report,
    loads: &[Load],
    plan: Plan,
    options: &Options,
    path: Option<&Path>,
) -> Result<Report> {
    let is_open = |load: &&Load| report.row(&load.name()).is_none();
    let open: Vec<Load> = loads.iter().filter(is_open).copied().collect();
    let mut contest = Contest {
        plan,
        options,
        pekko: None,
        progress: report::progress(open.len() as u64),
    };
    for load in open {
        contest.progress.set_message(load.name());
        let row = contest.measure(load);
        report.rows.push(row.with_context(|| load.name())?);
        contest.progress.inc(1);
        contest.note(&mut report);
        report.rows.sort_by_key(|row| {
            let place = loads.iter().position(|load| load.name() == row.name);
            place.unwrap_or(loads.len())
        });
        report.targets = targets::all(&report);
        if let Some(path) = path {
            json::save(&report, path)?;
        }
    }
    contest.progress.finish_and_clear();
    plot_largest_buffer(&mut report, loads);
    Ok(report)
}

/// Limits the plot to the broadcasts with the largest buffer.
fn plot_largest_buffer(report: &mut Report, loads: &[Load]) {
    let buffer = |load: &Load| (load.part == Part::Lockstep).then_some(load.buffer);
    let largest = loads.iter().filter_map(buffer).max();
    for load in loads {
        let row = report.rows.iter_mut().find(|row| row.name == load.name());
        if let Some(row) = row {
            row.is_plotted = buffer(load).is_some() && buffer(load) == largest;
        }
    }
}

/// Minimum number of elements for Pekko. Its streams take milliseconds to start, which should be a small part
/// of a run.
const PEKKO_ELEMENTS_MIN: u64 = 5000;

struct Contest<'a> {
    plan: Plan,
    options: &'a Options,
    /// Pekko, which is started on first use.
    pekko: Option<Pekko>,
    progress: ProgressBar,
}

impl Contest<'_> {
    fn measure(&mut self, load: Load) -> Result<Row> {
        let mut systems = load.systems(match self.options.rivals {
            true => self.plan.rivals_consumers_max,
            false => 0,
        });
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
        for index in turns::order(self.plan.rounds, taking_part.len()) {
            let (system, elements, values) = &mut taking_part[index];
            values.push(match *elements {
                Some(elements) => {
                    let time = self.run(*system, load, elements)?;
                    (elements * load.deliveries() as u64) as f64 / time.as_secs_f64()
                }
                None => value(*system, load),
            });
        }
        let mut row = load.row();
        for (system, elements, values) in taking_part {
            let (name, metric) = (system.name(), load.metric());
            if let Some(summary) = Summary::of(values.iter().copied())
                && load.deliveries() > 1
            {
                row.record(name, Metric::Delivery, summary.inverse(1e9));
            }
            row.record_samples(name, metric, values);
            if let Some(elements) = elements {
                row.record_value(name, Metric::Elements, elements as f64);
            }
        }
        compare(load, &mut row);
        Ok(row)
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
        let time = match load.part {
            Part::Lockstep if system == System::Pekko => {
                return self.pekko()?.run(load, elements);
            }
            Part::Lockstep | Part::Law => lockstep::run(system, load, elements),
            Part::Slow => Some(others::slow(system, load, elements)),
            Part::Merge => Some(many::run_merge(system, load, elements)),
            Part::Partition => Some(many::run_partition(system, load, elements)),
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

    /// Adds the measured systems to the report, with the versions of other systems, and the crashes.
    fn note(&mut self, report: &mut Report) {
        let systems = System::all();
        for system in &systems {
            report.add_measured(system.name(), system.kind(), self.version(*system));
        }
        report.systems.sort_by_key(|one| {
            let place = systems.iter().position(|system| system.name() == one.name);
            place.unwrap_or(systems.len())
        });
        if let Some(pekko) = &mut self.pekko {
            let crashes = pekko.crashes.drain(..);
            let notes = crashes.map(|error| format!("A JVM crashed and was restarted: {error}."));
            report.notes.extend(notes);
        }
    }

    fn version(&self, system: System) -> String {
        match system {
            System::TokioBroadcast | System::TokioMpsc => versions::built_with(&["tokio"]),
            System::AsyncBroadcast => versions::built_with(&["async-broadcast"]),
            System::Asyncband => versions::built_with(&["asyncband"]),
            System::Pekko => self.pekko.as_ref().map(Pekko::version).unwrap_or_default(),
            _ => String::new(),
        }
    }
}

/// Adds the ratios to the reference loop and to other systems. If the load has several of Fanline's APIs, the
/// ratios are those of the first one.
fn compare(load: Load, row: &mut Row) {
    let Some(own) = load.systems(0).first().copied() else {
        return;
    };
    for other in System::all() {
        let rule = match other.kind() {
            Kind::Own => continue,
            Kind::Reference => Rule::Never,
            Kind::Rival => Rule::Median,
        };
        row.compare(own.name(), other.name(), row.headline, rule);
    }
}

/// Measures a load that has no number of elements.
fn value(system: System, load: Load) -> f64 {
    match load.part {
        Part::JoinLeave => others::join_leave(system, load.peers),
        Part::Memory => others::memory(system, load.peers),
        Part::Allocations => others::allocations(system, load.peers),
        Part::Latency => others::latency(system, load),
        Part::Lockstep | Part::Law | Part::Slow | Part::Merge | Part::Partition => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
        };
        let mut contest = Contest {
            plan: PLAN,
            options: &options,
            pekko: None,
            progress: ProgressBar::hidden(),
        };
        for threads in [1, 2] {
            for load in [
                // A buffer of 4 wraps around, and 50 is not a multiple of 4.
                Load::broadcast(Part::Lockstep, threads, 4, 3),
                Load::broadcast(Part::Law, threads, 4, 3),
                Load::new(Part::Slow, threads, 2),
                Load::new(Part::Merge, threads, 5),
                Load::new(Part::Partition, threads, 3),
            ] {
                let systems = load.systems(PLAN.rivals_consumers_max).into_iter();
                for system in systems.filter(|system| *system != System::Pekko) {
                    assert!(System::all().contains(&system), "{}", system.name());
                    let time = contest.run(system, load, 50);
                    assert!(time.is_ok(), "{} in {}", system.name(), load.name());
                }
            }
        }
    }

    #[test]
    fn run_resumes_from_its_file() {
        let load = Load::new(Part::JoinLeave, 0, 7);
        let mut report = empty(PLAN);
        let mut row = load.row();
        row.record_value(System::Fanline.name(), load.metric(), 2.0);
        report.rows.push(row);
        let name = format!("fanline-bench-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        json::save(&report, &path).unwrap();
        let read_again = read(&path, PLAN);
        let other_plan = read(&path, Plan { rounds: 2, ..PLAN });
        fs::remove_file(&path).unwrap();
        let row = read_again.unwrap().row(&load.name()).cloned().unwrap();
        assert_eq!(row.value(System::Fanline.name(), load.metric()), Some(2.0));
        assert!(other_plan.is_err());
    }

    #[test]
    fn row_names_are_unique() {
        let names = [
            Load::broadcast(Part::Lockstep, 1, 64, 2),
            Load::broadcast(Part::Lockstep, 2, 64, 1),
            Load::broadcast(Part::Lockstep, 1, 2, 64),
            Load::broadcast(Part::Law, 1, 64, 2),
            Load::new(Part::JoinLeave, 0, 2),
            Load::new(Part::Memory, 0, 2),
        ]
        .map(Load::name);
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
