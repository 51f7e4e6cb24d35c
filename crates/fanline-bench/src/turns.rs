//! The measurement of systems in alternating turns, so that drift of the machine affects all of them equally.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use crate::allocations::Allocations;
use crate::report::metric::Summary;
use crate::report::{Output, Report};

/// Maximum number of repetitions in a turn. More would not improve the result, even if a repetition is short.
pub(crate) const REPETITIONS_MAX: u32 = 2000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Number of rounds. Each system has one turn per round.
    pub(crate) rounds: u32,
    /// Target duration of a turn. A turn has at least one repetition.
    pub(crate) turn: Duration,
    /// Warm-up time before the first round, for systems that are compiled ahead of time.
    pub(crate) warm_up: Duration,
    /// Warm-up time for systems that are compiled at run time.
    pub(crate) warm_up_jvm: Duration,
}

impl Plan {
    /// Creates a plan. All times are in milliseconds.
    pub(crate) const fn new(rounds: u32, turn: u64, warm_up: u64, warm_up_jvm: u64) -> Self {
        Self {
            rounds,
            turn: Duration::from_millis(turn),
            warm_up: Duration::from_millis(warm_up),
            warm_up_jvm: Duration::from_millis(warm_up_jvm),
        }
    }

    pub(crate) fn note(&self, report: &mut Report) {
        report.set("rounds", f64::from(self.rounds));
        for (name, duration) in [
            ("turn_seconds", self.turn),
            ("warm_up_seconds", self.warm_up),
            ("warm_up_jvm_seconds", self.warm_up_jvm),
        ] {
            report.set(name, duration.as_secs_f64());
        }
    }
}

#[derive(Args)]
pub(crate) struct Options {
    /// Number of rounds; each measures every system once, in alternating order
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Target measuring time of a system per round, in milliseconds; at least one repetition
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: Option<u64>,
    /// Measure with fewer and shorter rounds
    #[arg(long, conflicts_with = "rounds")]
    pub(crate) quick: bool,
    /// Include other systems in the same run; those in Java need Maven and a JDK
    #[arg(long)]
    pub(crate) rivals: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Options {
    pub(crate) fn plan(&self, usual: Plan, quick: Plan) -> Plan {
        let plan = if self.quick { quick } else { usual };
        Plan {
            rounds: self.rounds.unwrap_or(plan.rounds),
            turn: self.millis.map_or(plan.turn, Duration::from_millis),
            ..plan
        }
    }
}

/// Returns the index of each of `count` systems once per round. The order is reversed in every second round, so
/// that drift of the machine affects all systems equally.
pub(crate) fn order(rounds: u32, count: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |round| {
        (0..count).map(move |index| match round % 2 {
            0 => index,
            _ => count - 1 - index,
        })
    })
}

/// A turn of one system, which lasts about the given time.
pub(crate) type Turn<'a> = Box<dyn FnMut(Duration) -> Result<Vec<Repetition>> + 'a>;

/// Measures systems in alternating turns. Returns the results in the given order.
pub(crate) fn contest(
    plan: &Plan,
    mut systems: Vec<(&'static str, Turn<'_>)>,
) -> Result<Vec<(&'static str, Measurements)>> {
    let mut repetitions = vec![Vec::new(); systems.len()];
    for index in order(plan.rounds, systems.len()) {
        let (name, turn) = &mut systems[index];
        repetitions[index].extend(turn(plan.turn).context(*name)?);
    }
    let results = systems.iter().zip(&repetitions);
    let results = results.filter_map(|((name, _), all)| Some((*name, Measurements::of(all)?)));
    Ok(results.collect())
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repetition {
    pub(crate) nanos: f64,
    /// Number of allocations of the emitting thread. It is unknown for a JVM.
    pub(crate) allocations: Option<f64>,
    /// Number of bytes that the emitting thread has allocated.
    pub(crate) bytes: f64,
}

pub(crate) fn timed(work: impl FnOnce()) -> Repetition {
    let before = Allocations::of_this_thread();
    let start = Instant::now();
    work();
    let elapsed = start.elapsed();
    let allocated = Allocations::of_this_thread().since(before);
    Repetition {
        nanos: elapsed.as_nanos() as f64,
        allocations: Some(allocated.count as f64),
        bytes: allocated.bytes as f64,
    }
}

/// Repeats `repeat` until `budget` is used up, at least once.
pub(crate) fn turn(
    budget: Duration,
    mut repeat: impl FnMut() -> Result<Repetition>,
) -> Result<Vec<Repetition>> {
    let budget_nanos = budget.as_nanos() as f64;
    let mut done = Vec::new();
    let mut nanos = 0.0;
    while done.is_empty() || (nanos < budget_nanos && done.len() < REPETITIONS_MAX as usize) {
        let repetition = repeat()?;
        nanos += repetition.nanos;
        done.push(repetition);
    }
    Ok(done)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurements {
    /// Nanoseconds of one repetition.
    pub(crate) nanos: Summary,
    pub(crate) allocations: Option<f64>,
    /// Number of bytes allocated in one repetition.
    pub(crate) bytes: f64,
}

impl Measurements {
    /// Returns the medians, or `None` if there are no repetitions.
    pub(crate) fn of(repetitions: &[Repetition]) -> Option<Self> {
        let nanos = Summary::of(repetitions.iter().map(|one| one.nanos))?;
        let allocations = Summary::of(repetitions.iter().filter_map(|one| one.allocations));
        let bytes = Summary::of(repetitions.iter().map(|one| one.bytes))?;
        Some(Self {
            nanos,
            allocations: allocations.map(|summary| summary.median),
            bytes: bytes.median,
        })
    }

    /// Returns the items per second. `items` is the number of items in one repetition.
    pub(crate) fn rate(&self, items: u32) -> Summary {
        self.nanos.inverse(f64::from(items) * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_has_at_least_one_repetition_and_ends_with_budget() {
        let check = |budget_nanos, repetitions| {
            let one = Repetition {
                nanos: 10.0,
                ..Repetition::default()
            };
            let done = turn(Duration::from_nanos(budget_nanos), || Ok(one)).unwrap();
            assert_eq!(done.len(), repetitions);
        };
        check(0, 1);
        check(10, 1);
        check(25, 3);
        check(u64::MAX, REPETITIONS_MAX as usize);
    }
}
