//! The measurement of one row on one new server process.

use std::net::SocketAddr;
use std::slice::from_ref;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustls::ClientConfig;

use super::carrier::{Carrier, Kind, client_config};
use super::{Work, permissions};
use crate::comparison::cost::Cost;
use crate::comparison::site::Site;
use crate::generator::throughput::calibrate;
use crate::generator::{Outcome, frames};
use crate::report::metric::Sample;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams};

/// Minimum duration of a burst that measures the rate reliably.
const CALIBRATION: Duration = Duration::from_millis(50);

/// A directory with a certificate and the server's configuration.
pub(super) struct Place {
    folder: String,
    client: Arc<ClientConfig>,
}

impl Place {
    pub(super) fn new(site: &Site) -> Result<Self> {
        let folder = site.empty_for("server")?;
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        std::fs::write(format!("{folder}/cert.pem"), made.cert.pem())?;
        std::fs::write(
            format!("{folder}/key.pem"),
            made.signing_key.serialize_pem(),
        )?;
        let client = client_config(made.cert.der())?;
        Ok(Self { folder, client })
    }

    /// Starts a server with TLS or with a WebSocket listener. Returns the server and the address for that
    /// transport.
    fn start(&self, program: &Program, kind: Kind) -> Result<(Server, SocketAddr)> {
        let folder = &self.folder;
        let websocket = free_address()?;
        let text = match kind {
            // TLS is optional, because the check whether the server is ready does not use it.
            Kind::Tls => format!(
                "tls {{ cert_file: \"{folder}/cert.pem\", key_file: \"{folder}/key.pem\", \
                 timeout: 10 }}\nallow_non_tls: true\n"
            ),
            Kind::WebSocket => {
                format!("websocket {{ listen: \"{websocket}\", no_tls: true }}\n")
            }
        };
        let server = Server::start(&program.with_config(folder, &text, Streams::None)?)?;
        let address = match kind {
            Kind::Tls => server.address(),
            Kind::WebSocket => websocket,
        };
        Ok((server, address))
    }
}

/// Starts `program`, runs `work` on it for about `duration`, and stops the server.
pub(super) fn measure(
    place: &Place,
    program: &Program,
    work: Work,
    duration: Duration,
) -> Result<Sample> {
    let (kind, subscribers, payload_bytes) = match work {
        Work::Throughput {
            kind,
            subscribers,
            payload_bytes,
        } => (kind, subscribers, payload_bytes),
        Work::Handshakes => return handshakes(place, program, duration),
        Work::Permissions(bound) => {
            return permissions::measure(&place.folder, program, bound, duration);
        }
    };
    let (server, address) = place.start(program, kind)?;
    let open = || Carrier::open(kind, address, &place.client);
    let mut party = Party::open(open, subscribers, payload_bytes)?;
    let chunks = calibrate(CALIBRATION, |chunks| party.burst(chunks))?.chunks_in(duration)?;
    let cost = Cost::start(from_ref(&server))?;
    let elapsed = party.burst(chunks)?;
    let messages = chunks * party.messages_per_chunk * subscribers.max(1) as u64;
    cost.of(from_ref(&server), &Outcome::untimed(messages, elapsed))
}

fn handshakes(place: &Place, program: &Program, duration: Duration) -> Result<Sample> {
    let (server, address) = place.start(program, Kind::Tls)?;
    let cost = Cost::start(from_ref(&server))?;
    let start = Instant::now();
    let mut messages = 0;
    while start.elapsed() < duration {
        Carrier::open(Kind::Tls, address, &place.client)?;
        messages += 1;
    }
    cost.of(
        from_ref(&server),
        &Outcome::untimed(messages, start.elapsed()),
    )
}

struct Party {
    publisher: Carrier,
    chunk: Vec<u8>,
    messages_per_chunk: u64,
    subscribers: Vec<Carrier>,
    frame_bytes: u64,
}

impl Party {
    fn open(
        open: impl Fn() -> Result<Carrier>,
        subscribers: usize,
        payload_bytes: usize,
    ) -> Result<Self> {
        let payload = frames::payload(payload_bytes);
        let subscribe = || -> Result<Carrier> {
            let mut carrier = open()?;
            carrier.send(b"SUB fan.0 1\r\n")?;
            carrier.flush()?;
            Ok(carrier)
        };
        let subscribers = (0..subscribers).map(|_| subscribe());
        let subscribers = subscribers.collect::<Result<Vec<_>>>()?;
        let publisher = open()?;
        let frame = frames::publish("fan.0", &payload);
        let (chunk, messages_per_chunk) = frames::repeat_to(&frame, frames::CHUNK_BYTES);
        Ok(Party {
            chunk: publisher.framed(&chunk),
            publisher,
            messages_per_chunk,
            subscribers,
            frame_bytes: frames::delivery("fan.0", 1, &payload).len() as u64,
        })
    }

    /// Measures the time from the first write until every subscriber has read all messages. Without
    /// subscribers, measures until the PONG.
    fn burst(&mut self, chunks: u64) -> Result<Duration> {
        let due = chunks * self.messages_per_chunk * self.frame_bytes;
        let gate = Barrier::new(1 + self.subscribers.len());
        let is_alone = self.subscribers.is_empty();
        let (publisher, chunk, gate) = (&mut self.publisher, &self.chunk, &gate);
        thread::scope(|scope| {
            let readers: Vec<_> = self
                .subscribers
                .iter_mut()
                .map(|subscriber| {
                    scope.spawn(move || {
                        gate.wait();
                        read_all(subscriber, due)
                    })
                })
                .collect();
            gate.wait();
            let start = Instant::now();
            for _ in 0..chunks {
                publisher
                    .write(chunk)
                    .context("the publisher could not write")?;
            }
            if is_alone {
                publisher.flush()?;
            }
            for reader in readers {
                let read = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
                read.context("a subscriber starved")?;
            }
            Ok(start.elapsed())
        })
    }
}

/// Reads `due` bytes of messages. A PING between the messages would be counted too, but the server sends none
/// in this time.
fn read_all(carrier: &mut Carrier, due: u64) -> Result<()> {
    let mut room = Vec::new();
    let mut seen = 0u64;
    while seen < due {
        carrier.read(&mut room, |bytes| seen += bytes.len() as u64)?;
    }
    Ok(())
}
