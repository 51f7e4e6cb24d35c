//! The measurement of one row on three servers.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use serde_json::Value;

use super::idle;
use super::rows::Work;
use super::trio::{Client, Trio, eventually};
use crate::comparison::cost::{Cost, WARM_UP};
use crate::comparison::site::Site;
use crate::generator::consume::{Consuming, How};
use crate::generator::jetstream::Api;
use crate::generator::window::{RequestSequence, Until, Window, is_stored};
use crate::generator::{Outcome, confirm, frames, paced};
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;

const STREAM: &str = "bench";
const PAYLOAD_BYTES: usize = 128;
const IN_FLIGHT: usize = 256;

/// The share of the highest rate with which paced publishes are sent.
const SHARE: f64 = 0.3;

/// Number of messages that are consumed, a multiple of the size of a fetch.
const CONSUMED: u64 = 50_000;
const CONSUMED_QUICK: u64 = 10_000;

/// Time between two publishes, and between the first one and the end of the leader.
const FAILOVER_INTERVAL: Duration = Duration::from_millis(2);
const BEFORE_KILL: Duration = Duration::from_millis(500);

/// Number of acknowledgements after which a failover is over.
const GOOD: u64 = 100;

/// What a row is measured with.
pub(super) struct Stage<'a> {
    pub(super) program: &'a Program,
    pub(super) site: &'a Site,
    /// About how long to measure.
    pub(super) duration: Duration,
    pub(super) quick: bool,
}

pub(super) fn measure(work: Work, stage: &Stage<'_>) -> Result<Sample> {
    let trio = Trio::start(stage.program, stage.site)?;
    match work {
        Work::Publish {
            payload_bytes,
            publishers,
            in_flight,
        } => stage.publish(&trio, payload_bytes, publishers, in_flight),
        Work::Paced => stage.paced(&trio),
        Work::Fetch { acks } => stage.fetch(&trio, acks),
        Work::Confirm { workers } => stage.confirm(&trio, workers),
        Work::Failover => failover(trio),
        Work::Idle(items) => idle::measure(stage, &trio, items),
    }
}

impl Stage<'_> {
    fn publish(
        &self,
        trio: &Trio,
        payload_bytes: usize,
        publishers: usize,
        in_flight: usize,
    ) -> Result<Sample> {
        let mut publishers = (0..publishers)
            .map(|number| Publisher::open(trio, number, payload_bytes, in_flight))
            .collect::<Result<Vec<_>>>()?;
        let warm_up = publish_all(&mut publishers, WARM_UP)?;
        let cost = Cost::start(trio.servers())?;
        let outcome = publish_all(&mut publishers, self.duration)?;
        let sample = cost.of(trio.servers(), &outcome)?;
        let kept = publishers.iter().map(|publisher| {
            let api = Api::open(trio.address(publisher.leader))?;
            api.messages(&publisher.stream)
        });
        let kept = kept.sum::<Result<u64>>()?;
        let messages = warm_up.messages + outcome.messages;
        ensure!(kept == messages, "{kept} of {messages} messages were kept");
        Ok(sample)
    }

    fn paced(&self, trio: &Trio) -> Result<Sample> {
        let mut full = [Publisher::open(trio, 0, PAYLOAD_BYTES, IN_FLIGHT)?];
        publish_all(&mut full, WARM_UP)?;
        let most = publish_all(&mut full, self.duration / 2)?;
        let [full] = full;
        let sync_time = self.site.sync_time()?;
        let interval = most.elapsed.div_f64(most.messages as f64 * SHARE);
        let end = WARM_UP + self.duration;
        let requests = publications(&full.stream, 1, PAYLOAD_BYTES, IN_FLIGHT);
        let cost = Cost::start(trio.servers())?;
        let log = paced::publish(trio.address(full.leader), requests, interval, |log| {
            Ok(log.elapsed() > end)
        })?;
        let elapsed = log.elapsed();
        let mut sample = cost.end(trio.servers(), log.stored())?;
        let latency = log.latency(WARM_UP)?;
        sample.set_rate(log.stored(), elapsed);
        sample.set_latency(&latency);
        let bound = sync_time * 2 + Duration::from_micros(300);
        let p50 = latency.value_at_quantile(0.5) as f64;
        sample.set(Metric::AgainstSyncs, p50 / bound.as_nanos() as f64);
        sample.set(Metric::Sync, sync_time.as_nanos() as f64);
        Ok(sample)
    }

    /// Publishes messages to a stream, and returns its leader and their number.
    fn fill(&self, trio: &Trio) -> Result<(usize, u64)> {
        let messages = if self.quick { CONSUMED_QUICK } else { CONSUMED };
        let mut publisher = Publisher::open(trio, 0, PAYLOAD_BYTES, IN_FLIGHT)?;
        publisher.window.run(Until::Count(messages))?;
        Ok((publisher.leader, messages))
    }

    fn fetch(&self, trio: &Trio, acks: bool) -> Result<Sample> {
        let (leader, messages) = self.fill(trio)?;
        let consuming = Consuming::open(trio.address(leader), &stream(0), How::Fetch { acks })?;
        let cost = Cost::start(trio.servers())?;
        let elapsed = consuming.consume(messages)?;
        cost.of(trio.servers(), &Outcome::untimed(messages, elapsed))
    }

    fn confirm(&self, trio: &Trio, workers: usize) -> Result<Sample> {
        let (leader, _) = self.fill(trio)?;
        let (address, stream) = (trio.address(leader), stream(0));
        Client::open(address)?.create_consumer(&stream, "shared")?;
        let cost = Cost::start(trio.servers())?;
        let outcome = confirm::work(address, &stream, "shared", workers, self.duration)?;
        let sample = cost.of(trio.servers(), &outcome)?;
        let endpoint = format!("CONSUMER.INFO.{stream}.shared");
        let info = Api::open(address)?.ask(&endpoint, &Value::Null)?;
        let acked = info["ack_floor"]["stream_seq"].as_u64();
        let acked = acked.context("no acknowledgement floor")?;
        let confirmed = outcome.messages;
        ensure!(
            acked == confirmed,
            "{confirmed} confirmed, {acked} acknowledged"
        );
        Ok(sample)
    }
}

/// Kills the leader of a stream, and measures how long it cannot be published to.
fn failover(mut trio: Trio) -> Result<Sample> {
    let (name, leader) = (stream(0), trio.create(&stream(0))?);
    let survivor = trio.address(usize::from(leader == 0));
    let requests = publications(&name, 0, PAYLOAD_BYTES, 1);
    let mut killed_at = None;
    let log = paced::publish(survivor, requests, FAILOVER_INTERVAL, |log| {
        if killed_at.is_none() && log.elapsed() >= BEFORE_KILL {
            killed_at = Some(log.elapsed());
            trio.kill(leader);
        }
        Ok(killed_at.is_some_and(|at| log.stored_after(at) >= GOOD))
    })?;
    let outage = log.outage(killed_at.context("no leader was killed")?)?;
    let kept = eventually("number of messages", || {
        Api::open(survivor)?.messages(&name)
    })?;
    let stored = log.stored();
    ensure!(
        kept >= stored,
        "{kept} of {stored} acknowledged messages were kept"
    );
    let mut sample = Sample::default();
    sample.set(Metric::Outage, outage.as_nanos() as f64);
    Ok(sample)
}

/// A client that publishes to a stream of its own, at its leader.
struct Publisher {
    stream: String,
    leader: usize,
    window: Window,
}

impl Publisher {
    fn open(trio: &Trio, number: usize, payload_bytes: usize, in_flight: usize) -> Result<Self> {
        let stream = stream(number);
        let leader = trio.create(&stream)?;
        let requests = publications(&stream, number, payload_bytes, in_flight);
        let window = Window::open(trio.address(leader), requests, in_flight, is_stored)?;
        Ok(Self {
            stream,
            leader,
            window,
        })
    }
}

fn publish_all(publishers: &mut [Publisher], duration: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let outcomes = thread::scope(|scope| {
        let running = publishers
            .iter_mut()
            .map(|publisher| scope.spawn(move || publisher.window.run(Until::Time(duration))));
        let running: Vec<_> = running.collect();
        let end = running.into_iter().map(|one| {
            let outcome = one.join();
            outcome.map_err(|_| anyhow!("a publisher panicked"))?
        });
        end.collect::<Result<Vec<_>>>()
    })?;
    let mut latency = Histogram::new(3)?;
    for outcome in &outcomes {
        if let Some(nanos) = &outcome.latency {
            latency.add(nanos)?;
        }
    }
    Ok(Outcome {
        messages: outcomes.iter().map(|outcome| outcome.messages).sum(),
        elapsed: start.elapsed(),
        latency: Some(latency),
    })
}

fn stream(number: usize) -> String {
    format!("{STREAM}{number}")
}

fn publications(stream: &str, number: usize, bytes: usize, count: usize) -> RequestSequence {
    let inbox = format!("_INBOX.FanlineBenchPublisher{number:02}");
    let payload = frames::payload(bytes);
    RequestSequence::answered_at(&inbox, count, &payload, |_| format!("{stream}.a"))
}
