//! `fanline-bench micro`: the parts of the engine, measured one at a time on one core, without a network.

mod cases;
mod matcher;
mod parser;
mod sampling;
mod shard;
mod store;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::report::metric::Metric;
use crate::report::target::{Target, Unit};
use crate::report::{self, Kind, Output, Report, Row};
use cases::Case;
use sampling::Measurements;

/// Measured parts, number and length of samples, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only the cases whose name contains this text; repeatable
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Number of samples of each case; the result is their median
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Target length of one sample, in milliseconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,
    #[command(flatten)]
    output: Output,
}

/// Name of the measured system in reports.
const FANLINE: &str = "Fanline";

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let cases = chosen(&arguments.cases)?;
    if arguments.output.list {
        print!("{}", report::list(cases.iter().map(line)));
        return Ok(());
    }
    let length = Duration::from_millis(arguments.millis);
    let mut report = Report::new("The engine's parts on one core");
    report.is_logarithmic = true;
    report.add_system(FANLINE, Kind::Own, "");
    report.set("samples", f64::from(arguments.samples));
    report.set("sample_seconds", length.as_secs_f64());
    report.notes.push(format!(
        "Medians of {} samples of about {} ms on one thread, after a warm-up; bytes and allocations are means over \
         all of them, per operation.",
        arguments.samples, arguments.millis
    ));
    let progress = report::progress(cases.len() as u64);
    for case in cases {
        progress.set_message(case.name);
        let results = sampling::measure(&mut *(case.prepare)(), arguments.samples, length);
        let row = row(&case, &results);
        report.targets.extend(targets(&case, &row));
        report.rows.push(row);
        progress.inc(1);
    }
    progress.finish_and_clear();
    arguments.output.write(&report)
}

/// Returns a case as a line of `--list`.
fn line(case: &Case) -> [String; 3] {
    let targets = case.targets.iter().map(|target| {
        let (bound, metric) = target.bound();
        let bound = bound.words(Unit::Of(metric));
        format!("{} {bound}", metric.label())
    });
    let targets = targets.collect::<Vec<_>>().join(", ");
    [case.name.to_owned(), String::new(), targets]
}

fn row(case: &Case, results: &Measurements) -> Row {
    let mut row = Row {
        title: case.name.to_owned(),
        rate: format!("{}/s", case.unit),
        headline: Metric::Operation,
        ..Row::new(case.name, case.part())
    };
    row.record(FANLINE, Metric::Rate, results.nanos.inverse(1e9));
    row.record(FANLINE, Metric::Operation, results.nanos);
    row.record_value(FANLINE, Metric::Allocations, results.allocations);
    row.record_value(FANLINE, Metric::Bytes, results.bytes);
    row
}

fn targets(case: &Case, row: &Row) -> Vec<Target> {
    let targets = case.targets.iter().map(|target| {
        let (bound, metric) = target.bound();
        let what = format!("{}, {}", case.name, row.metric_title(metric));
        Target::new(
            what,
            vec![row.value(FANLINE, metric)],
            bound,
            Unit::Of(metric),
        )
    });
    targets.collect()
}

fn chosen(names: &[String]) -> Result<Vec<Case>> {
    let is_wanted =
        |case: &Case| names.is_empty() || names.iter().any(|name| case.name.contains(name));
    let all = matcher::CASES.iter().chain(parser::CASES);
    let all = all.chain(shard::CASES).chain(store::CASES);
    let chosen: Vec<Case> = all.copied().filter(is_wanted).collect();
    ensure!(
        !chosen.is_empty(),
        "no case has such a name; --list shows them"
    );
    Ok(chosen)
}
