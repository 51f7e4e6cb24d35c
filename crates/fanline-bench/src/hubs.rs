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

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::report::Output;
use load::{Load, Part};
use measure::Plan;
use targets::{ALLOCATIONS_CONSUMERS, GROWTH_THREADS, JOIN_PRESENT, LAW_BUFFERS};

/// Measured parts, systems, and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this part; repeatable
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<Part>,
    /// Numbers of consumers of the broadcast, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count,
          default_values_t = [64, 256, 1000, 2000, 10_000, 100_000])]
    consumers: Vec<usize>,
    /// Buffer sizes of the broadcast, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count,
          default_values_t = [64, 256])]
    buffers: Vec<usize>,
    /// Numbers of threads, separated by commas; 1 uses a single-threaded runtime, others a work-stealing one
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = threads,
          default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Number of rounds; each runs every system once, in alternating order
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Number of elements of a broadcast run
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    elements: u64,
    /// Time limit of a run, in milliseconds; a longer run has fewer elements
    #[arg(long, value_name = "N", default_value_t = 700,
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    run_millis: u64,
    /// Largest number of broadcast consumers for other systems, whose runs then take seconds
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = count)]
    rivals_consumers_max: usize,
    /// Three rounds of runs of 100 milliseconds (longer for ten thousand and more tasks), and other systems
    /// with up to 2,000 consumers
    #[arg(long, conflicts_with_all = ["rounds", "run_millis", "rivals_consumers_max"])]
    quick: bool,
    /// Resume from the results in the JSON file if it exists: cells in it are not measured again
    #[arg(long, requires = "json")]
    resume: bool,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    output: Output,
}

/// Measured systems.
#[derive(Args)]
struct Options {
    /// Include tokio's channels, async-broadcast, asyncband, and Pekko (needs Maven and a JDK) in the same
    /// run
    #[arg(long)]
    rivals: bool,
    /// Measure only systems whose name contains this text; repeatable
    #[arg(long = "system", value_name = "TEXT")]
    systems: Vec<String>,
    /// JDK that runs Pekko, instead of the first known name in /usr/lib/jvm
    #[arg(long, value_name = "DIR")]
    java_home: Option<PathBuf>,
    /// Number of threads of Pekko's dispatcher
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = threads)]
    pekko_threads: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (plan, output) = (plan(arguments), &arguments.output);
    let targets = || {
        let targets = targets::all(&measure::empty(plan)).into_iter();
        let lines = targets.map(|target| {
            let bound = target.bound();
            [target.what, bound, target.cells]
        });
        lines.collect()
    };
    if output.lists(targets) {
        return Ok(());
    }
    let json = output.json.as_deref();
    let report = match json {
        Some(path) if arguments.resume && path.exists() => measure::read(path, plan)?,
        _ => measure::empty(plan),
    };
    let report = measure::all(report, &loads(arguments), plan, &arguments.options, json)?;
    output.write(&report)
}

fn plan(arguments: &Arguments) -> Plan {
    let plan = Plan {
        rounds: arguments.rounds,
        elements: arguments.elements,
        rivals_consumers_max: arguments.rivals_consumers_max,
        run_millis: arguments.run_millis,
    };
    match arguments.quick {
        true => Plan {
            rounds: 3,
            rivals_consumers_max: 2000,
            run_millis: 100,
            ..plan
        },
        false => plan,
    }
}

/// Returns all loads of the requested parts.
fn loads(arguments: &Arguments) -> Vec<Load> {
    let parts = &arguments.parts;
    let all = Part::value_variants().iter();
    let wanted = all.filter(|part| parts.is_empty() || parts.contains(part));
    wanted.flat_map(|part| of_part(*part, arguments)).collect()
}

fn of_part(part: Part, arguments: &Arguments) -> Vec<Load> {
    let on_each_thread = |peers: &[usize]| {
        let threads = arguments.threads.iter();
        let loads = threads.flat_map(|threads| peers.iter().map(|peers| (*threads, *peers)));
        loads.collect::<Vec<_>>()
    };
    let loads = match part {
        Part::Lockstep => return lockstep(arguments),
        Part::Law => return law(),
        Part::JoinLeave => [0, 100, JOIN_PRESENT, 100_000]
            .map(|present| (0, present))
            .to_vec(),
        Part::Memory => vec![(0, 100_000)],
        Part::Allocations => vec![(0, ALLOCATIONS_CONSUMERS)],
        Part::Slow => on_each_thread(&[0, 255]),
        Part::Latency => on_each_thread(&[1, 100, 1000]),
        Part::Merge | Part::Partition => on_each_thread(&[1, 4, 16]),
    };
    let loads = loads.into_iter();
    loads
        .map(|(threads, peers)| Load::new(part, threads, peers))
        .collect()
}

fn lockstep(arguments: &Arguments) -> Vec<Load> {
    let mut loads = Vec::new();
    for &threads in &arguments.threads {
        for &buffer in &arguments.buffers {
            let consumers = arguments.consumers.iter();
            let load = |count: &usize| Load::broadcast(Part::Lockstep, threads, buffer, *count);
            loads.extend(consumers.map(load));
        }
    }
    loads
}

fn law() -> Vec<Load> {
    let mut loads = Vec::new();
    for buffer in LAW_BUFFERS {
        let consumers = [64, 1000, 10_000];
        loads.extend(consumers.map(|count| Load::broadcast(Part::Law, 1, buffer, count)));
    }
    for load in GROWTH_THREADS.into_iter().flat_map(targets::growth_loads) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads
}

fn count(text: &str) -> Result<usize, String> {
    within(text, 1_000_000)
}

fn threads(text: &str) -> Result<usize, String> {
    within(text, 256)
}

fn within(text: &str, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(format!("a number from 1 to {most} is needed")),
    }
}
