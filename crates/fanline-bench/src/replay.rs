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
    let (messages, subscribers): (&[u32], &[usize]) = match options.quick {
        true => (&[100_000, 1_000_000], &[1, 16]),
        false => (&MESSAGES, &SUBSCRIBERS),
    };
    let chosen = &arguments.flavors;
    let mut flavors = Flavor::value_variants().to_vec();
    flavors.retain(|flavor| chosen.is_empty() || chosen.contains(flavor));
    let sizes = Sizes {
        flavors,
        messages,
        subscribers,
    };
    let report = measure::all(&sizes, &plan, options.rivals)?;
    options.output.write(&report)
}

/// The measured part of the grid of flavors, messages, and subscribers. All are ascending.
struct Sizes {
    flavors: Vec<Flavor>,
    messages: &'static [u32],
    subscribers: &'static [usize],
}
