//! One shape on one fresh server process.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use super::shapes::Work;
use crate::generator::receive::Verify;
use crate::generator::throughput::{Fixture, Topology};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;
use crate::servers::process::Server;

/// Starts `program`, puts `work` on it for about `duration`, and ends it.
pub(crate) fn measure(program: &Program, work: Work, duration: Duration) -> Result<Sample> {
    let server = Server::start(program)?;
    let mut sample = match work {
        Work::Throughput(topology) => throughput(&server, topology, duration)?,
    };
    sample.set(Metric::PeakMemory, server.memory()?.peak as f64);
    Ok(sample)
}

fn throughput(server: &Server, topology: Topology, duration: Duration) -> Result<Sample> {
    let fixture = Fixture::open(server.address(), topology)?;
    let chunks = fixture.calibrate(duration)?;
    let cost = Cost::start(server)?;
    let burst = fixture.burst(chunks, Verify::Tail)?;
    let mut sample = cost.end(server, burst.messages)?;
    let rate = burst.messages as f64 / burst.elapsed.as_secs_f64();
    sample.set(Metric::Rate, rate);
    Ok(sample)
}

/// CPU time of both sides over one measurement.
struct Cost {
    server: crate::servers::cpu::CpuClock,
    generator: Duration,
}

impl Cost {
    fn start(server: &Server) -> Result<Self> {
        Ok(Self {
            server: server.cpu()?,
            generator: own_cpu()?,
        })
    }

    /// A sample that holds what `messages` messages have cost since.
    fn end(self, server: &Server, messages: u64) -> Result<Sample> {
        ensure!(messages > 0, "not one message in the whole run");
        let generator_nanos = (own_cpu()? - self.generator).as_nanos() as f64;
        let server_nanos = server.cpu()?.nanos_since(&self.server) as f64;
        let mut sample = Sample::default();
        sample.set(Metric::ServerCpu, server_nanos / messages as f64);
        sample.set(Metric::GeneratorCpu, generator_nanos / messages as f64);
        Ok(sample)
    }
}

/// CPU time of this process so far.
fn own_cpu() -> Result<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(time.try_into()?)
}
