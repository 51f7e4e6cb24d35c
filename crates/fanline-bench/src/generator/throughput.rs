//! Publishers and subscribers at full speed.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::connection::Connection;
use super::frames;
use super::receive::{Verify, receive};

/// A calibration run that took this long tells the rate well enough.
const CALIBRATION: Duration = Duration::from_millis(120);

/// Who publishes to whom.
#[derive(Clone, Copy)]
pub(crate) struct Topology {
    pub(crate) publishers: usize,
    pub(crate) subscribers: usize,
    /// Each publisher has one subscriber of its own, rather than all subscribers.
    pub(crate) paired: bool,
    pub(crate) payload_bytes: usize,
}

/// What one run gave.
pub(crate) struct Burst {
    /// Deliveries, or publications when nobody subscribes.
    pub(crate) messages: u64,
    /// From the first write to the last byte of the last subscriber, or to the last PONG.
    pub(crate) elapsed: Duration,
}

impl Topology {
    /// What `published` messages of each publisher amount to: deliveries, or the publications
    /// themselves when nobody subscribes.
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

    /// A chunk becomes so many deliveries in a wide fan-out that the length of a run could not be
    /// chosen by whole chunks of the usual size.
    fn chunk_bytes(&self) -> usize {
        if self.subscribers < 64 {
            frames::CHUNK_BYTES
        } else {
            frames::CHUNK_BYTES / 4
        }
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
    connection: Connection,
    /// What it writes at once: whole messages.
    chunk: Vec<u8>,
}

struct Subscriber {
    connection: Connection,
    /// What it reads for one message.
    frame: Vec<u8>,
}

impl Fixture {
    /// Connects and subscribes everybody.
    pub(crate) fn open(address: SocketAddr, topology: Topology) -> Result<Self> {
        Self::open_between(address, address, topology)
    }

    /// The same with publishers at one server and subscribers at another. Whether the one knows what the
    /// other's clients want is the caller's concern.
    pub(crate) fn open_between(
        publishers_at: SocketAddr,
        subscribers_at: SocketAddr,
        topology: Topology,
    ) -> Result<Self> {
        let payload = frames::payload(topology.payload_bytes);
        let subscribers = (0..topology.subscribers).map(|index| {
            let subject = topology.subject(index);
            let connection = Connection::open(subscribers_at)?;
            connection.subscribe(&subject, None, 1)?;
            let frame = frames::delivery(&subject, 1, &payload);
            Ok(Subscriber { connection, frame })
        });
        let subscribers = subscribers.collect::<Result<_>>()?;
        let mut messages_per_chunk = 0;
        let mut publishers = Vec::with_capacity(topology.publishers);
        for index in 0..topology.publishers {
            let frame = frames::publish(&topology.subject(index), &payload);
            let (chunk, messages) = frames::repeat_to(&frame, topology.chunk_bytes());
            messages_per_chunk = messages;
            let connection = Connection::open(publishers_at)?;
            publishers.push(Publisher { connection, chunk });
        }
        Ok(Self {
            topology,
            publishers,
            subscribers,
            messages_per_chunk,
        })
    }

    /// Runs short bursts, each compared byte for byte, until one is long enough to tell the rate;
    /// gives the number of chunks per publisher that should take `duration`.
    pub(crate) fn calibrate(&self, duration: Duration) -> Result<u64> {
        let mut chunks = 1;
        loop {
            let elapsed = self.burst(chunks, Verify::All)?.elapsed;
            if elapsed >= CALIBRATION {
                let chunk_nanos = elapsed.as_nanos() / u128::from(chunks);
                return Ok(u64::try_from(duration.as_nanos() / chunk_nanos)?.max(1));
            }
            chunks *= if elapsed > CALIBRATION / 8 { 8 } else { 2 };
        }
    }

    /// Every publisher writes `chunks` chunks; returns when every subscriber has read them all.
    pub(crate) fn burst(&self, chunks: u64, verify: Verify) -> Result<Burst> {
        let published = chunks * self.messages_per_chunk;
        let due = published * self.topology.publishers_per_subscriber();
        let receivers = usize::from(!self.subscribers.is_empty());
        let gate = Barrier::new(self.publishers.len() + receivers);
        let times = Times::default();
        let take_part = |work: &dyn Fn() -> Result<Instant>, publishes: bool| {
            gate.wait();
            let start = publishes.then(Instant::now);
            match work() {
                Ok(end) => times.note(start, end),
                // The others wait for bytes that will not come.
                Err(error) => {
                    times.fail(error);
                    self.hang_up();
                }
            }
        };
        thread::scope(|scope| {
            if receivers > 0 {
                scope.spawn(|| take_part(&|| self.receive_all(due, verify), false));
            }
            for publisher in &self.publishers {
                let work = move || self.publish(publisher, chunks);
                scope.spawn(move || take_part(&work, true));
            }
        });
        Ok(Burst {
            messages: self.topology.messages(published),
            elapsed: times.elapsed()?,
        })
    }

    fn publish(&self, publisher: &Publisher, chunks: u64) -> Result<Instant> {
        let mut stream = publisher.connection.stream();
        for _ in 0..chunks {
            stream
                .write_all(&publisher.chunk)
                .context("a publisher could not write")?;
        }
        if self.subscribers.is_empty() {
            publisher.connection.flush()?;
        }
        Ok(Instant::now())
    }

    /// Reads on one thread for everybody: a thread each spends more on switching between them than
    /// one on reading.
    fn receive_all(&self, messages: u64, verify: Verify) -> Result<Instant> {
        let streams = self.subscribers.iter();
        let streams = streams.map(|each| (each.connection.stream(), each.frame.as_slice()));
        receive(streams, messages, verify)
    }

    fn hang_up(&self) {
        let publishers = self
            .publishers
            .iter()
            .map(|publisher| &publisher.connection);
        let subscribers = self
            .subscribers
            .iter()
            .map(|subscriber| &subscriber.connection);
        for connection in publishers.chain(subscribers) {
            // It may be closed already, which is as good.
            let _ = connection.stream().shutdown(Shutdown::Both);
        }
    }
}

/// First write, last read, and what went wrong first.
#[derive(Default)]
struct Times(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    start: Option<Instant>,
    end: Option<Instant>,
    error: Option<anyhow::Error>,
}

impl Times {
    fn note(&self, start: Option<Instant>, end: Instant) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.start = noted.start.into_iter().chain(start).min();
        noted.end = noted.end.max(Some(end));
    }

    fn fail(&self, error: anyhow::Error) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.error.get_or_insert(error);
    }

    fn elapsed(self) -> Result<Duration> {
        let noted = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        match noted {
            Noted {
                error: Some(error), ..
            } => Err(error),
            Noted {
                start: Some(start),
                end: Some(end),
                ..
            } => Ok(end - start),
            _ => bail!("nobody published"),
        }
    }
}
