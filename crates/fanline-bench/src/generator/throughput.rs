//! Publishers and subscribers that work at full speed.

use std::io::Write;
use std::sync::Barrier;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::connection::hang_up;
use super::receive::{Verify, receive};
use super::side::{Client, Side};
use super::{Outcome, frames};

/// Minimum length of a calibration run. A shorter run does not measure the rate precisely enough.
const CALIBRATION: Duration = Duration::from_millis(120);

/// Numbers of publishers and subscribers, and how they are connected.
#[derive(Clone, Copy)]
pub(crate) struct Topology {
    pub(crate) publishers: usize,
    pub(crate) subscribers: usize,
    /// Whether each publisher has one subscriber of its own. Otherwise all publishers publish to all
    /// subscribers.
    pub(crate) paired: bool,
    pub(crate) payload_bytes: usize,
}

impl Topology {
    /// Returns a topology in which every publisher publishes to every subscriber.
    pub(crate) const fn new(publishers: usize, subscribers: usize, payload_bytes: usize) -> Self {
        Self {
            publishers,
            subscribers,
            paired: false,
            payload_bytes,
        }
    }

    /// Returns the number of deliveries if each publisher publishes `published` messages. Without
    /// subscribers, returns the number of publications.
    fn messages(&self, published: u64) -> u64 {
        let publications = published * self.publishers as u64;
        match self.subscribers as u64 {
            0 => publications,
            _ if self.paired => publications,
            subscribers => publications * subscribers,
        }
    }

    fn publishers_per_subscriber(&self) -> u64 {
        if self.paired {
            1
        } else {
            self.publishers as u64
        }
    }

    fn subject(&self, index: usize) -> String {
        format!("fan.{}", if self.paired { index } else { 0 })
    }

    /// Returns the size of a chunk. A run consists of whole chunks. In a wide fan-out a chunk of the usual
    /// size would cause so many deliveries that the length of a run could not be chosen precisely.
    fn chunk_bytes(&self) -> usize {
        if self.subscribers < 64 {
            frames::CHUNK_BYTES
        } else {
            frames::CHUNK_BYTES / 4
        }
    }
}

/// A burst that is long enough to measure the rate.
pub(crate) struct Calibration {
    pub(crate) chunks: u64,
    elapsed: Duration,
}

/// Runs bursts until one takes at least `least`. The argument of `burst` is the number of chunks.
pub(crate) fn calibrate(
    least: Duration,
    mut burst: impl FnMut(u64) -> Result<Duration>,
) -> Result<Calibration> {
    let mut chunks = 1;
    loop {
        let elapsed = burst(chunks)?;
        if elapsed >= least {
            return Ok(Calibration { chunks, elapsed });
        }
        chunks *= if elapsed > least / 8 { 8 } else { 2 };
    }
}

impl Calibration {
    /// Returns the number of chunks that take about `duration`.
    pub(crate) fn chunks_in(&self, duration: Duration) -> Result<u64> {
        let chunk_nanos = self.elapsed.as_nanos() / u128::from(self.chunks);
        Ok(u64::try_from(duration.as_nanos() / chunk_nanos.max(1))?.max(1))
    }
}

/// The connections of one topology, ready to publish.
pub(crate) struct Fixture {
    topology: Topology,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    messages_per_chunk: u64,
}

struct Publisher {
    client: Client,
    /// The bytes of one write, which consist of complete messages.
    chunk: Vec<u8>,
}

struct Subscriber {
    client: Client,
    /// The bytes that the subscriber reads for one message.
    frame: Vec<u8>,
}

impl Fixture {
    /// Connects publishers on the side `from` and subscribers on the side `to`, and subscribes. If these are
    /// different servers, the caller must wait until the first knows the interest of the second.
    pub(crate) fn open(from: Side, to: Side, topology: Topology) -> Result<Self> {
        Self::open_over(from, &[to], topology)
    }

    /// Connects the subscribers on these sides in turn.
    pub(crate) fn open_over(from: Side, sides: &[Side], topology: Topology) -> Result<Self> {
        let payload = frames::payload(topology.payload_bytes);
        let mut subscribers = Vec::with_capacity(topology.subscribers);
        for (index, to) in (0..topology.subscribers).zip(sides.iter().cycle()) {
            let subject = topology.subject(index);
            let client = to.subscriber(&subject, index)?;
            let frame = to.delivery_from(from, &client, &subject, &payload)?;
            subscribers.push(Subscriber { client, frame });
        }
        let mut messages_per_chunk = 0;
        let mut publishers = Vec::with_capacity(topology.publishers);
        for index in 0..topology.publishers {
            let frame = from.publication(&topology.subject(index), &payload);
            let (chunk, messages) = frames::repeat_to(&frame, topology.chunk_bytes());
            messages_per_chunk = messages;
            let client = from.publisher(index)?;
            publishers.push(Publisher { client, chunk });
        }
        Ok(Self {
            topology,
            publishers,
            subscribers,
            messages_per_chunk,
        })
    }

    /// Compares every byte of short bursts. Returns the number of chunks per publisher that take about
    /// `duration`.
    pub(crate) fn calibrate(&self, duration: Duration) -> Result<u64> {
        let burst = |chunks| Ok(self.burst(chunks, Verify::All)?.elapsed);
        calibrate(CALIBRATION, burst)?.chunks_in(duration)
    }

    /// Makes every publisher write `chunks` chunks, and waits until every subscriber has read all of them.
    pub(crate) fn burst(&self, chunks: u64, verify: Verify) -> Result<Outcome> {
        let published = chunks * self.messages_per_chunk;
        let due = published * self.topology.publishers_per_subscriber();
        let receivers = usize::from(!self.subscribers.is_empty());
        let gate = &Barrier::new(self.publishers.len() + receivers);
        let (done, finished) = mpsc::channel();
        let elapsed = thread::scope(|scope| {
            if receivers > 0 {
                let done = done.clone();
                scope.spawn(move || {
                    gate.wait();
                    let end = self.receive_all(due, verify);
                    done.send(end.map(|end| (None, end)))
                });
            }
            for publisher in &self.publishers {
                let done = done.clone();
                scope.spawn(move || {
                    gate.wait();
                    let start = Instant::now();
                    let end = self.publish(publisher, chunks);
                    done.send(end.map(|end| (Some(start), end)))
                });
            }
            drop(done);
            self.elapsed(&finished)
        })?;
        Ok(Outcome::untimed(self.topology.messages(published), elapsed))
    }

    /// Waits for all threads of a burst. Each sends the time of its first write, unless it reads, and that of its
    /// last write or read. Returns the time from the first to the last of them, or the first error.
    fn elapsed(&self, finished: &Receiver<Result<(Option<Instant>, Instant)>>) -> Result<Duration> {
        let (mut start, mut end, mut error) = (None, None, None);
        for times in finished {
            match times {
                Ok((first, last)) => {
                    start = start.into_iter().chain(first).min();
                    end = end.max(Some(last));
                }
                // Close all sockets, because the other threads wait for bytes that will not arrive.
                Err(cause) => {
                    self.hang_up();
                    error.get_or_insert(cause);
                }
            }
        }
        match (error, start.zip(end)) {
            (Some(error), _) => Err(error),
            (None, times) => times
                .map(|(start, end)| end - start)
                .context("no publisher published"),
        }
    }

    fn publish(&self, publisher: &Publisher, chunks: u64) -> Result<Instant> {
        let mut stream = publisher.client.stream();
        for _ in 0..chunks {
            stream
                .write_all(&publisher.chunk)
                .context("a publisher could not write")?;
        }
        if self.subscribers.is_empty() {
            publisher.client.flush()?;
        }
        Ok(Instant::now())
    }

    /// Reads for all subscribers on one thread. With one thread per subscriber, switching between threads
    /// would take more time than all reads.
    fn receive_all(&self, messages: u64, verify: Verify) -> Result<Instant> {
        let streams = self.subscribers.iter();
        let streams = streams.map(|each| (each.client.stream(), each.frame.as_slice()));
        receive(streams, messages, verify)
    }

    fn hang_up(&self) {
        let publishers = self.publishers.iter().map(|publisher| &publisher.client);
        let subscribers = self.subscribers.iter().map(|subscriber| &subscriber.client);
        let clients = publishers.chain(subscribers);
        hang_up(clients.map(|client| client.stream()));
    }
}
