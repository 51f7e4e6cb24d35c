//! `fanline-bench core`: core NATS, Fanline compared with nats-server.

use std::slice::from_ref;
use std::time::Duration;

use anyhow::Result;

use crate::comparison::cost;
use crate::comparison::{self, Case, Comparison, Shown, at_least, at_most, case};
use crate::generator::awake;
use crate::generator::connection::Connection;
use crate::generator::requests::{self, Cores, Party};
use crate::generator::side::Side;
use crate::generator::throughput::{Fixture, Topology};
use crate::report::metric::{Metric, Sample};
use crate::report::target::Limit;
use crate::servers::Program;
use crate::servers::process::{OneCore, Server};

const TITLE: &str = "Core NATS: Fanline beside nats-server";
const NOTE: &str = "In a fan-out every delivery counts.";

pub(crate) fn run(comparison: &Comparison) -> Result<()> {
    comparison.run(TITLE, SHAPES, &[NOTE], Vec::new(), |run, shape| {
        run.measure(shape, |program, duration| {
            measure(program, shape.work, duration)
        });
        Ok(())
    })
}

#[derive(Clone, Copy)]
pub(crate) enum Work {
    Throughput(Topology),
    Requests(Party),
    Idle { connections: usize },
}

impl comparison::Work for Work {
    fn shown(&self) -> Shown {
        match self {
            Work::Requests(party) if party.clients == 1 => {
                Shown::rate("Request and reply", "requests/s").headline(Metric::P50)
            }
            Work::Requests(_) => Shown::rate("Request and reply", "requests/s"),
            Work::Throughput(topology) if topology.subscribers > 1 => {
                Shown::rate("Throughput", "deliveries/s")
            }
            Work::Throughput(_) => Shown::rate("Throughput", "messages/s"),
            Work::Idle { .. } => {
                Shown::rate("Idle connections", "messages/s").headline(Metric::IdleMemory)
            }
        }
    }
}

/// The target for server CPU that every throughput shape has.
const CPU: Limit = at_most(Metric::ServerCpu, 0.4);

/// The targets of request and reply if cores must be woken.
const REQUEST_IDLE: &[Limit] = &[
    at_most(Metric::P50, 0.85),
    at_most(Metric::P99, 1.0),
    at_most(Metric::ServerCpu, 0.55),
];

/// The targets of request and reply if no core must be woken.
const REQUEST: &[Limit] = &[at_most(Metric::P50, 0.6), at_most(Metric::ServerCpu, 0.55)];

/// Returns a load in which every publisher publishes to every subscriber.
const fn all(publishers: usize, subscribers: usize, payload_bytes: usize) -> Work {
    Work::Throughput(Topology::new(publishers, subscribers, payload_bytes))
}

/// Returns a load of `count` publishers with one subscriber each.
const fn pairs(count: usize, payload_bytes: usize) -> Work {
    Work::Throughput(Topology {
        paired: true,
        ..Topology::new(count, count, payload_bytes)
    })
}

const fn one_request(cores: Cores) -> Work {
    Work::Requests(Party {
        cores,
        ..Party::one(128)
    })
}

const fn queue_group(in_flight: usize) -> Work {
    Work::Requests(Party {
        clients: 10,
        services: 2,
        in_flight,
        payload_bytes: 16,
        cores: Cores::Unbound,
    })
}

const IDLE: Work = Work::Idle {
    connections: 10_000,
};

/// Every kind of load (*shape*), in the order of the reports.
#[rustfmt::skip]
pub(crate) const SHAPES: &[Case<Work>] = &[
    case("publish-16", "publish only, 16 B", all(1, 0, 16), &[at_least(Metric::Rate, 4.0), CPU]),
    case("publish-128", "publish only, 128 B", all(1, 0, 128), &[at_least(Metric::Rate, 2.0), CPU]),
    case("1-1-16", "1 → 1, 16 B", all(1, 1, 16), &[at_least(Metric::Rate, 4.5), CPU]),
    case("1-1-128", "1 → 1, 128 B", all(1, 1, 128), &[CPU]),
    case("1-1-16k", "1 → 1, 16 KiB", all(1, 1, 16 * 1024), &[at_least(Metric::Rate, 1.3), CPU]),
    case("1-4", "1 → 4, 128 B", all(1, 4, 128), &[at_least(Metric::Rate, 3.0), CPU]),
    case("1-64", "1 → 64, 128 B", all(1, 64, 128), &[at_least(Metric::Rate, 4.0), CPU]),
    case("1-1000", "1 → 1000, 128 B", all(1, 1000, 128), &[at_least(Metric::Rate, 3.0), CPU]),
    case("4x1-1", "4 × (1 → 1), 128 B", pairs(4, 128), &[at_least(Metric::Rate, 3.5), CPU]),
    case("4-4", "4 → 4 all to all, 128 B", all(4, 4, 128), &[at_least(Metric::Rate, 3.0), CPU]),
    case("request-idle", "request/reply, 128 B, idle machine", one_request(Cores::Unbound), REQUEST_IDLE),
    case("request-awake", "request/reply, 128 B, cores kept awake", one_request(Cores::Awake), REQUEST),
    // If the cores are awake, a reply takes up to four times as long when the scheduler places server and
    // generator on different cores. That placement is random, and can decide alone whether the previous row
    // meets its target. In this row both share a core, so all rounds have similar results.
    case("request-one-core", "request/reply, 128 B, all on one core", one_request(Cores::One), REQUEST),
    case("queue-1", "10 clients, 2 services, 16 B, 1 in flight", queue_group(1), &[at_least(Metric::Rate, 1.3)]),
    case("queue-16", "10 clients, 2 services, 16 B, 16 in flight", queue_group(16), &[at_least(Metric::Rate, 1.3)]),
    case("idle-10000", "10,000 idle connections", IDLE, &[at_most(Metric::IdleMemory, 0.5)]),
];

/// Starts `program`, runs `work` on it for about `duration`, and stops the server.
fn measure(program: &Program, work: Work, duration: Duration) -> Result<Sample> {
    let server = Server::start(program)?;
    match work {
        Work::Throughput(topology) => {
            let side = Side::Nats(server.address());
            let fixture = Fixture::open(side, side, topology)?;
            cost::throughput(from_ref(&server), &fixture, duration)
        }
        Work::Requests(party) => requests(&server, party, duration),
        Work::Idle { connections } => {
            cost::idle(&server, connections, |_| Connection::open(server.address()))
        }
    }
}

fn requests(server: &Server, party: Party, duration: Duration) -> Result<Sample> {
    let fixture = requests::Fixture::open(server.address(), server.address(), party)?;
    let _awake = match party.cores {
        Cores::Awake => Some(awake::keep()?),
        Cores::Unbound | Cores::One => None,
    };
    let _one_core = match party.cores {
        Cores::One => Some(OneCore::share_with(server)?),
        Cores::Unbound | Cores::Awake => None,
    };
    cost::requests(from_ref(server), &fixture, duration)
}
