//! `fanline-bench hubs`: the broadcast hub in lockstep, compared with other systems, and further properties
//! of it. Also compares the merge and the partition hub with a channel.

mod channel;
mod floor;
mod load;
mod lockstep;
mod many;
mod measure;
mod others;
mod pekko;
mod targets;

use anyhow::{Result, ensure};
use clap::Args;

use crate::report::{Report, is_chosen};
use crate::turns::{Options, Plan};
use load::{Load, Part};
use targets::{ALLOCATIONS_CONSUMERS, GROWTH_THREADS, JOIN_PRESENT, LAW_BUFFERS};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only the rows whose name contains this text, such as `latency` or `lockstep-2-256`; repeatable
    #[arg(long = "row", value_name = "TEXT")]
    rows: Vec<String>,
    /// Measure only systems whose name contains this text; repeatable
    #[arg(long = "system", value_name = "TEXT")]
    systems: Vec<String>,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    let targets = || {
        let targets = targets::all(&Report::new("")).into_iter();
        let lines = targets.map(|target| {
            let bound = target.bound();
            [target.what, bound, target.cells]
        });
        lines.collect()
    };
    if options.output.lists(targets) {
        return Ok(());
    }
    let plan = options.plan(Plan::new(5, 700, 0, 0), Plan::new(3, 100, 0, 0));
    let mut loads = loads();
    loads.retain(|load| is_chosen(&arguments.rows, &load.name()));
    ensure!(!loads.is_empty(), "no row has such a name");
    let report = measure::all(&loads, plan, arguments)?;
    options.output.write(&report)
}

/// Returns every load, in the order of the tables.
fn loads() -> Vec<Load> {
    const ANY: &[usize] = &[0];
    const BOTH: &[usize] = &[1, 2];
    let mut loads = Vec::new();
    for (threads, buffer) in [(1, 64), (1, 256), (2, 64), (2, 256)] {
        let load = |consumers| Load::broadcast(Part::Lockstep, threads, buffer, consumers);
        loads.extend([64, 256, 1000, 2000, 10_000, 100_000].map(load));
    }
    for buffer in LAW_BUFFERS {
        let load = |consumers| Load::broadcast(Part::Law, 1, buffer, consumers);
        loads.extend([64, 1000, 10_000].map(load));
    }
    for load in GROWTH_THREADS.into_iter().flat_map(targets::growth_loads) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let others: [(Part, &[usize], &[usize]); 7] = [
        (Part::JoinLeave, ANY, &[0, 100, JOIN_PRESENT, 100_000]),
        (Part::Memory, ANY, &[100_000]),
        (Part::Allocations, ANY, &[ALLOCATIONS_CONSUMERS]),
        (Part::Slow, BOTH, &[0, 255]),
        (Part::Latency, BOTH, &[1, 100, 1000]),
        (Part::Merge, BOTH, &[1, 4, 16]),
        (Part::Partition, BOTH, &[1, 4, 16]),
    ];
    for (part, threads, peers) in others {
        for threads in threads {
            loads.extend(peers.iter().map(|peers| Load::new(part, *threads, *peers)));
        }
    }
    loads
}
