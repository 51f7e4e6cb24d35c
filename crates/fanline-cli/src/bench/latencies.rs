//! Latencies of requests.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::Failure;

/// Longer latencies are recorded as this one.
const LATENCY_MAX: Duration = Duration::from_secs(3600);
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// A histogram of latencies.
pub(super) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(super) fn new() -> Result<Self, Failure> {
        Histogram::new_with_max(nanos(LATENCY_MAX), DIGITS)
            .map(Latencies)
            .map_err(|error| Failure::Error(error.to_string()))
    }

    pub(super) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(nanos(latency));
    }

    pub(super) fn merge(&mut self, other: &Latencies) {
        self.0 += &other.0;
    }

    /// Returns the latency that `percent` of all samples do not exceed; zero without samples.
    pub(super) fn percentile(&self, percent: u8) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(f64::from(percent) / 100.0))
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
