//! Publishes to a stream at fixed times, whether or not earlier ones are acknowledged.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;

use super::connection::Connection;
use super::incoming::Incoming;
use super::window::{RequestSequence, is_stored};

/// Time limit for the next acknowledgement, also while a stream has no leader.
const LIMIT: Duration = Duration::from_secs(30);

/// Longest time before the end of a leader at which a publish may be due that fails because of it.
const FAILED_BEFORE: Duration = Duration::from_secs(1);

/// Largest number of publishes in one write, if several are due.
const BURST: u32 = 64;

/// What became of each publish.
pub(crate) struct Log {
    start: Instant,
    interval: Duration,
    /// For each publish, the time from the start to its acknowledgement. Later ones were not acknowledged so far.
    stored: Vec<Option<Duration>>,
}

impl Log {
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time at which a publish was due.
    fn due(&self, number: usize) -> Duration {
        self.interval.mul_f64(number as f64)
    }

    /// Returns the publishes that were due after `time`: when they were due and when they were acknowledged.
    fn after(
        &self,
        time: Duration,
    ) -> impl DoubleEndedIterator<Item = (Duration, Option<Duration>)> {
        let due = self.stored.iter().enumerate();
        let due = due.map(|(number, stored)| (self.due(number), *stored));
        due.filter(move |(due, _)| *due > time)
    }

    /// Returns the number of acknowledged publishes that were due after `time`.
    pub(crate) fn stored_after(&self, time: Duration) -> u64 {
        self.after(time)
            .filter(|(_, stored)| stored.is_some())
            .count() as u64
    }

    /// Returns the number of all acknowledged publishes.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.iter().flatten().count() as u64
    }

    /// Returns the times from when publishes were due to their acknowledgement.
    pub(crate) fn latency(&self, after: Duration) -> Result<Histogram<u64>> {
        let mut latency = Histogram::new(3)?;
        for (due, stored) in self.after(after) {
            let stored = stored.context("a publish without an acknowledgement")?;
            latency.record(u64::try_from(stored.saturating_sub(due).as_nanos())?)?;
        }
        Ok(latency)
    }

    /// Returns the time from the first publish that failed to the acknowledgement of the first later one that did
    /// not. If none failed, returns the longest time to an acknowledgement after `killed_at`.
    pub(crate) fn outage(&self, killed_at: Duration) -> Result<Duration> {
        let Some(failed) = self.stored.iter().position(Option::is_none) else {
            let late = self.after(killed_at);
            let late = late.filter_map(|(due, stored)| Some(stored?.saturating_sub(due)));
            return late.max().context("no publish after the end of the leader");
        };
        ensure!(
            self.due(failed) + FAILED_BEFORE > killed_at,
            "a publish failed before the leader was killed"
        );
        let good = self.stored[failed..].iter().flatten().min();
        let good = good.context("no acknowledgement after the first failure")?;
        Ok(good.saturating_sub(self.due(failed)))
    }
}

/// Publishes at each `interval`, until `is_done` returns true. It is called before each wait for an answer, so it
/// can end a server. The log has no publishes after the last acknowledged one.
pub(crate) fn publish(
    address: SocketAddr,
    mut requests: RequestSequence,
    interval: Duration,
    is_done: impl FnMut(&Log) -> Result<bool>,
) -> Result<Log> {
    let connection = Connection::open(address)?;
    connection.subscribe(&requests.replies(), None, 1)?;
    connection.stream().set_read_timeout(Some(LIMIT))?;
    let stopping = AtomicBool::new(false);
    let start = Instant::now();
    let mut log = Log {
        start,
        interval,
        stored: Vec::new(),
    };
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&connection, &mut requests, start, interval, &stopping));
        let received = receive(&connection, &mut log, is_done);
        // Relaxed: the flag is independent of other data.
        stopping.store(true, Ordering::Relaxed);
        let sent = sending.join();
        sent.map_err(|_| anyhow!("the publisher panicked"))??;
        received
    })?;
    Ok(log)
}

/// Publishes until `stopping` is set.
fn send(
    connection: &Connection,
    requests: &mut RequestSequence,
    start: Instant,
    interval: Duration,
    stopping: &AtomicBool,
) -> Result<()> {
    let mut sent = 0;
    while !stopping.load(Ordering::Relaxed) {
        let due = start + interval * sent;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut late = 1;
        while start + interval * (sent + late) <= Instant::now() && late < BURST {
            late += 1;
        }
        let (bytes, count) = requests.next(late as usize);
        connection.stream().write_all(bytes)?;
        sent += u32::try_from(count)?;
    }
    Ok(())
}

/// Enters acknowledgements until `is_done` returns true.
fn receive(
    connection: &Connection,
    log: &mut Log,
    mut is_done: impl FnMut(&Log) -> Result<bool>,
) -> Result<()> {
    let mut incoming = Incoming::new(connection.stream());
    while !is_done(log)? {
        incoming.read().context("no acknowledgement")?;
        let now = log.elapsed();
        while let Some(answer) = incoming.next()? {
            if is_stored(&answer).is_err() {
                continue;
            }
            let digits = answer.subject().rsplit(|byte| *byte == b'.').next();
            let number = std::str::from_utf8(digits.unwrap_or_default())?.parse::<usize>()?;
            if log.stored.len() <= number {
                log.stored.resize(number + 1, None);
            }
            log.stored[number] = Some(now);
        }
    }
    Ok(())
}
