//! The measurement of an operation's cost by samples.

use std::time::{Duration, Instant};

use super::cases::Work;
use crate::allocations::Allocations;
use crate::report::metric::Summary;

/// Length of the warm-up before the first sample, in samples.
const WARM_UP_SAMPLES: u32 = 3;

/// The cost of one operation.
pub(super) struct Measurements {
    pub(super) nanos: Summary,
    /// Mean number of allocations over all samples. The field below is the mean number of bytes.
    pub(super) allocations: f64,
    pub(super) bytes: f64,
}

/// Measures `work` in `samples` samples of about `length`.
pub(super) fn measure(work: &mut Work, samples: u32, length: Duration) -> Measurements {
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
    Measurements {
        nanos: Summary::of(nanos.into_iter()).expect("at least one sample"),
        allocations: allocated.count as f64 / done as f64,
        bytes: allocated.bytes as f64 / done as f64,
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
