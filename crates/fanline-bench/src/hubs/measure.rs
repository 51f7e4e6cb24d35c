//! The measurement of all loads. All systems of a load are measured in alternation.

use std::time::Duration;

use anyhow::{Context, Result};

use super::load::{Load, Part, System};
use super::pekko::Pekko;
use super::{Arguments, lockstep, many, others, targets};
use crate::report::behind::Rule;
use crate::report::metric::{Metric, Summary};
use crate::report::versions::built_with;
use crate::report::{self, Kind, Report, Row, is_chosen};
use crate::turns::{self, Plan};

/// Number of elements of a broadcast run. A run that would take longer than a turn of the plan has fewer.
const ELEMENTS: u64 = 100_000;

fn notes(plan: Plan) -> Vec<String> {
    let measured = format!(
        "Medians of {} rounds; each round runs every system of a cell once, in alternating \
         order, after two runs to warm up. A run has {ELEMENTS} elements, fewer if a system would take \
         more than {} ms (in the cost law at least 30 µs per consumer), and is timed from \
         before the hub is created until the last consumer has ended. Every consumer checks every element, value and order.",
        plan.rounds,
        plan.turn.as_millis()
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

pub(super) fn all(loads: &[Load], plan: Plan, arguments: &Arguments) -> Result<Report> {
    let rivals_consumers_max = match arguments.options.quick {
        true => 2000,
        false => 10_000,
    };
    let mut report = Report::new("Hubs: Fanline beside its rivals");
    report.set("rounds", f64::from(plan.rounds));
    report.set("elements", ELEMENTS as f64);
    report.set("run_millis", plan.turn.as_millis() as f64);
    report.set("rivals_consumers_max", rivals_consumers_max as f64);
    report.notes = notes(plan);
    let mut contest = Contest {
        plan,
        rivals_consumers_max: match arguments.options.rivals {
            true => rivals_consumers_max,
            false => 0,
        },
        systems: &arguments.systems,
        pekko: None,
    };
    let progress = report::progress(loads.len());
    for load in progress.wrap_iter(loads.iter()) {
        progress.set_message(load.name());
        let row = contest.measure(*load).with_context(|| load.name())?;
        report.rows.push(row);
    }
    contest.note(&mut report);
    report.targets = targets::all(&report);
    Ok(report)
}

/// Minimum number of elements for Pekko. Its streams take milliseconds to start, which should be a small part
/// of a run.
const PEKKO_ELEMENTS_MIN: u64 = 5000;

struct Contest<'a> {
    plan: Plan,
    /// Largest number of consumers for which other systems than Fanline are measured; 0 omits them.
    rivals_consumers_max: usize,
    /// Texts of which a measured system's name contains one; empty for all systems.
    systems: &'a [String],
    /// Pekko, which is started on first use.
    pekko: Option<Pekko>,
}

impl Contest<'_> {
    fn measure(&mut self, load: Load) -> Result<Row> {
        let mut systems = load.systems(self.rivals_consumers_max);
        systems.retain(|system| is_chosen(self.systems, system.name()));
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
        let most = (ELEMENTS * load.elements_factor()).max(least);
        let budget = self.plan.turn.max(load.run_min());
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
            self.pekko = Some(Pekko::start()?);
        }
        self.pekko.as_mut().context("no JVM")
    }

    /// Adds the measured systems to the report, with the versions of other systems, and the crashes.
    fn note(&self, report: &mut Report) {
        for system in System::all() {
            report.add_measured(system.name(), system.kind(), self.version(system));
        }
        let crashes = self.pekko.iter().flat_map(|pekko| &pekko.crashes);
        let notes = crashes.map(|error| format!("A JVM crashed and was restarted: {error}."));
        report.notes.extend(notes);
    }

    fn version(&self, system: System) -> String {
        match system {
            System::TokioBroadcast | System::TokioMpsc => built_with(&["tokio"]),
            System::AsyncBroadcast => built_with(&["async-broadcast"]),
            System::Asyncband => built_with(&["asyncband"]),
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
    use super::*;

    /// Runs every system. Consumers check the elements, so a run that completes was correct.
    #[test]
    fn all_systems_deliver_everything() {
        let mut contest = Contest {
            plan: Plan::new(1, 1, 0, 0),
            rivals_consumers_max: 10_000,
            systems: &[],
            pekko: None,
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
                let systems = load.systems(contest.rivals_consumers_max).into_iter();
                for system in systems.filter(|system| *system != System::Pekko) {
                    assert!(System::all().contains(&system), "{}", system.name());
                    let time = contest.run(system, load, 50);
                    assert!(time.is_ok(), "{} in {}", system.name(), load.name());
                }
            }
        }
    }

    #[test]
    fn row_names_are_unique() {
        let names: Vec<String> = crate::hubs::loads().into_iter().map(Load::name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
