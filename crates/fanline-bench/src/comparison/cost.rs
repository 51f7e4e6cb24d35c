//! The CPU cost of a measurement, for the server and the generator.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::report::metric::{Metric, Sample};
use crate::servers::cpu::CpuClock;
use crate::servers::process::Server;

/// CPU time of the server and the generator at the start of a measurement.
pub(crate) struct Cost {
    server: CpuClock,
    generator: Duration,
}

impl Cost {
    /// Starts measuring.
    pub(crate) fn start(server: &Server) -> Result<Self> {
        Ok(Self {
            server: server.cpu()?,
            generator: own_cpu()?,
        })
    }

    /// Returns a sample with the cost of `messages` messages since the start.
    pub(crate) fn end(self, server: &Server, messages: u64) -> Result<Sample> {
        ensure!(messages > 0, "no message in the whole run");
        let generator_nanos = (own_cpu()? - self.generator).as_nanos() as f64;
        let server_nanos = server.cpu()?.nanos_since(&self.server) as f64;
        let mut sample = Sample::default();
        sample.set(Metric::ServerCpu, server_nanos / messages as f64);
        sample.set(Metric::GeneratorCpu, generator_nanos / messages as f64);
        Ok(sample)
    }
}

/// Returns the CPU time of this process so far.
fn own_cpu() -> Result<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(time.try_into()?)
}
