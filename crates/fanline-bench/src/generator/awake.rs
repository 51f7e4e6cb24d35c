//! Busy cores. With them, a measured latency does not include the time to wake an idle core.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::{hint, thread};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::servers::process::Guarded;

/// The hidden subcommand of this program that spins on all cores.
pub(crate) const SPIN_COMMAND: &str = "spin";

/// Keeps every core busy at the lowest priority until the result is dropped.
pub(crate) fn keep() -> Result<Guarded> {
    // Under SCHED_IDLE a spinning thread yields as soon as another thread can run. With `nice`, it may finish
    // its time slice first.
    let mut command = Command::new("chrt");
    command
        .args(["--idle", "0"])
        .arg(env::current_exe()?)
        .arg(SPIN_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    Guarded::spawn(&mut command).context("cannot start the spinner")
}

/// Spins on every core, with one pinned thread per core, until standard input is closed. The parent process
/// holds the other end, so this process ends with it, even if the parent is killed.
pub(crate) fn spin() -> Result<()> {
    let allowed = sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    for core in cores {
        thread::spawn(move || {
            let mut one = CpuSet::new();
            one.set(core);
            // Without pinning, two spinning threads may share a core, and another core sleeps.
            if let Err(error) = sched_setaffinity(None, &one) {
                eprintln!("core {core} is not kept awake: {error}");
                return;
            }
            loop {
                hint::spin_loop();
            }
        });
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
