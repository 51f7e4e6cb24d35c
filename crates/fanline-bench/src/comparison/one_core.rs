//! Server and generator on one core, so that no other needs to be woken.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::servers::process::Server;

/// This thread, those that it starts, and a server, on one core. The server was started on all, so
/// it has as many threads as it always has. Dropping this lets go of the generator.
pub(crate) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    /// Moves both there.
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
        // It was allowed a moment ago; were it not any more, later rows would show it.
        let _ = sched_setaffinity(None, &self.before);
    }
}
