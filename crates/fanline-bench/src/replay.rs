//! `fanline-bench replay`: the subjects and their replay flavors with the loads of RxPerfTests, compared with
//! reference loops and with other libraries.

mod audience;
mod churn;
mod grid;
mod hand_written;
mod library;
mod measure;
mod reference_loops;
mod rivals;
mod rows;
mod running;
mod targets;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::report::Report;
use crate::turns::{Options, Plan};
use grid::{Flavor, MESSAGES, SUBSCRIBERS};

/// The measured parts of the grid. With `--quick`, these are the cells that have targets: 100,000 and 1,000,000
/// messages to 1 and 16 subscribers.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this flavor; repeatable
    #[arg(long = "flavor", value_name = "NAME")]
    flavors: Vec<Flavor>,
    /// Numbers of messages of a repetition, instead of 1,000 to 1,000,000; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "quick")]
    messages: Vec<u32>,
    /// Numbers of subscribers, instead of 1, 2, 4, 8 and 16; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = subscribers, conflicts_with = "quick")]
    subscribers: Vec<usize>,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    let targets = || {
        let targets = targets::speeds(&Report::new(""), Flavor::value_variants());
        let lines = targets.into_iter().map(|target| {
            let bound = target.bound();
            [target.what, bound, String::new()]
        });
        lines.collect()
    };
    if options.output.lists(targets) {
        return Ok(());
    }
    let plan = options.plan(Plan::new(5, 10, 20, 400), Plan::new(3, 10, 5, 200));
    let report = measure::all(&sizes(arguments), &plan, options.rivals)?;
    options.output.write(&report)
}

/// The measured part of the grid of flavors, messages, and subscribers. All are ascending.
struct Sizes {
    flavors: Vec<Flavor>,
    messages: Vec<u32>,
    subscribers: Vec<usize>,
}

fn sizes(arguments: &Arguments) -> Sizes {
    let (messages, subscribers): (&[u32], &[usize]) = match arguments.options.quick {
        true => (&[100_000, 1_000_000], &[1, 16]),
        false => (&MESSAGES, &SUBSCRIBERS),
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

fn subscribers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=100_000).contains(&count) => Ok(count),
        _ => Err("a number from 1 to 100,000 is needed".to_owned()),
    }
}
