//! `fanline-bench footprint`: what a subject costs besides its messages: short visits of an observer, memory,
//! code size, and compile time.

mod compile;
mod memory;
mod visit;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::versions::built_with;
use crate::report::{self, Kind, Output, Report};
use crate::rxjava::RxJava;
use crate::turns::Plan;

/// Length of the measurement, whether to measure rivals, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of rounds; each measures every system once, in alternating order
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Include rxRust, tokio's channels, and RxJava 3 (needs Maven and a JDK) in the same run
    #[arg(long)]
    rivals: bool,
    /// Print the resident memory of one kind of object in a fresh process; for internal use
    #[arg(long, hide = true, value_name = "ROW:SYSTEM")]
    resident: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A limit on results of Fanline.
struct Limit {
    /// Prefix of the names of rows.
    rows: &'static str,
    metric: Metric,
    most: f64,
}

const LIMITS: &[Limit] = &[
    limit("visit-", Metric::Operation, 400.0),
    limit("memory-behavior", Metric::SubjectMemory, 700.0),
    limit("memory-one", Metric::SubjectMemory, 700.0),
    limit("memory-many", Metric::SubjectMemory, 1100.0),
    limit("memory-cache", Metric::SubjectMemory, 700.0),
];

const fn limit(rows: &'static str, metric: Metric, most: f64) -> Limit {
    Limit { rows, metric, most }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(name) = &arguments.resident {
        println!("{}", memory::in_this_process(name)?);
        return Ok(());
    }
    if arguments.output.list {
        let lines = LIMITS.iter().map(|limit| {
            let bound = Bound::AtMost(limit.most).words(Unit::Of(limit.metric));
            [format!("{}*", limit.rows), String::new(), bound]
        });
        print!("{}", report::list(lines));
        return Ok(());
    }
    arguments.output.write(&measure(arguments)?)
}

fn measure(arguments: &Arguments) -> Result<Report> {
    let plan = Plan {
        rounds: arguments.rounds,
        turn: Duration::from_millis(20),
        warm_up: Duration::from_millis(20),
        warm_up_jvm: Duration::from_secs(1),
    };
    let rxjava = arguments.rivals.then(RxJava::build).transpose()?;
    let mut report = Report::new("What a subject costs besides its messages");
    plan.note(&mut report);
    visit::add(&mut report, &plan, rxjava.as_ref())?;
    memory::add(&mut report, plan.rounds, arguments.rivals)?;
    compile::add(&mut report, plan.rounds, arguments.rivals)?;
    let rows = &report.rows;
    let systems: Vec<&str> = report.systems.iter().map(|one| one.name.as_str()).collect();
    let is_own = |name: &&&str| report.is_kind(name, Kind::Own);
    let targets = LIMITS.iter().flat_map(|limit| {
        let rows = rows.iter().filter(|row| row.name.starts_with(limit.rows));
        rows.flat_map(|row| {
            let own = systems.iter().filter(is_own);
            own.filter_map(|name| Some((*name, row.value(name, limit.metric)?)))
                .map(|(name, value)| {
                    let (bound, unit) = (Bound::AtMost(limit.most), Unit::Of(limit.metric));
                    Target::new(
                        format!("{}, {name}", row.label()),
                        vec![Some(value)],
                        bound,
                        unit,
                    )
                })
        })
    });
    let targets: Vec<Target> = targets.collect();
    report.targets = targets;
    report.notes = notes();
    Ok(report)
}

/// Adds a system with the version of the crate that provides it.
fn add_system(report: &mut Report, name: &str, rxjava: Option<&RxJava>) {
    let (kind, version) = match name.split([' ', ',']).next() {
        Some("rxRust") => (Kind::Rival, built_with(&["rxrust"])),
        Some("tokio") => (Kind::Rival, built_with(&["tokio"])),
        Some("RxJava") => (
            Kind::Rival,
            rxjava
                .map(|rxjava| rxjava.version.clone())
                .unwrap_or_default(),
        ),
        _ => (Kind::Own, String::new()),
    };
    report.add_system(name, kind, version);
}

fn notes() -> Vec<String> {
    let notes = [
        "A visit: an observer subscribes, receives one value, and unsubscribes. The value also goes to all observers \
         that are present, so with 1,000 present a visit includes 1,000 deliveries. Receivers of tokio's channels \
         pull: those that are present receive nothing.",
        "Memory: growth of the resident memory of a fresh process by 20,000 subjects with one handle of each kind, \
         after 100 values of 64 bytes; a cache has 100,000 keys in a `HashMap`, each with a subject and one value of \
         64 bytes, and its memory is per key.",
        "Code size: a program, stripped, minus a program that only prints a number. Compile time: a build of the \
         program alone, after its dependencies, which includes generic code of the library.",
    ];
    notes.map(str::to_owned).to_vec()
}
