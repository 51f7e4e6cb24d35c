//! `fanline-bench micro`: the parts of the engine, measured one at a time on one core, without a network.

mod cases;
mod matcher;
mod parser;
mod plot;
mod sampling;
mod shard;
mod store;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::report;
use cases::{Case, Result as CaseResult};

/// Measured parts, number and length of samples, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only the cases whose name contains this text; repeatable
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// List the cases and their targets, without measuring
    #[arg(long)]
    list: bool,
    /// Number of samples of each case; the result is their median
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Target length of one sample, in milliseconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let cases = chosen(&arguments.cases)?;
    if arguments.list {
        print!("{}", table::list(&cases));
        return Ok(());
    }
    let length = Duration::from_millis(arguments.millis);
    let progress = report::progress(cases.len() as u64);
    let mut results = Vec::new();
    for case in cases {
        progress.set_message(case.name);
        let measurements = sampling::measure(&mut *(case.prepare)(), arguments.samples, length);
        results.push(CaseResult {
            case,
            results: measurements,
        });
        progress.inc(1);
    }
    progress.finish_and_clear();
    let results = table::Report::new(results, arguments.samples, length);
    print!("{}", results.terminal());
    report::write_to(arguments.markdown.as_deref(), || results.markdown())?;
    report::write_to(arguments.plot.as_deref(), || results.plot())
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
