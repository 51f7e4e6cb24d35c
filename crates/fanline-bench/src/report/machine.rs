//! The machine on which a measurement runs.

use std::fmt;
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// Properties of the machine that affect results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
}

impl Machine {
    pub(crate) fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "model name").then(|| value.trim().to_owned())
        });
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cores: thread::available_parallelism().map_or(0, usize::from),
            cpu: model.unwrap_or_else(|| "unknown CPU".to_owned()),
            kernel: kernel.trim().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, cpu, kernel } = self;
        write!(text, "{cores} cores, {cpu}, Linux {kernel}")
    }
}
