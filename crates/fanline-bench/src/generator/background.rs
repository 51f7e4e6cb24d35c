//! Messages at a fixed rate, beside the measured load.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use super::connection::{Connection, hang_up};
use super::frames;

const SUBJECT: &str = "background";

/// Time between two writes of the publisher.
const INTERVAL: Duration = Duration::from_millis(1);

/// The part of the messages that must be published, and received, during the work. Otherwise the servers did not
/// carry the load, and other results mean nothing.
const SHARE_MIN: f64 = 0.8;

/// A publisher and a subscriber.
pub(crate) struct Background {
    publisher: Connection,
    subscriber: Connection,
    payload_bytes: usize,
    messages_per_second: f64,
}

impl Background {
    /// Connects and subscribes. If both are at different servers, the caller must wait until these know the interest
    /// of each other.
    pub(crate) fn open(
        publisher_at: SocketAddr,
        subscriber_at: SocketAddr,
        payload_bytes: usize,
        messages_per_second: u32,
    ) -> Result<Self> {
        let subscriber = Connection::open(subscriber_at)?;
        subscriber.subscribe(SUBJECT, None, 1)?;
        Ok(Self {
            publisher: Connection::open(publisher_at)?,
            subscriber,
            payload_bytes,
            messages_per_second: f64::from(messages_per_second),
        })
    }

    /// Publishes while `work` runs.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let stopping = AtomicBool::new(false);
        let start = Instant::now();
        thread::scope(|scope| {
            let publishing = scope.spawn(|| self.publish(start, &stopping));
            let receiving = scope.spawn(|| self.receive(&stopping));
            let result = work();
            let expected = start.elapsed().as_secs_f64() * self.messages_per_second;
            // Release, for the Acquire in the threads: one that gets the error of a closed socket sees the flag.
            stopping.store(true, Ordering::Release);
            hang_up([self.publisher.stream(), self.subscriber.stream()]);
            let panicked = |_| anyhow!("a thread of the background load panicked");
            let published = publishing.join().map_err(panicked)??;
            let received = receiving.join().map_err(panicked)??;
            let result = result?;
            ensure!(
                published.min(received) >= expected * SHARE_MIN,
                "of {expected:.0} messages, {published:.0} were published and {received:.0} received"
            );
            Ok(result)
        })
    }

    /// Publishes until `stopping` is set. Returns the number of messages.
    fn publish(&self, start: Instant, stopping: &AtomicBool) -> Result<f64> {
        let frame = frames::publish(SUBJECT, &frames::payload(self.payload_bytes));
        let (mut published, mut out) = (0.0, Vec::new());
        while !stopping.load(Ordering::Acquire) {
            let due = start.elapsed().as_secs_f64() * self.messages_per_second;
            out.clear();
            while published < due {
                out.extend_from_slice(&frame);
                published += 1.0;
            }
            match self.publisher.stream().write_all(&out) {
                Err(_) if stopping.load(Ordering::Acquire) => break,
                other => other?,
            }
            thread::sleep(INTERVAL);
        }
        Ok(published)
    }

    /// Reads until `stopping` is set. Returns the number of messages.
    fn receive(&self, stopping: &AtomicBool) -> Result<f64> {
        let frame = frames::delivery(SUBJECT, 1, &frames::payload(self.payload_bytes));
        let (mut bytes, mut buffer) = (0, vec![0; 256 * 1024]);
        while !stopping.load(Ordering::Acquire) {
            match self.subscriber.stream().read(&mut buffer) {
                Ok(0) if stopping.load(Ordering::Acquire) => break,
                Ok(0) => return Err(anyhow!("the server closed the connection")),
                Ok(count) => bytes += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if stopping.load(Ordering::Acquire) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes as f64 / frame.len() as f64)
    }
}
