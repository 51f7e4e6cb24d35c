//! `fanline-bench replay`: the subjects and their replay flavors with the loads of RxPerfTests, compared with
//! reference loops and with other libraries.

mod audience;
mod churn;
mod grid;
mod hand_written;
mod library;
mod measure;
mod outcome;
mod reference_loops;
mod rivals;
mod rows;
mod running;
mod targets;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::report::{self, Output};
use crate::turns::Plan;
use grid::{Flavor, MESSAGES, SUBSCRIBERS};
use outcome::Outcome;

/// The measured parts of the grid, the compared libraries, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this flavor; repeatable
    #[arg(long = "flavor", value_name = "NAME")]
    flavors: Vec<Flavor>,
    /// Numbers of messages of a repetition, instead of 1,000 to 1,000,000; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    messages: Vec<u32>,
    /// Numbers of subscribers, instead of 1, 2, 4, 8 and 16; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = subscribers)]
    subscribers: Vec<usize>,
    /// Number of rounds; each measures every system once, in alternating order
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Target measuring time of a system per round, in milliseconds; at least one repetition
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,
    /// Measure only the cells that have targets, in three rounds: 100,000 and 1,000,000 messages to 1 and 16
    /// subscribers
    #[arg(long, conflicts_with_all = ["rounds", "messages", "subscribers"])]
    quick: bool,
    /// Include RxJava 3 (needs Maven and a JDK), rxRust, and tokio's broadcast in the same run
    #[arg(long)]
    rivals: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.output.list {
        let targets = targets::speeds(&Outcome::default(), Flavor::value_variants());
        let lines = targets.into_iter().map(|target| {
            let bound = target.bound();
            [target.what, bound, String::new()]
        });
        print!("{}", report::list(lines));
        return Ok(());
    }
    let report = measure::all(&sizes(arguments), &plan(arguments), arguments.rivals)?;
    arguments.output.write(&report)
}

/// The measured part of the grid of flavors, messages, and subscribers.
struct Sizes {
    flavors: Vec<Flavor>,
    messages: Vec<u32>,
    subscribers: Vec<usize>,
}

fn sizes(arguments: &Arguments) -> Sizes {
    let messages: &[u32] = if arguments.quick {
        &[100_000, 1_000_000]
    } else {
        &MESSAGES
    };
    let subscribers: &[usize] = if arguments.quick {
        &[1, 16]
    } else {
        &SUBSCRIBERS
    };
    Sizes {
        flavors: given_or(&arguments.flavors, Flavor::value_variants()),
        messages: given_or(&arguments.messages, messages),
        subscribers: given_or(&arguments.subscribers, subscribers),
    }
}

/// Returns the given values, sorted and without duplicates. Without given values, returns all values.
fn given_or<T: Clone + Ord>(given: &[T], all: &[T]) -> Vec<T> {
    let mut chosen = if given.is_empty() { all } else { given }.to_vec();
    chosen.sort();
    chosen.dedup();
    chosen
}

fn plan(arguments: &Arguments) -> Plan {
    let quick = arguments.quick;
    Plan {
        rounds: if quick { 3 } else { arguments.rounds },
        turn: Duration::from_millis(arguments.millis),
        warm_up: Duration::from_millis(if quick { 5 } else { 20 }),
        warm_up_jvm: Duration::from_millis(if quick { 200 } else { 400 }),
    }
}

fn subscribers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=100_000).contains(&count) => Ok(count),
        _ => Err("a number from 1 to 100,000 is needed".to_owned()),
    }
}
