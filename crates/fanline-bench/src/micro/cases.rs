//! The definition of a micro-benchmark.

use crate::report::metric::Metric;
use crate::report::target::Bound;

/// A closure that runs an operation at least the given number of times, and returns the actual number.
pub(super) type Work = dyn FnMut(u64) -> u64;

/// A measured case.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The unit that is counted, such as a message.
    pub(super) unit: &'static str,
    pub(super) targets: &'static [Target],
    /// Builds the data, and returns the work.
    pub(super) prepare: fn() -> Box<Work>,
}

/// Returns a case.
pub(super) const fn case(
    name: &'static str,
    unit: &'static str,
    targets: &'static [Target],
    prepare: fn() -> Box<Work>,
) -> Case {
    Case {
        name,
        unit,
        targets,
        prepare,
    }
}

/// Words in the names of cases, and the part of the engine that these cases measure. All other cases belong to
/// the matcher.
const PARTS: &[(&str, &str)] = &[
    ("match", "Matcher"),
    ("parse", "Parser"),
    ("shard", "Shard"),
    ("store", "Store"),
];

impl Case {
    /// Returns the part of the engine that the case measures.
    pub(super) fn part(&self) -> &'static str {
        let is_of = |part: &&(&str, &str)| self.name.contains(part.0);
        PARTS.iter().find(is_of).map_or("Matcher", |part| part.1)
    }
}

/// A target for a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// Minimum rate on one core, in millions of operations per second.
    MillionsAtLeast(f64),
    NanosAtMost(f64),
    /// No allocation in any sample.
    NoAllocation,
}

impl Target {
    /// Returns the bound and its unit.
    pub(super) fn bound(self) -> (Bound, Metric) {
        match self {
            Self::MillionsAtLeast(millions) => (Bound::AtLeast(millions * 1e6), Metric::Rate),
            Self::NanosAtMost(nanos) => (Bound::AtMost(nanos), Metric::Operation),
            Self::NoAllocation => (Bound::AtMost(0.0), Metric::Allocations),
        }
    }
}

/// A small random number generator (xorshift64*). Its numbers are the same in each run.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}
