//! `fanline-bench schedulers`: the cost of moving values to another thread, compared with hand-written
//! reference loops and with RxJava.

mod cases;
mod floors;
mod library;
mod measure;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::report::{self, Output};
use crate::turns::Plan;
use cases::CASES;

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
    #[command(flatten)]
    output: Output,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.output.list {
        let lines = CASES.iter().map(|case| {
            let target = case.target.describe();
            [case.name.to_owned(), String::new(), target]
        });
        print!("{}", report::list(lines));
        return Ok(());
    }
    let report = measure::all(&plan(arguments), arguments.rivals)?;
    arguments.output.write(&report)
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
