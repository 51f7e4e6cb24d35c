//! Open descriptors of a process, from `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// Number of open descriptors of a process at one point in time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Descriptors {
    pub(crate) sockets: u64,
    /// Files, pipes, timers, and other kinds.
    pub(crate) others: u64,
}

impl Descriptors {
    /// Reads the descriptors of process `pid`.
    pub(crate) fn read(pid: u32) -> Result<Self> {
        let mut open = Self::default();
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            // A descriptor may be closed between the listing and the read.
            let Ok(target) = fs::read_link(entry.context("/proc")?.path()) else {
                continue;
            };
            match target.to_string_lossy().starts_with("socket:") {
                true => open.sockets += 1,
                false => open.others += 1,
            }
        }
        Ok(open)
    }
}
