//! What many streams and consumers cost while nothing happens.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::measure::Stage;
use super::rows::Items;
use super::trio::{Client, Trio};
use crate::comparison::cost::SETTLE;
use crate::report::metric::{Metric, Sample};
use crate::servers::cpu::CpuClock;
use crate::servers::process::Server;

const STREAM: &str = "idle";

const COUNT: usize = 10_000;
const COUNT_QUICK: usize = 200;

/// Number of items that are created at the same time.
const CREATORS: usize = 8;

/// Time after which no more items are created.
const CREATE_LIMIT: Duration = Duration::from_secs(60);

/// How long idle servers are observed.
const IDLE: Duration = Duration::from_secs(10);
const IDLE_QUICK: Duration = Duration::from_secs(3);

/// Creates items, and compares the idle servers before and after.
pub(super) fn measure(stage: &Stage<'_>, trio: &Trio, items: Items) -> Result<Sample> {
    let (count, time) = match stage.quick {
        true => (COUNT_QUICK, IDLE_QUICK),
        false => (COUNT, IDLE),
    };
    trio.create(STREAM)?;
    let none = Idle::observe(trio.servers(), time)?;
    let start = Instant::now();
    let created = create(trio.address(0), items, count)?;
    let elapsed = start.elapsed();
    let many = Idle::observe(trio.servers(), time)?;
    let mut sample = Sample::default();
    sample.set_rate(created as u64, elapsed);
    sample.set(Metric::Elements, created as f64);
    let copies = (created * trio.servers().len()) as f64;
    sample.set(
        Metric::ItemMemory,
        (many.memory - none.memory).max(0.0) / copies,
    );
    sample.set(Metric::IdleCpu, many.cpu);
    sample.set(Metric::IdleCpuAgainstNone, many.cpu / none.cpu);
    sample.set(Metric::IdleTraffic, many.traffic);
    sample.set(Metric::IdleTrafficAgainstNone, many.traffic / none.traffic);
    Ok(sample)
}

/// Creates items until there are `count`, or the time is over. Returns their number.
fn create(address: SocketAddr, items: Items, count: usize) -> Result<usize> {
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    let work = || -> Result<usize> {
        let (mut client, mut created) = (Client::open(address)?, 0);
        while start.elapsed() < CREATE_LIMIT {
            // Relaxed: the number is independent of other data.
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            match items {
                Items::Streams => {
                    let stream = format!("{STREAM}{number}");
                    client.create_stream(&stream)?;
                    client.create_consumer(&stream, "durable")?;
                }
                Items::Consumers => client.create_consumer(STREAM, &format!("durable{number}"))?,
            }
            created += 1;
        }
        Ok(created)
    };
    thread::scope(|scope| {
        let creators: Vec<_> = (0..CREATORS).map(|_| scope.spawn(work)).collect();
        let mut created = 0;
        for creator in creators {
            created += creator.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(created)
    })
}

/// The costs of idle servers, of all of them together.
struct Idle {
    /// Resident bytes.
    memory: f64,
    /// CPU nanoseconds per second.
    cpu: f64,
    /// Bytes per second.
    traffic: f64,
}

impl Idle {
    /// Waits until the servers have finished what they do after requests, and then observes them.
    fn observe(servers: &[Server], time: Duration) -> Result<Self> {
        thread::sleep(SETTLE);
        let clocks = || servers.iter().map(Server::cpu).collect::<Result<Vec<_>>>();
        let (cpu, traffic, start) = (clocks()?, loopback_bytes()?, Instant::now());
        thread::sleep(time);
        let seconds = start.elapsed().as_secs_f64();
        let traffic = (loopback_bytes()? - traffic) as f64;
        let since = |(now, before): (CpuClock, CpuClock)| now.nanos_since(&before) as f64;
        let nanos: f64 = clocks()?.into_iter().zip(cpu).map(since).sum();
        let memory = servers.iter().map(|server| Ok(server.memory()?.resident));
        Ok(Self {
            memory: memory.sum::<Result<u64>>()? as f64,
            cpu: nanos / seconds,
            traffic: traffic / seconds,
        })
    }
}

/// Returns the number of bytes that the loopback interface has sent.
fn loopback_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/net/dev")?;
    let lines = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("lo:"));
    let mut fields = lines.flat_map(str::split_whitespace);
    // The eight fields of received packets come first.
    Ok(fields.nth(8).context("no loopback interface")?.parse()?)
}
