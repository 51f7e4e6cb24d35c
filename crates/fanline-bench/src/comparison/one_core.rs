//! Server and generator on one core, so that no other core must be woken.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::servers::process::Server;

/// Restricts the calling thread, the threads that it starts, and a server to one core. The server started on
/// all cores, so it has its usual number of threads. Dropping this releases the generator.
pub(crate) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    /// Moves both to the core.
    pub(crate) fn share_with(server: &Server) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let first = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core));
        let mut one = CpuSet::new();
        one.set(first.context("no core to run on")?);
        server.pin(&one)?;
        sched_setaffinity(None, &one)?;
        Ok(Self { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // The original affinity was allowed before. If restoring it fails, later rows show it.
        let _ = sched_setaffinity(None, &self.before);
    }
}
