//! Resources of this process as reported by Linux; 0 elsewhere.

use std::fs;
use std::time::{Duration, Instant};

/// Linux reports processor time in hundredths of a second on every architecture.
const TICK_MILLIS: u64 = 10;
/// The shortest interval between two measurements of the load.
const LOAD_TIME_MIN: Duration = Duration::from_secs(1);

/// Memory of this process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Resident memory.
    pub(super) resident_bytes: u64,
    /// Resident memory that is not mapped from a file.
    pub(super) anonymous_bytes: u64,
    /// Private writable memory, resident or not.
    pub(super) data_bytes: u64,
    /// The stack of the main thread.
    pub(super) stack_bytes: u64,
    /// The address space.
    pub(super) virtual_bytes: u64,
}

impl Memory {
    fn parse(status: &str) -> Self {
        let bytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
            kib.map_or(0, |kib: u64| kib.saturating_mul(1024))
        };
        Memory {
            resident_bytes: bytes("VmRSS:"),
            anonymous_bytes: bytes("RssAnon:"),
            data_bytes: bytes("VmData:"),
            stack_bytes: bytes("VmStk:"),
            virtual_bytes: bytes("VmSize:"),
        }
    }
}

pub(super) fn memory() -> Memory {
    Memory::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Returns the resident memory in bytes.
pub(super) fn resident_bytes() -> u64 {
    memory().resident_bytes
}

/// Measures the processor load between two calls.
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

    /// Returns the percentage of one core since the last measurement, rounded to tenths. Measures at most once
    /// a second.
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

/// Returns the processor time of this process.
pub(super) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = processor_ticks(&stat).unwrap_or(0);
    Duration::from_millis(ticks.saturating_mul(TICK_MILLIS))
}

fn processor_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name, which may contain any characters.
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
    fn proc_files_are_parsed() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 1 0 5 6 7";
        assert_eq!(processor_ticks(stat), Some(42));
        assert_eq!(processor_ticks(""), None);
        let status = "Name:\tx\nVmSize:\t 9 kB\nVmRSS:\t    1234 kB\nVmStk:\t132 kB\n";
        let expected = Memory {
            resident_bytes: 1234 * 1024,
            stack_bytes: 132 * 1024,
            virtual_bytes: 9 * 1024,
            ..Memory::default()
        };
        assert_eq!(Memory::parse(status), expected);
        assert_eq!(Memory::parse("Name:\tx\n"), Memory::default());
    }
}
