//! The schedule of a run.

use std::time::Duration;

/// Length of a run with `--quick`, in minutes.
pub(super) const QUICK_MINUTES: u64 = 2;
/// Share of the run in which restarts occur.
const TROUBLE_SHARE: f64 = 0.4;
/// Maximum interval between two restarts.
const RESTART_INTERVAL_MAX: Duration = Duration::from_secs(600);
/// Number of restarts in a short run.
const RESTARTS_MIN: u32 = 3;
/// Minimum time after the last restart until memory is observed. In this time caches and buffers reach their
/// final size.
const SETTLING_MIN: Duration = Duration::from_secs(30);
/// In a long run, the time after the last restart until memory is observed, as a share of the run.
const SETTLING_SHARE: f64 = 0.1;
/// Maximum number of samples in a plot.
const SAMPLES_MAX: u32 = 600;
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Number of descriptors that are reserved for other loads, files, and the programs themselves.
const DESCRIPTORS_RESERVED: u64 = 512;

/// Length and events of the run. Times are relative to its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) length: Duration,
    /// Interval between two restarts in the first part of the run.
    pub(super) restart_interval: Duration,
    /// Time of the last possible restart.
    pub(super) trouble_until: Duration,
    /// Time from which memory and descriptors are observed.
    pub(super) steady_from: Duration,
    pub(super) sample_interval: Duration,
    /// Number of permanent connections.
    pub(super) connections: usize,
    /// Requested number of permanent connections.
    wanted: usize,
    descriptors_max: Option<u64>,
}

impl Plan {
    pub(super) fn new(minutes: u64, wanted: usize, descriptors_max: Option<u64>) -> Self {
        let length = Duration::from_secs(minutes * 60);
        let trouble_until = length.mul_f64(TROUBLE_SHARE);
        let room = descriptors_max.map(|max| max.saturating_sub(DESCRIPTORS_RESERVED));
        let room = room.and_then(|room| usize::try_from(room).ok());
        Self {
            length,
            restart_interval: (trouble_until / RESTARTS_MIN).min(RESTART_INTERVAL_MAX),
            trouble_until,
            steady_from: trouble_until + length.mul_f64(SETTLING_SHARE).max(SETTLING_MIN),
            sample_interval: (length / SAMPLES_MAX).max(SAMPLE_INTERVAL_MIN),
            connections: room.map_or(wanted, |room| wanted.min(room)),
            wanted,
            descriptors_max,
        }
    }

    /// Returns a note if there are fewer connections than requested.
    pub(super) fn shortfall(&self) -> Option<String> {
        let max = self.descriptors_max?;
        (self.connections < self.wanted).then(|| {
            format!(
                "{} live connections instead of {}: a process may have {max} descriptors (ulimit -Hn) here",
                self.connections, self.wanted
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_run_has_restarts_and_steady_part() {
        for minutes in [2, 3, 10, 60, 1440] {
            let plan = Plan::new(minutes, 10, None);
            assert!(plan.restart_interval * RESTARTS_MIN <= plan.trouble_until);
            assert!(plan.trouble_until < plan.steady_from);
            assert!(
                plan.length - plan.steady_from >= plan.length / 4,
                "{plan:?}"
            );
        }
    }

    #[test]
    fn descriptor_limit_reduces_connections_with_a_note() {
        let check = |descriptors_max, connections| {
            let plan = Plan::new(2, 10_000, descriptors_max);
            assert_eq!(plan.connections, connections);
            assert_eq!(plan.shortfall().is_some(), connections < 10_000);
        };
        check(None, 10_000);
        check(Some(1 << 20), 10_000);
        check(Some(4096), 4096 - 512);
        check(Some(100), 0);
    }
}
