//! `fanline-bench footprint`: what a subject costs besides its messages: short visits of an observer, memory,
//! code size, and compile time.

mod compile;
mod memory;
mod visit;

use anyhow::Result;
use clap::Args;

use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::{Kind, Report};
use crate::rxjava::RxJava;
use crate::subjects::version;
use crate::turns::{Options, Plan};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Print the resident memory of one kind of object in a fresh process; for internal use
    #[arg(long, hide = true, value_name = "ROW:SYSTEM")]
    resident: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// Upper bounds of Fanline's results in all rows whose names have a prefix.
const LIMITS: &[(&str, Metric, f64)] = &[
    ("visit-", Metric::Operation, 400.0),
    ("memory-behavior", Metric::SubjectMemory, 700.0),
    ("memory-one", Metric::SubjectMemory, 700.0),
    ("memory-many", Metric::SubjectMemory, 1100.0),
    ("memory-cache", Metric::SubjectMemory, 700.0),
];

pub(crate) fn run(Arguments { resident, options }: &Arguments) -> Result<()> {
    if let Some(name) = resident {
        println!("{}", memory::in_this_process(name)?);
        return Ok(());
    }
    let line = |(rows, metric, most): &(&str, Metric, f64)| {
        let bound = Bound::AtMost(*most).words(Unit::Of(*metric));
        [format!("{rows}*"), String::new(), bound]
    };
    if options.output.lists(|| LIMITS.iter().map(line).collect()) {
        return Ok(());
    }
    let plan = options.plan(Plan::new(5, 20, 20, 1_000), Plan::new(2, 20, 20, 1_000));
    let rxjava = options.rivals.then(RxJava::build).transpose()?;
    let mut report = Report::new("What a subject costs besides its messages");
    plan.note(&mut report);
    visit::add(&mut report, &plan, rxjava.as_ref())?;
    memory::add(&mut report, plan.rounds, options.rivals)?;
    compile::add(&mut report, plan.rounds, options.rivals)?;
    for system in visit::SYSTEMS {
        let kind = match is_own(system) {
            true => Kind::Own,
            false => Kind::Rival,
        };
        report.add_measured(system, kind, version(system, rxjava.as_ref()));
    }
    report.targets = targets(&report);
    report.notes = notes();
    options.output.write(&report)
}

fn is_own(system: &str) -> bool {
    system.starts_with("Fanline")
}

fn targets(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    for (rows, metric, most) in LIMITS {
        for row in report.rows.iter().filter(|row| row.name.starts_with(rows)) {
            for system in visit::SYSTEMS.iter().filter(|system| is_own(system)) {
                let measured = row.value(system, *metric).map(Some);
                let what = format!("{}, {system}", row.label());
                let (bound, unit) = (Bound::AtMost(*most), Unit::Of(*metric));
                targets.extend(measured.map(|value| Target::new(what, vec![value], bound, unit)));
            }
        }
    }
    targets
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
