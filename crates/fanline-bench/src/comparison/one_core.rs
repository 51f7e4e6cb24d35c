//! A server and the generator on one core, so that no other core must be woken.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::servers::process::Server;

/// Restricts a server, the calling thread, and the threads that it starts to one core. The server was started
/// on all cores, so it has its usual number of threads. When this value is dropped, the calling thread may
/// run on all cores again.
pub(crate) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    /// Moves the server and the generator to the first core.
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
        // The thread had this affinity before, so the call succeeds. If it failed, the later rows would be
        // visibly slower.
        let _ = sched_setaffinity(None, &self.before);
    }
}
