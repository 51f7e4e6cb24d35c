//! Clients that send requests, and services that respond.
//!
//! One thread runs all clients, and another all services. The reply subject identifies a request. Its last
//! token is the request's *slot*, its index among the client's requests in flight. The slot is needed because
//! services of a queue group respond out of order.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use hdrhistogram::Histogram;

use super::Outcome;
use super::buffer::Buffer;
use super::connection::{Connection, hang_up};
use super::frames::{self, PING, PONG};
use super::poller::Poller;

/// Number of bytes of one read. It is larger than all requests in flight together.
const READ_BYTES: usize = 64 * 1024;

const SUBJECT: &str = "svc";

#[derive(Clone, Copy)]
pub(crate) struct Party {
    pub(crate) clients: usize,
    /// Number of services. Several share a queue group.
    pub(crate) services: usize,
    /// Number of requests in flight per client.
    pub(crate) in_flight: usize,
    pub(crate) payload_bytes: usize,
    pub(crate) cores: Cores,
}

impl Party {
    /// Returns one client and one service, with one request at a time.
    pub(crate) const fn one(payload_bytes: usize) -> Self {
        Self {
            clients: 1,
            services: 1,
            in_flight: 1,
            payload_bytes,
            cores: Cores::Unbound,
        }
    }
}

/// The state of the cores between requests. On a small machine, waking a core costs more than serving a
/// request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Idle cores may sleep.
    Unbound,
    /// Spinning threads of the lowest priority keep all cores busy.
    Awake,
    /// The server and the generator share one core, so no other core must be woken.
    One,
}

/// The connections of one [`Party`], ready to send requests.
pub(crate) struct Fixture {
    party: Party,
    clients: Vec<Connection>,
    services: Vec<Connection>,
}

impl Fixture {
    /// Connects and subscribes all clients and services. If these are at different servers, the caller must wait
    /// until each server knows the interest of the other.
    pub(crate) fn open(
        clients_at: SocketAddr,
        services_at: SocketAddr,
        party: Party,
    ) -> Result<Self> {
        let queue = (party.services > 1).then_some("q");
        let services = (0..party.services).map(|_| {
            let service = Connection::open(services_at)?;
            service.subscribe(SUBJECT, queue, 1)?;
            Ok(service)
        });
        let clients = (0..party.clients).map(|index| {
            let client = Connection::open(clients_at)?;
            client.subscribe(&inbox(index, "*"), None, 1)?;
            Ok(client)
        });
        Ok(Self {
            party,
            services: services.collect::<Result<_>>()?,
            clients: clients.collect::<Result<_>>()?,
        })
    }

    /// Runs `work` while the services respond to requests.
    pub(crate) fn while_served<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let stopping = AtomicBool::new(false);
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let served = self.serve(&stopping);
                if served.is_err() {
                    hang_up(self.clients.iter().map(Connection::stream));
                }
                served
            });
            let result = work();
            // Release, for the Acquire in `serve`. This thread sets the flag before it closes the sockets. So
            // if the services' thread gets the error of a closed socket, it then sees the flag.
            stopping.store(true, Ordering::Release);
            hang_up(self.services.iter().map(Connection::stream));
            let served = serving
                .join()
                .map_err(|_| anyhow!("the services panicked"))?;
            // If a service failed, its error explains the error of a client that waited for it.
            served?;
            result
        })
    }

    /// Sends requests for `duration`, then waits for the remaining replies.
    pub(crate) fn ask(&self, duration: Duration) -> Result<Outcome> {
        let mut asking = Asking::new(self)?;
        asking.start_all()?;
        let deadline = asking.start + duration;
        let mut ready = Vec::new();
        while asking.due > 0 {
            asking.poller.wait(&mut ready)?;
            for &client in &ready {
                asking.take_replies(client, deadline)?;
            }
        }
        Ok(Outcome {
            messages: asking.latency.len(),
            elapsed: asking.start.elapsed(),
            latency: Some(asking.latency),
        })
    }

    /// Sends a request at each `interval` for `duration`, whether or not earlier ones have their reply, then waits for
    /// the remaining replies. A request's latency begins at the time at which it was due. There must be one client and
    /// one service, because the replies must arrive in the order of the requests.
    pub(crate) fn ask_at(&self, interval: Duration, duration: Duration) -> Result<Outcome> {
        let [client] = &self.clients[..] else {
            bail!("only one client sends requests at fixed times");
        };
        ensure!(
            self.services.len() == 1,
            "several services change the order"
        );
        let payload = frames::payload(self.party.payload_bytes);
        let request = frames::request(SUBJECT, &inbox(0, "00"), &payload);
        let count = duration.as_nanos() / interval.as_nanos();
        let count = u32::try_from(count).context("too many requests")?;
        let start = Instant::now();
        thread::scope(|scope| {
            let sending = scope.spawn(|| send_at(client, &request, start, interval, count));
            let (_, mut inputs) = inputs(std::slice::from_ref(client), self.reply_bytes())?;
            let mut latency = Histogram::<u64>::new(3)?;
            let mut replies = 0;
            while replies < count {
                let before = replies;
                inputs[0].read(|_| replies += 1)?;
                let now = Instant::now();
                for number in before..replies {
                    let nanos = now.saturating_duration_since(start + interval * number);
                    latency.record(u64::try_from(nanos.as_nanos())?)?;
                }
            }
            let sent = sending.join();
            sent.map_err(|_| anyhow!("the client panicked"))??;
            Ok(Outcome {
                messages: u64::from(count),
                elapsed: start.elapsed(),
                latency: Some(latency),
            })
        })
    }

    fn reply_bytes(&self) -> usize {
        let payload = frames::payload(self.party.payload_bytes);
        frames::delivery(&inbox(0, "00"), 1, &payload).len()
    }

    /// Responds until `stopping` is set. Then checks that every service had its share of the requests.
    fn serve(&self, stopping: &AtomicBool) -> Result<()> {
        let payload = frames::payload(self.party.payload_bytes);
        let reply = inbox(0, "00");
        let request = frames::delivery_of_request(SUBJECT, 1, &reply, &payload);
        let reply_place = format!("MSG {SUBJECT} 1 ").len();
        let mut answer = frames::publish(&reply, &payload);
        let (mut poller, mut inputs) = inputs(&self.services, request.len())?;
        let mut answered = vec![0_u64; self.services.len()];
        let (mut ready, mut out) = (Vec::new(), Vec::new());
        loop {
            let waited = poller.wait(&mut ready);
            if stopping.load(Ordering::Acquire) {
                return check_shares(&answered);
            }
            waited?;
            for &index in &ready {
                let open = inputs[index].read(|frame| {
                    let reply_to = &frame[reply_place..reply_place + reply.len()];
                    answer[4..4 + reply.len()].copy_from_slice(reply_to);
                    out.extend_from_slice(&answer);
                    answered[index] += 1;
                });
                match open {
                    Err(_) if stopping.load(Ordering::Acquire) => return check_shares(&answered),
                    other => other.context("a service failed")?,
                }
                poller.stream(index).write_all(&out)?;
                out.clear();
            }
        }
    }
}

/// Sends a request at each interval. Requests that are late are sent together.
fn send_at(
    client: &Connection,
    request: &[u8],
    start: Instant,
    interval: Duration,
    count: u32,
) -> Result<()> {
    let (mut number, mut out) = (0, Vec::new());
    while number < count {
        let wait = (start + interval * number).saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            thread::sleep(wait);
        }
        let now = Instant::now();
        out.clear();
        while number < count && start + interval * number <= now {
            out.extend_from_slice(request);
            number += 1;
        }
        client.stream().write_all(&out)?;
    }
    Ok(())
}

/// The state of all clients of a party while they send requests.
struct Asking<'a> {
    poller: Poller<'a>,
    inputs: Vec<Input<'a>>,
    /// For each client, a request in which only the last digits of the reply subject must be changed.
    requests: Vec<Vec<u8>>,
    /// For each client and slot, the time at which the request was written.
    starts: Vec<Vec<Instant>>,
    latency: Histogram<u64>,
    start: Instant,
    /// Number of replies that have not arrived.
    due: usize,
    out: Vec<u8>,
    slots: Vec<usize>,
}

impl<'a> Asking<'a> {
    fn new(fixture: &'a Fixture) -> Result<Self> {
        let party = fixture.party;
        let payload = frames::payload(party.payload_bytes);
        let start = Instant::now();
        let (poller, inputs) = inputs(&fixture.clients, fixture.reply_bytes())?;
        Ok(Self {
            poller,
            inputs,
            requests: (0..party.clients)
                .map(|client| frames::request(SUBJECT, &inbox(client, "00"), &payload))
                .collect(),
            starts: vec![vec![start; party.in_flight]; party.clients],
            latency: Histogram::new(3)?,
            start,
            due: 0,
            out: Vec::new(),
            slots: Vec::new(),
        })
    }

    fn start_all(&mut self) -> Result<()> {
        self.start = Instant::now();
        for client in 0..self.requests.len() {
            self.slots.extend(0..self.starts[client].len());
            self.send(client)?;
        }
        Ok(())
    }

    fn send(&mut self, client: usize) -> Result<()> {
        let request = &mut self.requests[client];
        let slot_place = format!("PUB {SUBJECT} {}", inbox(client, "")).len();
        for &slot in &self.slots {
            request[slot_place..slot_place + 2].copy_from_slice(&two_digits(slot));
            self.out.extend_from_slice(request);
        }
        let now = Instant::now();
        for slot in self.slots.drain(..) {
            self.starts[client][slot] = now;
            self.due += 1;
        }
        self.poller.stream(client).write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Records the replies to a client. Before `deadline`, also sends a new request for each recorded reply.
    fn take_replies(&mut self, client: usize, deadline: Instant) -> Result<()> {
        let slot_place = format!("MSG {}", inbox(client, "")).len();
        let slots = &mut self.slots;
        self.inputs[client].read(|frame| {
            let digits = &frame[slot_place..slot_place + 2];
            let slot = usize::from(digits[0].wrapping_sub(b'0')) * 10
                + usize::from(digits[1].wrapping_sub(b'0'));
            slots.push(slot);
        })?;
        let now = Instant::now();
        for &slot in &self.slots {
            let start = self.starts[client]
                .get(slot)
                .context("a reply without a request")?;
            let nanos = u64::try_from((now - *start).as_nanos())?;
            self.latency.record(nanos)?;
        }
        self.due -= self.slots.len();
        if now < deadline {
            self.send(client)?;
        }
        self.slots.clear();
        Ok(())
    }
}

/// The bytes from a socket on which every message has the same length.
struct Input<'a> {
    frame_bytes: usize,
    buffer: Buffer<'a>,
}

/// Returns the inputs of connections, and the poller that finds the readable ones.
fn inputs(connections: &[Connection], frame_bytes: usize) -> Result<(Poller<'_>, Vec<Input<'_>>)> {
    let streams = connections.iter().map(Connection::stream);
    let input = |stream| Input {
        frame_bytes,
        buffer: Buffer::new(stream, READ_BYTES),
    };
    let inputs = streams.clone().map(input).collect();
    Ok((Poller::new(streams.collect())?, inputs))
}

impl Input<'_> {
    /// Performs one read, passes each complete message to `take`, and answers PINGs.
    fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<()> {
        self.buffer.read()?;
        loop {
            let rest = self.buffer.unread();
            let is_message = rest.starts_with(b"MSG ");
            if rest.starts_with(PING) {
                self.buffer.take(PING.len());
                let mut stream = self.buffer.stream;
                stream.write_all(PONG)?;
            } else if is_message && rest.len() >= self.frame_bytes {
                let frame = self.buffer.take(self.frame_bytes);
                ensure!(frame.ends_with(b"\r\n"), "a message of another length");
                take(frame);
            } else if is_message || b"MSG ".starts_with(rest) || PING.starts_with(rest) {
                // The last message is incomplete, or no bytes remain.
                return Ok(());
            } else {
                bail!("the server sent {}", String::from_utf8_lossy(rest));
            }
        }
    }
}

/// Returns a reply subject of a client. All reply subjects have the same length.
fn inbox(client: usize, slot: &str) -> String {
    format!("_INBOX.c{client:02}.{slot}")
}

fn two_digits(number: usize) -> [u8; 2] {
    // The cases keep the number below 100. `% 10` prevents a panic for larger numbers.
    let digit = |value: usize| b"0123456789"[value % 10];
    [digit(number / 10), digit(number)]
}

/// Fails if one member of a queue group does nearly all the work, because that would be fast and wrong.
fn check_shares(answered: &[u64]) -> Result<()> {
    let fair = answered.iter().sum::<u64>() / answered.len() as u64;
    match answered.iter().min() {
        Some(least) if *least < fair / 4 => bail!("the queue group was not shared: {answered:?}"),
        _ => Ok(()),
    }
}
