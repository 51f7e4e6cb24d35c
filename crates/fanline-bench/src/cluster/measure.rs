//! The measurement of one row.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::mesh::Plan;
use super::rows::{Load, Work};
use crate::comparison::cost::{self, Cost};
use crate::comparison::site::Site;
use crate::generator::awake;
use crate::generator::background::Background;
use crate::generator::connection::Connection;
use crate::generator::interest::{new_subject, settle, wait_until_known};
use crate::generator::requests::{self, Cores, Party};
use crate::generator::side::Side;
use crate::generator::throughput::{Fixture, Topology};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;

/// Number of subjects that are subscribed to, and then unsubscribed from, before the next probe.
const CHURN_BATCH: u64 = 5_000;

/// Interval of requests at a fixed rate: 10,000 each second.
const REQUEST_INTERVAL: Duration = Duration::from_micros(100);

/// Messages each second beside these requests.
const BACKGROUND_RATE: u32 = 200_000;

/// Runs a row's load on a cluster whose first server runs `program`.
pub(super) fn measure(
    program: &Program,
    others: &Program,
    load: &Load,
    site: &Site,
    duration: Duration,
) -> Result<Sample> {
    let others = if load.is_mixed { others } else { program };
    let plan = Plan::new([program, others, others], site)?;
    match load.work {
        Work::Throughput {
            subscribers,
            payload_bytes,
        } => throughput(&plan, subscribers, payload_bytes, duration),
        Work::Requests { payload_bytes } => requests(&plan, payload_bytes, duration),
        Work::PacedRequests { payload_bytes } => paced_requests(&plan, payload_bytes, duration),
        Work::Mesh => mesh(&plan),
        Work::Interest { subjects } => interest(&plan, subjects),
        Work::Churn => churn(&plan, duration),
    }
}

fn throughput(
    plan: &Plan,
    subscribers: usize,
    payload_bytes: usize,
    duration: Duration,
) -> Result<Sample> {
    let mesh = plan.start_all()?;
    let from = mesh.address(0);
    let sides: Vec<Side> = match subscribers {
        1 => vec![Side::Nats(mesh.address(1))],
        _ => (0..mesh.servers.len())
            .map(|number| Side::Nats(mesh.address(number)))
            .collect(),
    };
    let topology = Topology::new(1, subscribers, payload_bytes);
    let fixture = Fixture::open_over(Side::Nats(from), &sides, topology)?;
    settle(from, mesh.address(1))?;
    settle(from, mesh.address(2))?;
    cost::throughput(&mesh.servers[..], &fixture, duration)
}

fn requests(plan: &Plan, payload_bytes: usize, duration: Duration) -> Result<Sample> {
    let mesh = plan.start_all()?;
    let (requester, responder) = (mesh.address(0), mesh.address(1));
    let party = Party {
        cores: Cores::Awake,
        ..Party::one(payload_bytes)
    };
    let fixture = requests::Fixture::open(requester, responder, party)?;
    settle(requester, responder)?;
    settle(responder, requester)?;
    let _awake = awake::keep()?;
    cost::requests(&mesh.servers[..], &fixture, duration)
}

fn paced_requests(plan: &Plan, payload_bytes: usize, duration: Duration) -> Result<Sample> {
    let mesh = plan.start_all()?;
    let (requester, responder) = (mesh.address(0), mesh.address(1));
    let party = Party::one(payload_bytes);
    let fixture = requests::Fixture::open(requester, responder, party)?;
    let background = Background::open(requester, responder, payload_bytes, BACKGROUND_RATE)?;
    settle(requester, responder)?;
    settle(responder, requester)?;
    let _awake = awake::keep()?;
    background.beside(|| {
        fixture.while_served(|| {
            fixture.ask_at(REQUEST_INTERVAL, cost::WARM_UP)?;
            let cost = Cost::start(&mesh.servers[..])?;
            let outcome = fixture.ask_at(REQUEST_INTERVAL, duration)?;
            cost.of(&mesh.servers[..], &outcome)
        })
    })
}

fn mesh(plan: &Plan) -> Result<Sample> {
    let start = Instant::now();
    let _mesh = plan.start_all()?;
    Ok(ready(1, start.elapsed()))
}

/// Measures the time from the start of the last server until a message that is published there arrives on the last of
/// many subjects of a client of the first server.
fn interest(plan: &Plan, subjects: usize) -> Result<Sample> {
    let mesh = plan.start(2)?;
    let subscriber = Connection::open(mesh.address(0))?;
    let last = new_subject();
    let lines =
        (0..subjects).map(|number| format!("SUB device.{number:06}.state {}\r\n", number + 2));
    let lines = lines
        .chain([format!("SUB {last} 1\r\n")])
        .collect::<String>();
    subscriber.stream().write_all(lines.as_bytes())?;
    subscriber.flush()?;
    settle(mesh.address(1), mesh.address(0))?;
    let cost = Cost::start(&mesh.servers[..])?;
    let start = Instant::now();
    let joined = plan.start_last()?;
    wait_until_known(&Connection::open(joined.address())?, &subscriber, &last)?;
    let elapsed = start.elapsed();
    let all = mesh.servers.iter().chain([&joined]);
    let mut sample = cost.end(all, subjects as u64)?;
    sample.set_rate(subjects as u64, elapsed);
    sample.set(Metric::Ready, elapsed.as_nanos() as f64);
    sample.set(Metric::PeakMemory, joined.memory()?.peak as f64);
    Ok(sample)
}

/// Measures how fast a client of the first server can subscribe and unsubscribe until the second one knows it.
fn churn(plan: &Plan, duration: Duration) -> Result<Sample> {
    let mesh = plan.start_all()?;
    let subscriber = Connection::open(mesh.address(0))?;
    let mut batch = String::new();
    for number in 0..CHURN_BATCH {
        let _ = write!(batch, "SUB churn.{number}.* {0}\r\n", number + 2);
    }
    for number in 0..CHURN_BATCH {
        let _ = write!(batch, "UNSUB {}\r\n", number + 2);
    }
    let cost = Cost::start(&mesh.servers[..])?;
    let (start, mut changes) = (Instant::now(), 0);
    while start.elapsed() < duration {
        subscriber.stream().write_all(batch.as_bytes())?;
        subscriber.flush()?;
        settle(mesh.address(1), mesh.address(0))?;
        changes += 2 * CHURN_BATCH;
    }
    let elapsed = start.elapsed();
    let mut sample = cost.end(&mesh.servers[..], changes)?;
    sample.set_rate(changes, elapsed);
    Ok(sample)
}

fn ready(count: u64, elapsed: Duration) -> Sample {
    let mut sample = Sample::default();
    sample.set_rate(count, elapsed);
    sample.set(Metric::Ready, elapsed.as_nanos() as f64);
    sample
}
