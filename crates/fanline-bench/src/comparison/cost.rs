//! Measurements that several comparisons have, with the CPU cost for the server and the generator.

use std::slice;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::generator::receive::Verify;
use crate::generator::requests::{self, Answers};
use crate::generator::throughput::{Burst, Fixture};
use crate::report::metric::{Metric, Sample};
use crate::servers::cpu::CpuClock;
use crate::servers::process::Server;

/// Length of the warm-up, which fills caches and lets the server adapt.
pub(crate) const WARM_UP: Duration = Duration::from_millis(200);

/// Time after which the server treats connections as idle. nats-server sends a first PING after about two
/// seconds.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);

/// The servers whose cost is counted.
pub(crate) trait Counted {
    /// Returns the servers.
    fn servers(&self) -> &[Server];
}

impl Counted for Server {
    fn servers(&self) -> &[Server] {
        slice::from_ref(self)
    }
}

impl Counted for [Server] {
    fn servers(&self) -> &[Server] {
        self
    }
}

/// CPU time of the servers and the generator at the start of a measurement.
pub(crate) struct Cost {
    servers: Vec<CpuClock>,
    generator: Duration,
}

impl Cost {
    pub(crate) fn start(counted: &(impl Counted + ?Sized)) -> Result<Self> {
        let clocks = counted.servers().iter().map(Server::cpu);
        Ok(Self {
            servers: clocks.collect::<Result<_>>()?,
            generator: own_cpu()?,
        })
    }

    /// Returns a sample with the cost of `messages` messages since the start, and the peak memory.
    pub(crate) fn end(self, counted: &(impl Counted + ?Sized), messages: u64) -> Result<Sample> {
        ensure!(messages > 0, "no message in the whole run");
        let generator_nanos = (own_cpu()? - self.generator).as_nanos() as f64;
        let (mut server_nanos, mut peak) = (0.0, 0.0);
        for (server, before) in counted.servers().iter().zip(&self.servers) {
            server_nanos += server.cpu()?.nanos_since(before) as f64;
            peak += server.memory()?.peak as f64;
        }
        let mut sample = Sample::default();
        sample.set(Metric::ServerCpu, server_nanos / messages as f64);
        sample.set(Metric::GeneratorCpu, generator_nanos / messages as f64);
        sample.set(Metric::PeakMemory, peak);
        Ok(sample)
    }

    /// Returns a sample with cost, rate, and latency of the requests since the start.
    pub(crate) fn of_answers(
        self,
        counted: &(impl Counted + ?Sized),
        answers: &Answers,
    ) -> Result<Sample> {
        let mut sample = self.end(counted, answers.requests)?;
        sample.set_rate(answers.requests, answers.elapsed);
        sample.set_latency(&answers.latency);
        Ok(sample)
    }

    /// Returns a sample with cost and rate of the messages since the start.
    pub(crate) fn of_burst(
        self,
        counted: &(impl Counted + ?Sized),
        burst: &Burst,
    ) -> Result<Sample> {
        let mut sample = self.end(counted, burst.messages)?;
        sample.set_rate(burst.messages, burst.elapsed);
        Ok(sample)
    }
}

/// Returns the CPU time of this process so far.
fn own_cpu() -> Result<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(time.try_into()?)
}

/// Measures the messages of a topology at full speed, for about `duration`.
pub(crate) fn throughput(
    server: &(impl Counted + ?Sized),
    fixture: &Fixture,
    duration: Duration,
) -> Result<Sample> {
    let chunks = fixture.calibrate(duration)?;
    let cost = Cost::start(server)?;
    cost.of_burst(server, &fixture.burst(chunks, Verify::Tail)?)
}

/// Measures requests and their replies for `duration`.
pub(crate) fn requests(
    server: &(impl Counted + ?Sized),
    fixture: &requests::Fixture,
    duration: Duration,
) -> Result<Sample> {
    fixture.while_served(|| {
        fixture.ask(WARM_UP)?;
        let cost = Cost::start(server)?;
        cost.of_answers(server, &fixture.ask(duration)?)
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
