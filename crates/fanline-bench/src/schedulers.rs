//! `fanline-bench schedulers`: the cost of moving values to another thread, compared with hand-written
//! reference loops and with RxJava.

mod cases;
mod floors;
mod json;
mod library;
mod measure;
mod plot;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::report;
use crate::turns::Plan;

/// Length of the measurement, whether to measure RxJava, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of rounds; each measures every system once, in alternating order
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Target measuring time of a system per round, in milliseconds; at least one repetition
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,
    /// Three rounds of 20 ms
    #[arg(long, conflicts_with_all = ["rounds", "millis"])]
    quick: bool,
    /// Include RxJava 3 (needs Maven and a JDK) in the same run
    #[arg(long)]
    rivals: bool,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write every result
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let report = measure::all(&plan(arguments), arguments.rivals)?;
    print!("{}", table::terminal(&report));
    report::write_to(arguments.markdown.as_deref(), || table::markdown(&report))?;
    report::write_to(arguments.plot.as_deref(), || plot::svg(&report))?;
    report::write_to(arguments.json.as_deref(), || {
        format!("{:#}\n", json::value(&report))
    })
}

fn plan(arguments: &Arguments) -> Plan {
    let (rounds, turn, warm_up_jvm) = if arguments.quick {
        (3, 20, 500)
    } else {
        (arguments.rounds, arguments.millis, 3_000)
    };
    Plan {
        rounds,
        turn: Duration::from_millis(turn),
        warm_up: Duration::from_millis(turn),
        warm_up_jvm: Duration::from_millis(warm_up_jvm),
    }
}
