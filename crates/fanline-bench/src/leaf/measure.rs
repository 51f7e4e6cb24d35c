//! The measurement of one row with one server as the leaf node.

use std::io::Write;
use std::slice::from_ref;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::link::{HUB_DOMAIN, Link, start_hub};
use super::rows::{Direction, Load, Work};
use crate::comparison::cost::{self, Cost};
use crate::comparison::site::Site;
use crate::generator::connection::Connection;
use crate::generator::incoming::Incoming;
use crate::generator::interest::{new_subject, settle, wait_until_known};
use crate::generator::jetstream::Api;
use crate::generator::receive::Verify;
use crate::generator::requests::{self, Party};
use crate::generator::side::Side;
use crate::generator::throughput::{Fixture, Topology};
use crate::generator::window::{RequestSequence, Until, Window, is_stored};
use crate::generator::{Outcome, frames};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;

/// Interval between requests for the state of a mirror. Each request costs the server time.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

const MIRROR_LIMIT: Duration = Duration::from_secs(120);

const ORIGIN: &str = "origin";
const MIRROR: &str = "mirror";
const MIRRORED_BYTES: usize = 128;
const FILLING_IN_FLIGHT: usize = 1000;

pub(super) fn measure(
    hub: &Program,
    leaf: &Program,
    load: &Load,
    site: &Site,
    duration: Duration,
    quick: bool,
) -> Result<Sample> {
    let link = Link::start(hub, leaf, load, site)?;
    match load.work {
        Work::Throughput { payload_bytes } => throughput(&link, payload_bytes, duration),
        Work::Requests { payload_bytes } => requests(&link, payload_bytes, duration),
        Work::Interest { subjects } => interest(&link, subjects),
        Work::Mirror { messages, .. } if !quick => mirror(&link, messages),
        Work::Mirror { messages_quick, .. } => mirror(&link, messages_quick),
    }
}

fn throughput(link: &Link, payload_bytes: usize, duration: Duration) -> Result<Sample> {
    let topology = Topology::new(1, 1, payload_bytes);
    let fixture = Fixture::open(Side::Nats(link.source), Side::Nats(link.sink), topology)?;
    settle(link.source, link.sink)?;
    cost::throughput(from_ref(&link.leaf), &fixture, duration)
}

/// Returns the messages per second if the generator itself is the leaf node, which is the upper bound for any
/// leaf node of this hub. Returns `None` for rows that have no such bound.
pub(super) fn without_leaf(
    hub: &Program,
    load: &Load,
    site: &Site,
    duration: Duration,
) -> Result<Option<f64>> {
    let Some(payload_bytes) = load.plain_throughput() else {
        return Ok(None);
    };
    let (hub, leafs_at) = start_hub(hub, load, site)?;
    let (at_hub, at_leaf) = (Side::Nats(hub.address()), Side::Leaf(leafs_at));
    let (from, to) = match load.direction {
        Direction::Up => (at_leaf, at_hub),
        Direction::Down => (at_hub, at_leaf),
    };
    let fixture = Fixture::open(from, to, Topology::new(1, 1, payload_bytes))?;
    let burst = fixture.burst(fixture.calibrate(duration)?, Verify::Tail)?;
    Ok(Some(burst.messages as f64 / burst.elapsed.as_secs_f64()))
}

fn requests(link: &Link, payload_bytes: usize, duration: Duration) -> Result<Sample> {
    let party = Party::one(payload_bytes);
    let fixture = requests::Fixture::open(link.source, link.sink, party)?;
    settle(link.source, link.sink)?;
    settle(link.sink, link.source)?;
    cost::requests(from_ref(&link.leaf), &fixture, duration)
}

/// Measures the time from the first subscription until a message arrives on the last subject. After that,
/// without timing, one message per subject must arrive once and in order. Interest goes in the
/// load's direction, and messages go in the other.
fn interest(link: &Link, subjects: usize) -> Result<Sample> {
    let publisher = Connection::open(link.sink)?;
    let subscriber = Connection::open(link.source)?;
    let last = new_subject();
    // The subscription of the probe has the first ID.
    let lines = (0..subjects).map(|number| format!("SUB {} {}\r\n", subject(number), number + 2));
    let lines = lines.chain([format!("SUB {last} 1\r\n")]);
    let lines = lines.collect::<String>();
    let cost = Cost::start(from_ref(&link.leaf))?;
    let start = Instant::now();
    let mut stream = subscriber.stream();
    stream.write_all(lines.as_bytes())?;
    wait_until_known(&publisher, &subscriber, &last)?;
    let ready = start.elapsed();
    let mut sample = cost.of(
        from_ref(&link.leaf),
        &Outcome::untimed(subjects as u64, ready),
    )?;
    sample.set(Metric::Ready, ready.as_nanos() as f64);
    // Read the remaining probes. After that, nothing more arrives on the connection.
    subscriber.flush()?;
    settle(link.sink, link.source)?;
    subscriber.flush()?;
    each_arrives(&publisher, &subscriber, subjects)?;
    Ok(sample)
}

fn subject(number: usize) -> String {
    format!("device.{number:06}.state")
}

fn each_arrives(publisher: &Connection, subscriber: &Connection, subjects: usize) -> Result<()> {
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut stream = publisher.stream();
            let messages = (0..subjects).map(|number| frames::publish(&subject(number), b""));
            stream.write_all(&messages.collect::<Vec<_>>().concat())
        });
        let mut incoming = Incoming::new(subscriber.stream());
        let mut number = 0;
        while number < subjects {
            incoming.read()?;
            while let Some(message) = incoming.next()? {
                let is_next = message.subject() == subject(number).as_bytes();
                ensure!(is_next, "message {number} did not come next");
                number += 1;
            }
        }
        let sent = sending.join();
        sent.map_err(|_| anyhow::anyhow!("the publisher panicked"))??;
        Ok(())
    })
}

/// Measures the time from the request for a mirror until the mirror contains all messages of the hub's
/// stream.
fn mirror(link: &Link, messages: u64) -> Result<Sample> {
    let hub = Api::open(link.hub.address())?;
    let origin =
        json!({"name": ORIGIN, "subjects": ["origin"], "storage": "file", "num_replicas": 1});
    hub.ask(&format!("STREAM.CREATE.{ORIGIN}"), &origin)?;
    let payload = frames::payload(MIRRORED_BYTES);
    let requester = RequestSequence::new(FILLING_IN_FLIGHT, &payload, |_| "origin".to_owned());
    let mut window = Window::open(link.hub.address(), requester, FILLING_IN_FLIGHT, is_stored)?;
    window.run(Until::Count(messages))?;
    let leaf = Api::open(link.leaf.address())?;
    let external = json!({"api": format!("$JS.{HUB_DOMAIN}.API"), "deliver": ""});
    let mirror = json!({
        "name": MIRROR, "storage": "file", "num_replicas": 1,
        "mirror": {"name": ORIGIN, "external": external},
    });
    let cost = Cost::start(from_ref(&link.leaf))?;
    let start = Instant::now();
    leaf.ask(&format!("STREAM.CREATE.{MIRROR}"), &mirror)?;
    while leaf.messages(MIRROR)? < messages {
        ensure!(
            start.elapsed() < MIRROR_LIMIT,
            "the mirror does not catch up"
        );
        thread::sleep(RETRY_INTERVAL);
    }
    let elapsed = start.elapsed();
    let mut sample = cost.of(from_ref(&link.leaf), &Outcome::untimed(messages, elapsed))?;
    sample.set(Metric::Ready, elapsed.as_nanos() as f64);
    Ok(sample)
}
