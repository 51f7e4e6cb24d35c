//! Runs ranges of seeds.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use fanline_sim::{Covered, Mode, Sabotage, run_seed, trace_seed};

/// Runs simulated servers or clusters, each from a seed.
#[derive(Parser)]
struct Options {
    /// Seeds to run, as `from..to`.
    #[arg(long, default_value = "0..1000", value_parser = parse_range)]
    seeds: (u64, u64),
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Runs all seeds, and prints a line for each that fails.
    #[arg(long)]
    all: bool,
    /// Runs one seed and prints its steps.
    #[arg(long)]
    trace: Option<u64>,
    /// Runs clusters of servers, instead of single servers.
    #[arg(long)]
    cluster: bool,
}

impl Options {
    fn mode(&self) -> Mode {
        match self.cluster {
            true => Mode::Cluster,
            false => Mode::Server,
        }
    }
}

fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("seeds must be a range such as 0..1000, got {text:?}");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let from = from.parse().map_err(|_| wrong())?;
    let to = to.parse().map_err(|_| wrong())?;
    Ok((from, to))
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(seed) = options.trace {
        let (lines, outcome) = trace_seed(options.mode(), seed, Sabotage::None);
        for line in lines {
            println!("{line}");
        }
        if let Err(failure) = outcome {
            println!("{}", failure.summary());
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    // A panic of the engine is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    run_range(&options)
}

/// Runs the seeds of a range.
fn run_range(options: &Options) -> ExitCode {
    let (from, to) = options.seeds;
    let begin = Instant::now();
    let next = AtomicU64::new(from);
    let has_failed = AtomicBool::new(false);
    let covered = Mutex::new(Covered::default());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while options.all || !has_failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= to {
                        return;
                    }
                    match run_seed(options.mode(), seed, Sabotage::None) {
                        Ok(one) => covered.lock().expect("no holder panics").add(&one),
                        Err(failure) => {
                            has_failed.store(true, Ordering::Relaxed);
                            match options.all {
                                true => println!("{}", failure.summary()),
                                false => println!("{failure}"),
                            }
                        }
                    }
                }
            });
        }
    });
    let seeds = next.load(Ordering::Relaxed).min(to) - from;
    let covered = covered.into_inner().expect("no holder panics");
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seeds} seeds in {seconds:.1} s: {covered:?}");
    match has_failed.load(Ordering::Relaxed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}
