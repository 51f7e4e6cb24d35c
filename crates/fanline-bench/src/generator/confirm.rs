//! Workers that share a durable consumer. Each one pulls a message, acknowledges it, and waits until the server has
//! confirmed the acknowledgement, before it pulls the next one.

use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use hdrhistogram::Histogram;

use super::Outcome;
use super::connection::Connection;
use super::frames;
use super::incoming::Incoming;

/// Works for `duration`, or until there are no messages left. The latency is that of acknowledgements.
pub(crate) fn work(
    address: SocketAddr,
    stream: &str,
    consumer: &str,
    workers: usize,
    duration: Duration,
) -> Result<Outcome> {
    let workers = (0..workers).map(|number| Worker::open(address, stream, consumer, number));
    let workers = workers.collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    let mut latency = Histogram::new(3)?;
    thread::scope(|scope| {
        let spawn = |worker| scope.spawn(move || Worker::work(worker, start, duration));
        let running: Vec<_> = workers.iter().map(spawn).collect();
        for one in running {
            latency.add(one.join().map_err(|_| anyhow!("a worker panicked"))??)?;
        }
        anyhow::Ok(())
    })?;
    Ok(Outcome {
        messages: latency.len(),
        elapsed: start.elapsed(),
        latency: Some(latency),
    })
}

struct Worker {
    connection: Connection,
    inbox: String,
    request: Vec<u8>,
}

impl Worker {
    fn open(address: SocketAddr, stream: &str, consumer: &str, number: usize) -> Result<Self> {
        let connection = Connection::open(address)?;
        let inbox = format!("_INBOX.FanlineBenchWorker{number:04}");
        connection.subscribe(&inbox, None, 1)?;
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let request = frames::request(&subject, &inbox, br#"{"batch":1,"no_wait":true}"#);
        Ok(Self {
            connection,
            inbox,
            request,
        })
    }

    fn work(&self, start: Instant, duration: Duration) -> Result<Histogram<u64>> {
        let mut latency = Histogram::new(3)?;
        let mut stream = self.connection.stream();
        let mut incoming = Incoming::new(stream);
        while start.elapsed() < duration {
            stream.write_all(&self.request)?;
            let Some(reply) = next_message(&mut incoming)? else {
                break;
            };
            let begun = Instant::now();
            stream.write_all(&frames::request(&reply, &self.inbox, b"+ACK"))?;
            while !is_confirmed(&mut incoming)? {
                incoming.read()?;
            }
            latency.record(u64::try_from(begun.elapsed().as_nanos())?)?;
        }
        Ok(latency)
    }
}

/// Returns the subject for the acknowledgement of the pulled message, or `None` if there are no messages.
fn next_message(incoming: &mut Incoming<'_>) -> Result<Option<String>> {
    loop {
        if let Some(message) = incoming.next()? {
            if message.headers.starts_with(b"NATS/1.0 404") {
                return Ok(None);
            }
            let headers = String::from_utf8_lossy(message.headers);
            ensure!(headers.is_empty(), "instead of a message: {headers}");
            return Ok(Some(String::from_utf8(message.reply().to_vec())?));
        }
        incoming.read()?;
    }
}

/// Returns whether the confirmation of an acknowledgement has arrived.
fn is_confirmed(incoming: &mut Incoming<'_>) -> Result<bool> {
    let Some(answer) = incoming.next()? else {
        return Ok(false);
    };
    let (headers, payload) = (answer.headers, answer.payload);
    ensure!(
        headers.is_empty() && payload.is_empty(),
        "not confirmed: {}{}",
        String::from_utf8_lossy(headers),
        String::from_utf8_lossy(payload)
    );
    Ok(true)
}
