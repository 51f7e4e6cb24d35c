//! CPU time and memory of a process, from `/proc`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

/// CPU time of a process at one point in time; the default is that before its start.
#[derive(Default)]
pub(crate) struct CpuClock {
    /// CPU time of each thread in nanoseconds. The times are exact, but do not include threads that have
    /// ended.
    threads: BTreeMap<u32, u64>,
    /// CPU time of the whole process in clock ticks, in user and system mode. It includes threads that have
    /// ended.
    ticks: u64,
}

impl CpuClock {
    pub(crate) fn read(pid: u32) -> Result<Self> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            // A thread may end between the listing and the read.
            let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else {
                continue;
            };
            let thread = entry.file_name().to_string_lossy().parse()?;
            let nanos = text.split(' ').next().context("empty schedstat")?;
            threads.insert(thread, nanos.parse()?);
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may contain spaces. `utime` and `stime` are the fields 14 and 15.
        let (_, fields) = stat.rsplit_once(") ").context("stat without a name")?;
        let times = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
        let ticks = times.sum::<Result<u64, _>>()?;
        Ok(Self { threads, ticks })
    }

    /// Returns the nanoseconds since `earlier`. They are the scheduler's exact values, unless a thread ended
    /// in between. In that case they are based on clock ticks of 10 ms.
    pub(crate) fn nanos_since(&self, earlier: &Self) -> u64 {
        let tick_nanos = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let ended = earlier
            .threads
            .keys()
            .any(|thread| !self.threads.contains_key(thread));
        if ended {
            (self.ticks - earlier.ticks) * tick_nanos
        } else {
            self.threads.values().sum::<u64>() - earlier.threads.values().sum::<u64>()
        }
    }
}

pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

impl Memory {
    pub(crate) fn read(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.and_then(|rest| rest.split_whitespace().next());
            Ok(kibibytes.context("no such field")?.parse::<u64>()? * 1024)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
        })
    }
}
