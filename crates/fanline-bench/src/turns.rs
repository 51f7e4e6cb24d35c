//! Systems that are measured in turns, one after the other and again, so that what drifts on the
//! machine meets all alike.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::allocations::Allocations;
use crate::report::metric::Summary;

/// Repetitions in one turn at most: more would tell nothing new of a short one.
pub(crate) const REPETITIONS_MAX: u32 = 2000;

/// How long a system is measured, and how often.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    /// Rounds; in each, every system has one turn.
    pub(crate) rounds: u32,
    /// Measured time that a turn aims at; it has one repetition at least.
    pub(crate) turn: Duration,
    /// The same before the first round, for systems that are compiled ahead.
    pub(crate) warm_up: Duration,
    /// The same for those that are compiled while they run.
    pub(crate) warm_up_jvm: Duration,
}

/// One repetition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repetition {
    pub(crate) nanos: f64,
    /// How often the emitting thread has allocated; a JVM does not say.
    pub(crate) allocations: Option<f64>,
    /// How many bytes it has allocated.
    pub(crate) bytes: f64,
}

/// Times one repetition and counts what it allocates.
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

/// Repeats until `budget` is used up; at least once.
///
/// # Errors
///
/// The first that a repetition gives.
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

/// What a system's repetitions came to: medians.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figures {
    /// Of one repetition.
    pub(crate) nanos: Summary,
    /// In one repetition.
    pub(crate) allocations: Option<f64>,
    /// In one repetition.
    pub(crate) bytes: f64,
    pub(crate) repetitions: usize,
}

impl Figures {
    /// None of no repetitions.
    pub(crate) fn of(repetitions: &[Repetition]) -> Option<Self> {
        let nanos = Summary::of(repetitions.iter().map(|one| one.nanos))?;
        let allocations = Summary::of(repetitions.iter().filter_map(|one| one.allocations));
        let bytes = Summary::of(repetitions.iter().map(|one| one.bytes))?;
        Some(Self {
            nanos,
            allocations: allocations.map(|summary| summary.median),
            bytes: bytes.median,
            repetitions: repetitions.len(),
        })
    }

    /// Items in a second, when a repetition has `items`.
    pub(crate) fn rate(&self, items: u32) -> f64 {
        f64::from(items) * 1e9 / self.nanos.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_one_repetition_at_least_and_ends_with_its_budget() {
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
