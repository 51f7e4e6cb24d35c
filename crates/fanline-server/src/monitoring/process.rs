//! What this process takes from its machine, where the system tells (Linux), else 0.

use std::fs;
use std::time::{Duration, Instant};

/// Linux tells processor time in hundredths of a second on every architecture.
const TICK_MILLIS: u64 = 10;
/// Over at least this long the load is measured.
const LOAD_TIME_MIN: Duration = Duration::from_secs(1);

/// Bytes of memory in use.
pub(super) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    resident_kib(&status).unwrap_or(0) * 1024
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Measures the processor load between two looks.
pub(super) struct CpuMeter {
    looked_at: Instant,
    used: Duration,
    percent: f64,
}

impl CpuMeter {
    pub(super) fn start() -> Self {
        CpuMeter {
            looked_at: Instant::now(),
            used: processor_time(),
            percent: 0.0,
        }
    }

    /// Per cent of one core since the last look, in tenths; looks at most once a second.
    pub(super) fn percent(&mut self) -> f64 {
        let passed = self.looked_at.elapsed();
        if passed >= LOAD_TIME_MIN {
            let used = processor_time();
            let load = used.saturating_sub(self.used).div_duration_f64(passed);
            self.percent = (load * 1000.0).round() / 10.0;
            self.looked_at += passed;
            self.used = used;
        }
        self.percent
    }
}

/// How long processors have worked for this process.
pub(super) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = processor_ticks(&stat).unwrap_or(0);
    Duration::from_millis(ticks.saturating_mul(TICK_MILLIS))
}

fn processor_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name, which may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 1 0 5 6 7";
        assert_eq!(processor_ticks(stat), Some(42));
        assert_eq!(processor_ticks(""), None);
        assert_eq!(resident_kib("Name:\tx\nVmRSS:\t    1234 kB\n"), Some(1234));
        assert_eq!(resident_kib("Name:\tx\n"), None);
    }
}
