//! `fanline-bench micro`: the parts of the engine, measured one at a time on one core, without a network.

mod matcher;
mod parser;
mod shard;
mod store;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;

use crate::allocations::Allocations;
use crate::report::metric::{Metric, Summary};
use crate::report::target::Limit;
use crate::report::{self, Kind, Output, Report, Row, is_chosen};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only the cases whose name contains this text; repeatable
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Number of samples of each case; the result is their median
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// Target length of one sample, in milliseconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,
    #[command(flatten)]
    output: Output,
}

const FANLINE: &str = "Fanline";

const PARTS: &[(&str, &[Case])] = &[
    ("Matcher", matcher::CASES),
    ("Parser", parser::CASES),
    ("Shard", shard::CASES),
    ("Store", store::CASES),
];

/// A closure that runs an operation at least the given number of times, and returns the actual number.
type Work = dyn FnMut(u64) -> u64;

struct Case {
    name: &'static str,
    /// The unit that is counted, such as a message.
    unit: &'static str,
    targets: &'static [Limit],
    prepare: fn() -> Box<Work>,
}

const NO_ALLOCATION: Limit = Limit::at_most(Metric::Allocations, 0.0);

const fn case(
    name: &'static str,
    unit: &'static str,
    targets: &'static [Limit],
    prepare: fn() -> Box<Work>,
) -> Case {
    Case {
        name,
        unit,
        targets,
        prepare,
    }
}

/// Returns a closure that runs `batch` until enough operations were done. Each call does `done` operations.
fn in_batches(done: u64, mut batch: impl FnMut() + 'static) -> Box<Work> {
    Box::new(move |operations| {
        let batches = operations.div_ceil(done);
        for _ in 0..batches {
            batch();
        }
        batches * done
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut cases: Vec<(&str, &Case)> = Vec::new();
    for (part, all) in PARTS {
        let chosen = all.iter();
        let chosen = chosen.filter(|case| is_chosen(&arguments.cases, case.name));
        cases.extend(chosen.map(|case| (*part, case)));
    }
    ensure!(
        !cases.is_empty(),
        "no case has such a name; --list shows them"
    );
    let line = |(_, case): &(&str, &Case)| {
        let targets = Limit::list(case.targets);
        [case.name.to_owned(), String::new(), targets]
    };
    if arguments.output.lists(|| cases.iter().map(line).collect()) {
        return Ok(());
    }
    let length = Duration::from_millis(arguments.millis);
    let mut report = Report::new("The engine's parts on one core");
    report.is_logarithmic = true;
    report.add_system(FANLINE, Kind::Own, "");
    report.set("samples", f64::from(arguments.samples));
    report.set("sample_seconds", length.as_secs_f64());
    report.notes.push(format!(
        "Medians of {} samples of about {} ms on one thread, after a warm-up; bytes and allocations are means over \
         all of them, per operation.",
        arguments.samples, arguments.millis
    ));
    let progress = report::progress(cases.len());
    for (part, case) in progress.wrap_iter(cases.into_iter()) {
        progress.set_message(case.name);
        let mut row = Row {
            title: case.name.to_owned(),
            rate: format!("{}/s", case.unit),
            headline: Metric::Operation,
            ..Row::new(case.name, part)
        };
        measure(&mut *(case.prepare)(), arguments.samples, length, &mut row);
        let targets = case.targets.iter().map(|limit| limit.check(&row, FANLINE));
        report.targets.extend(targets);
        report.rows.push(row);
    }
    arguments.output.write(&report)
}

/// Length of the warm-up before the first sample, in samples.
const WARM_UP_SAMPLES: u32 = 3;

fn measure(work: &mut Work, samples: u32, length: Duration, row: &mut Row) {
    let operations = calibrate(work, length);
    for _ in 0..WARM_UP_SAMPLES {
        work(operations);
    }
    let mut nanos = Vec::with_capacity(samples as usize);
    let mut done = 0;
    let before = Allocations::of_this_thread();
    for _ in 0..samples {
        let start = Instant::now();
        let count = work(operations);
        nanos.push(start.elapsed().as_nanos() as f64 / count as f64);
        done += count;
    }
    let allocated = Allocations::of_this_thread().since(before);
    if let Some(nanos) = Summary::of(nanos.into_iter()) {
        row.record(FANLINE, Metric::Rate, nanos.inverse(1e9));
        row.record(FANLINE, Metric::Operation, nanos);
    }
    for (metric, total) in [
        (Metric::Allocations, allocated.count),
        (Metric::Bytes, allocated.bytes),
    ] {
        row.record_value(FANLINE, metric, total as f64 / done as f64);
    }
}

/// Returns the number of operations that take about `length`.
fn calibrate(work: &mut Work, length: Duration) -> u64 {
    let mut operations = 1;
    loop {
        let start = Instant::now();
        let done = work(operations);
        let elapsed = start.elapsed();
        if elapsed * 4 >= length {
            let wanted = u128::from(done) * length.as_nanos() / elapsed.as_nanos().max(1);
            return u64::try_from(wanted).unwrap_or(u64::MAX).max(1);
        }
        operations = done.max(operations) * 2;
    }
}

/// A small random number generator (xorshift64*). Its numbers are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}
