//! The measurement of one result. Each measurement has a server of its own.

use std::hint::black_box;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use fanline::Guard;
use fanline_server::auth::{Access, AccessConfig, User};
use fanline_server::bridge::{Bridge, Raw};
use fanline_server::client::ConnectOptions;
use fanline_server::{Auth, Handle, Options, Server};

use crate::generator::connection::Connection;
use crate::generator::frames;
use crate::generator::receive::{Verify, receive};

const SUBJECT: &str = "bench";
const PAYLOAD: [u8; 128] = [b'x'; 128];
/// Time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Emits messages that an observer of the server's subject counts. Returns the messages per second.
pub(super) fn emit_observed(bridge: &Bridge, messages: u64) -> Result<f64> {
    let (_guard, seen) = observed(bridge)?;
    let rate = emit(messages, Some(bridge));
    let is_complete = seen.load(Ordering::Relaxed) == messages;
    ensure!(is_complete, "some were not observed");
    Ok(rate)
}

/// Returns the configuration of a server with accounts. All messages of a subject pass through such a server.
pub(super) fn accounts() -> Result<Auth> {
    let mut config = AccessConfig::default();
    let users = &mut config.account_mut("$G").users;
    users.push(User::new("bench", "bench"));
    Ok(Auth::Directory(Arc::new(Access::new(config)?)))
}

pub(super) fn with_server(
    auth: Auth,
    act: impl FnOnce(&Handle, &Bridge) -> Result<f64>,
) -> Result<f64> {
    let server = Server::start(Options {
        port: 0,
        auth,
        ..Options::default()
    })?;
    let user = ConnectOptions::default().user("bench", "bench");
    let bridge = server.bridge_with(&user)?;
    let outcome = act(&server, &bridge);
    server.shutdown();
    outcome
}

/// Emits to one observer, and through a bridge if there is one. Returns the messages per second.
pub(super) fn emit(messages: u64, bridge: Option<&Bridge>) -> f64 {
    let (mut producer, source) = fanline::subject::<Bytes>();
    let binding = bridge.and_then(|bridge| bridge.publish_from(SUBJECT, &source, Raw).ok());
    let mut count = 0_u64;
    let guard = source.subscribe(move |value| {
        count += black_box(value).len() as u64;
        black_box(count);
    });
    let value = Bytes::from_static(&PAYLOAD);
    let start = Instant::now();
    for _ in 0..messages {
        producer.next(value.clone());
    }
    let took = start.elapsed();
    drop((guard, binding));
    messages as f64 / took.as_secs_f64()
}

/// Counts the messages of the server's subject with an observer in this process.
fn observed(bridge: &Bridge) -> Result<(Guard, Arc<AtomicU64>)> {
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let source = bridge.observe(SUBJECT)?;
    let guard = source.subscribe(move |message| {
        black_box(message.payload());
        // Relaxed: a thread that reads the counter relies on no other data of this observer.
        count.fetch_add(1, Ordering::Relaxed);
    });
    Ok((guard, seen))
}

/// Starts a network subscriber that reads the given number of messages. It returns the time of the last
/// message.
fn subscriber(address: SocketAddr, messages: u64) -> Result<JoinHandle<Result<Instant>>> {
    let connection = Connection::open(address)?;
    connection.subscribe(SUBJECT, None, 1)?;
    let frame = frames::delivery(SUBJECT, 1, &PAYLOAD);
    Ok(std::thread::spawn(move || {
        let streams = [(connection.stream(), frame.as_slice())];
        receive(streams.into_iter(), messages, Verify::Tail)
    }))
}

fn rate(messages: u64, start: Instant, subscriber: JoinHandle<Result<Instant>>) -> Result<f64> {
    let end = subscriber
        .join()
        .map_err(|_| anyhow::anyhow!("the subscriber panicked"))??;
    Ok(messages as f64 / (end - start).as_secs_f64())
}

pub(super) fn raw_socket(server: &Handle, messages: u64) -> Result<f64> {
    let address = server.addresses().clients;
    let subscriber = subscriber(address, messages)?;
    let publisher = Connection::open(address)?;
    let mut stream = publisher.stream();
    let frame = frames::publish(SUBJECT, &PAYLOAD);
    let many = frame.repeat(512);
    let start = Instant::now();
    let mut left = messages * frame.len() as u64;
    while left > 0 {
        let now = left.min(many.len() as u64);
        stream.write_all(&many[..usize::try_from(now)?])?;
        left -= now;
    }
    rate(messages, start, subscriber)
}

pub(super) fn to_network(
    server: &Handle,
    bridge: &Bridge,
    messages: u64,
    slice: usize,
) -> Result<f64> {
    let subscriber = subscriber(server.addresses().clients, messages)?;
    let (mut producer, source) = fanline::subject::<Bytes>();
    let binding = bridge.publish_from(SUBJECT, &source, Raw)?;
    let values = vec![Bytes::from_static(&PAYLOAD); slice];
    let start = Instant::now();
    for _ in 0..messages / slice as u64 {
        match values.as_slice() {
            [value] => producer.next(value.clone()),
            values => producer.next_slice(values),
        }
    }
    let messages = messages / slice as u64 * slice as u64;
    let rate = rate(messages, start, subscriber)?;
    ensure!(binding.published() == messages, "some were not published");
    Ok(rate)
}

/// Returns the median time from before `next` until the observer is called, in nanoseconds.
pub(super) fn round_trip(bridge: &Bridge, round_trips: u64) -> Result<f64> {
    let (_guard, seen) = observed(bridge)?;
    let (mut producer, source) = fanline::subject::<Bytes>();
    let binding = bridge.publish_from(SUBJECT, &source, Raw)?;
    let value = Bytes::from_static(&PAYLOAD);
    let mut nanos = Vec::new();
    for number in 1..=round_trips {
        let start = Instant::now();
        producer.next(value.clone());
        while seen.load(Ordering::Relaxed) < number {
            ensure!(start.elapsed() < TIMEOUT, "no message came back");
            std::hint::spin_loop();
        }
        nanos.push(start.elapsed().as_nanos() as f64);
    }
    drop(binding);
    nanos.sort_by(f64::total_cmp);
    Ok(nanos[nanos.len() / 2])
}
