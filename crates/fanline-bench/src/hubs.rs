//! `fanline-bench hubs`: the broadcast hub in lockstep, beside its rivals.
//!
//! One producer, so many consumers, each of which checks every element it gets. A run is timed from
//! before the consumers are spawned until the last has ended. Runs of all systems take turns.

mod extras;
mod rivals;
mod runs;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::report;
use runs::{Cell, System};

/// Which cells, and how long.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Numbers of consumers
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1000, 2000])]
    consumers: Vec<usize>,
    /// Sizes of the buffer
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    buffers: Vec<usize>,
    /// Threads: 1 is a runtime of one thread, more a work-stealing one
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Elements of one run
    #[arg(long, default_value_t = 100_000)]
    elements: u64,
    /// Deliveries of one run at most; fewer elements are sent where there are many consumers
    #[arg(long, default_value_t = 20_000_000)]
    deliveries_max: u64,
    /// Runs of each cell; the figure is their median
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Measure the other crates as well
    #[arg(long)]
    rivals: bool,
    /// Measure only systems whose name contains this; may be given several times
    #[arg(long = "system", value_name = "TEXT")]
    systems: Vec<String>,
    /// Measure joining and leaving, memory, a slow consumer and latency as well
    #[arg(long)]
    extras: bool,
    /// Draw deliveries per second of each cell
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let systems = chosen(arguments);
    ensure!(!systems.is_empty(), "no system has such a name");
    let mut cells = Vec::new();
    for &threads in &arguments.threads {
        for &buffer in &arguments.buffers {
            for &consumers in &arguments.consumers {
                let elements = arguments
                    .elements
                    .min(arguments.deliveries_max / consumers as u64)
                    .max(2 * buffer as u64);
                cells.push(Cell {
                    threads,
                    buffer,
                    consumers,
                    elements,
                });
            }
        }
    }
    let progress = report::progress((cells.len() * systems.len() * arguments.runs) as u64);
    let mut rows = Vec::new();
    for cell in cells {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); systems.len()];
        for _ in 0..arguments.runs {
            for (system, times) in systems.iter().zip(&mut times) {
                progress.set_message(system.name());
                times.push(system.run(cell));
                progress.inc(1);
            }
        }
        rows.push(table::Row::new(cell, &systems, times));
    }
    progress.finish_and_clear();
    print!("{}", table::terminal(&rows));
    if arguments.extras {
        extras::run();
    }
    if let Some(path) = &arguments.plot {
        std::fs::write(path, table::plot(&rows)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn chosen(arguments: &Arguments) -> Vec<System> {
    System::ALL
        .into_iter()
        .filter(|system| arguments.rivals || !system.is_rival())
        .filter(|system| {
            let wanted = &arguments.systems;
            wanted.is_empty()
                || wanted
                    .iter()
                    .any(|text| system.name().contains(text.as_str()))
        })
        .collect()
}
