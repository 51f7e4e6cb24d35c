//! Durations of file syncs.

use std::time::Duration;

use serde::Serialize;

use crate::sync::{AtomicU64, Ordering};

/// The bound of the first bucket. Each following bound is twice as long.
const SHORTEST: Duration = Duration::from_micros(16);
/// Number of buckets. The last bucket has no bound. The bound of the bucket before it is about half a second.
pub(crate) const BUCKETS: usize = 17;

/// A histogram that the sync threads write and monitoring reads.
///
/// No decision depends on the counters, so Relaxed suffices.
#[derive(Default)]
pub(crate) struct SyncTimes {
    buckets: [AtomicU64; BUCKETS],
    micros: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SyncCounts {
    /// The number of syncs.
    pub(crate) count: u64,
    /// The total duration of the syncs in microseconds.
    pub(crate) micros: u64,
    /// The number of syncs for each bucket: syncs that took at most its [`bound`], and longer than the
    /// previous bound.
    pub(crate) buckets: [u64; BUCKETS],
}

/// Returns the bound of a bucket, or `None` for the last bucket.
pub(crate) fn bound(bucket: usize) -> Option<Duration> {
    let power = u32::try_from(bucket).ok()?;
    (bucket + 1 < BUCKETS).then(|| SHORTEST * (1 << power))
}

impl SyncTimes {
    pub(crate) fn record(&self, time: Duration) {
        let is_bound = |bucket: &usize| bound(*bucket).is_none_or(|bound| time <= bound);
        let bucket = (0..BUCKETS).find(is_bound).unwrap_or(BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> SyncCounts {
        let mut counts = SyncCounts {
            micros: self.micros.load(Ordering::Relaxed),
            ..SyncCounts::default()
        };
        for (count, bucket) in counts.buckets.iter_mut().zip(&self.buckets) {
            *count = bucket.load(Ordering::Relaxed);
            counts.count += *count;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_its_bucket() {
        for (micros, bucket) in [
            (0, 0),
            (16, 0),
            (17, 1),
            (32, 1),
            (500_000, 15),
            (524_288, 15),
            (524_289, 16),
            (60_000_000, 16),
        ] {
            let times = SyncTimes::default();
            times.record(Duration::from_micros(micros));
            let counts = times.counts();
            let at = counts.buckets.iter().position(|count| *count == 1);
            assert_eq!((at, counts.count), (Some(bucket), 1), "{micros}");
            assert_eq!(counts.micros, micros);
        }
        assert_eq!(bound(0), Some(SHORTEST));
        assert_eq!(bound(BUCKETS - 1), None);
    }
}
