//! Measurements that several comparisons have, with the CPU cost for the server and the generator.

use std::iter::repeat_with;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::generator::Outcome;
use crate::generator::receive::Verify;
use crate::generator::requests;
use crate::generator::throughput::Fixture;
use crate::report::metric::{Metric, Sample};
use crate::servers::cpu::CpuClock;
use crate::servers::process::Server;

/// Length of the warm-up, which fills caches and lets the server adapt.
pub(crate) const WARM_UP: Duration = Duration::from_millis(200);

/// Time after which the server treats connections as idle. nats-server sends a first PING after about two
/// seconds.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);

/// CPU time of the servers and the generator at the start of a measurement.
pub(crate) struct Cost {
    servers: Vec<CpuClock>,
    generator: Duration,
}

impl Cost {
    pub(crate) fn start(servers: &[Server]) -> Result<Self> {
        let clocks = servers.iter().map(Server::cpu);
        Ok(Self {
            servers: clocks.collect::<Result<_>>()?,
            generator: own_cpu()?,
        })
    }

    /// Returns a sample with the cost of `messages` messages since the start, and the peak memory. Servers that have
    /// started in the meantime come last.
    pub(crate) fn end<'a>(
        self,
        servers: impl IntoIterator<Item = &'a Server>,
        messages: u64,
    ) -> Result<Sample> {
        ensure!(messages > 0, "no message in the whole run");
        let generator_nanos = (own_cpu()? - self.generator).as_nanos() as f64;
        let (mut server_nanos, mut peak) = (0.0, 0.0);
        let new = repeat_with(CpuClock::default);
        for (server, before) in servers.into_iter().zip(self.servers.into_iter().chain(new)) {
            server_nanos += server.cpu()?.nanos_since(&before) as f64;
            peak += server.memory()?.peak as f64;
        }
        let mut sample = Sample::default();
        sample.set(Metric::ServerCpu, server_nanos / messages as f64);
        sample.set(Metric::GeneratorCpu, generator_nanos / messages as f64);
        sample.set(Metric::PeakMemory, peak);
        Ok(sample)
    }

    /// Returns a sample with the cost, the rate, and the latency of a run since the start.
    pub(crate) fn of(self, servers: &[Server], outcome: &Outcome) -> Result<Sample> {
        let mut sample = self.end(servers, outcome.messages)?;
        sample.set_rate(outcome.messages, outcome.elapsed);
        if let Some(nanos) = &outcome.latency {
            sample.set_latency(nanos);
        }
        Ok(sample)
    }
}

fn own_cpu() -> Result<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(time.try_into()?)
}

/// Measures the messages of a topology at full speed, for about `duration`.
pub(crate) fn throughput(
    servers: &[Server],
    fixture: &Fixture,
    duration: Duration,
) -> Result<Sample> {
    let chunks = fixture.calibrate(duration)?;
    let cost = Cost::start(servers)?;
    cost.of(servers, &fixture.burst(chunks, Verify::Tail)?)
}

pub(crate) fn requests(
    servers: &[Server],
    fixture: &requests::Fixture,
    duration: Duration,
) -> Result<Sample> {
    fixture.while_served(|| {
        fixture.ask(WARM_UP)?;
        let cost = Cost::start(servers)?;
        cost.of(servers, &fixture.ask(duration)?)
    })
}

/// Measures the memory of `count` connections, which complete the handshake, have no subscription, and then
/// send nothing.
pub(crate) fn idle<T>(
    server: &Server,
    count: usize,
    open: impl Fn(usize) -> Result<T>,
) -> Result<Sample> {
    let before = server.memory()?.resident as f64;
    let numbered = |index| open(index).with_context(|| format!("at connection {index} of {count}"));
    let connections = (0..count).map(numbered).collect::<Result<Vec<_>>>()?;
    thread::sleep(SETTLE);
    let memory = server.memory()?;
    let after = memory.resident as f64;
    let mut sample = Sample::default();
    sample.set(Metric::IdleMemory, after);
    let each = (after - before) / connections.len() as f64;
    sample.set(Metric::ConnectionMemory, each);
    sample.set(Metric::PeakMemory, memory.peak as f64);
    Ok(sample)
}
