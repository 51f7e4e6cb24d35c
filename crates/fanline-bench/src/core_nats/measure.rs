//! The measurement of one kind of load (a *shape*) on one new server process.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::shapes::Work;
use crate::comparison::cost::Cost;
use crate::comparison::one_core::OneCore;
use crate::generator::receive::Verify;
use crate::generator::requests::{self, Cores, Party};
use crate::generator::throughput::{Fixture, Topology};
use crate::generator::{awake, idle};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;
use crate::servers::process::Server;

/// Length of the warm-up, which fills caches and lets the server adapt.
const WARM_UP: Duration = Duration::from_millis(200);

/// Time after which the server treats connections as idle. nats-server sends a first PING after about two
/// seconds.
const SETTLE: Duration = Duration::from_secs(3);

/// Starts `program`, runs `work` on it for about `duration`, and stops the server.
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
    sample.set_rate(burst.messages, burst.elapsed);
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
        sample.set_rate(answers.requests, answers.elapsed);
        sample.set_latency(&answers.latency);
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
