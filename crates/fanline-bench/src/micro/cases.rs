//! The definition of a micro-benchmark.

use super::sampling::Measurements;

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
    pub(super) fn describe(self) -> String {
        match self {
            Self::MillionsAtLeast(millions) => format!("≥ {millions} M/s"),
            Self::NanosAtMost(nanos) => format!("≤ {nanos} ns"),
            Self::NoAllocation => "0 B".to_owned(),
        }
    }

    pub(super) fn is_met(self, results: &Measurements) -> bool {
        match self {
            Self::MillionsAtLeast(millions) => 1e3 / results.nanos.median >= millions,
            Self::NanosAtMost(nanos) => results.nanos.median <= nanos,
            Self::NoAllocation => results.allocations == 0.0,
        }
    }
}

/// A case and its result.
pub(super) struct Result {
    pub(super) case: Case,
    pub(super) results: Measurements,
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
