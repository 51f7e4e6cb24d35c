//! One shape on one fresh server process.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::shapes::Work;
use crate::generator::receive::Verify;
use crate::generator::requests::{self, Cores, Party};
use crate::generator::throughput::{Fixture, Topology};
use crate::generator::{awake, idle};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;
use crate::servers::cpu::CpuClock;
use crate::servers::process::Server;

/// Requests before the measurement, so that caches and the server's own adaptations are warm.
const WARM_UP: Duration = Duration::from_millis(200);

/// Time for idle connections to become idle in the server too: nats-server still sends a first PING
/// after about two seconds.
const SETTLE: Duration = Duration::from_secs(3);

/// Starts `program`, puts `work` on it for about `duration`, and ends it.
pub(crate) fn measure(program: &Program, work: Work, duration: Duration) -> Result<Sample> {
    let server = Server::start(program)?;
    let mut sample = match work {
        Work::Throughput(topology) => throughput(&server, topology, duration)?,
        Work::Requests(party) => requests(&server, party, duration)?,
        Work::Idle { connections } => idle(&server, connections)?,
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

fn requests(server: &Server, party: Party, duration: Duration) -> Result<Sample> {
    let fixture = requests::Fixture::open(server.address(), party)?;
    let _awake = match party.cores {
        Cores::Awake => Some(awake::keep()?),
        Cores::Unbound | Cores::One => None,
    };
    let _one_core = match party.cores {
        Cores::One => Some(OneCore::share_with(server)?),
        Cores::Unbound | Cores::Awake => None,
    };
    fixture.while_served(|| {
        fixture.ask(WARM_UP)?;
        let cost = Cost::start(server)?;
        let answers = fixture.ask(duration)?;
        let mut sample = cost.end(server, answers.requests)?;
        let rate = answers.requests as f64 / answers.elapsed.as_secs_f64();
        sample.set(Metric::Rate, rate);
        for (metric, quantile) in [
            (Metric::P50, 0.5),
            (Metric::P99, 0.99),
            (Metric::P999, 0.999),
        ] {
            sample.set(metric, answers.latency.value_at_quantile(quantile) as f64);
        }
        Ok(sample)
    })
}

fn idle(server: &Server, count: usize) -> Result<Sample> {
    let before = server.memory()?.resident as f64;
    let connections = idle::open(server.address(), count)?;
    thread::sleep(SETTLE);
    let after = server.memory()?.resident as f64;
    let mut sample = Sample::default();
    sample.set(Metric::IdleMemory, after);
    sample.set(
        Metric::ConnectionMemory,
        (after - before) / connections.len() as f64,
    );
    Ok(sample)
}

/// This thread, those that it starts, and a server, on one core. The server was started on all, so
/// it has as many threads as it always has. Dropping this lets go of the generator.
struct OneCore {
    before: CpuSet,
}

impl OneCore {
    fn share_with(server: &Server) -> Result<Self> {
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

/// CPU time of both sides over one measurement.
struct Cost {
    server: CpuClock,
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
