//! A histogram of latencies whose buckets grow with the value: fixed size, error of at most 1.6 %.

use std::time::Duration;

/// Buckets per power of two.
const STEPS: usize = 64;
/// Bits that select a bucket within a power of two.
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Buckets for all 64-bit numbers of nanoseconds.
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// Counts of latencies.
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Histogram {
            counts: vec![0; BUCKETS],
            total: 0,
            max: Duration::ZERO,
        }
    }

    pub(super) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.max = self.max.max(latency);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns the latency that `percent` of all samples do not exceed; zero without samples.
    pub(super) fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(lowest(at)).min(self.max);
            }
        }
        Duration::ZERO
    }

    pub(super) fn max(&self) -> Duration {
        self.max
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - STEP_BITS).saturating_sub(nanos.leading_zeros() + 1);
    let within = nanos >> shift;
    usize::try_from(u64::from(shift) * STEPS as u64 + within)
        .unwrap_or(BUCKETS - 1)
        .min(BUCKETS - 1)
}

/// Returns the lowest number of a bucket, the inverse of [`bucket`].
fn lowest(at: usize) -> u64 {
    if at < 2 * STEPS {
        return at as u64;
    }
    let shift = at / STEPS - 1;
    ((at - shift * STEPS) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for nanos in (0..100_000).chain([1 << 40, u64::MAX]) {
            let at = bucket(nanos);
            assert!(at >= last && lowest(at) <= nanos, "{nanos}: bucket {at}");
            assert!(
                nanos - lowest(at) <= nanos / STEPS as u64,
                "{nanos}: lowest {}",
                lowest(at)
            );
            last = at;
        }
    }

    #[test]
    fn percentiles_are_accurate() {
        let mut histogram = Histogram::new();
        for micros in 1..=100 {
            histogram.record(Duration::from_nanos(micros));
        }
        assert_eq!(histogram.percentile(50), Duration::from_nanos(50));
        assert_eq!(histogram.percentile(99), Duration::from_nanos(99));
        assert_eq!(histogram.max(), Duration::from_nanos(100));
        assert_eq!(Histogram::new().percentile(50), Duration::ZERO);
    }
}
