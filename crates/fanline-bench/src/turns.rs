//! The measurement of systems in alternating turns, so that drift of the machine affects all of them equally.

use std::time::{Duration, Instant};

use crate::allocations::Allocations;
use crate::report::Report;
use crate::report::metric::Summary;

/// Maximum number of repetitions in a turn. More would not improve the result, even if a repetition is short.
pub(crate) const REPETITIONS_MAX: u32 = 2000;

/// Number and length of turns.
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
    /// Stores the plan in a report.
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

/// The result of one repetition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repetition {
    pub(crate) nanos: f64,
    /// Number of allocations of the emitting thread. It is unknown for a JVM.
    pub(crate) allocations: Option<f64>,
    /// Number of bytes that the emitting thread has allocated.
    pub(crate) bytes: f64,
}

/// Times one repetition and counts its allocations.
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
///
/// # Errors
///
/// Returns the first error of a repetition.
pub(crate) fn turn(
    budget: Duration,
    mut repeat: impl FnMut() -> anyhow::Result<Repetition>,
) -> anyhow::Result<Vec<Repetition>> {
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

/// The medians of a system's repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurements {
    /// Nanoseconds of one repetition.
    pub(crate) nanos: Summary,
    /// Number of allocations in one repetition.
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
