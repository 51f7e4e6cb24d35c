//! Requests from one connection, a fixed number of them under way: publishing to a stream is one kind.

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use hdrhistogram::Histogram;

use super::connection::Connection;
use super::frames;
use super::incoming::{Delivered, Incoming};
use super::requests::Answers;

/// Up to so many under way, each is timed: with more, taking the time would cost more than it tells.
const TIMED_MAX: usize = 64;

/// As long as those that official clients draw at random.
const INBOX: &str = "_INBOX.FanlineBenchGenerator0";

/// What is asked, over and over.
#[derive(Clone)]
pub(crate) struct Asked {
    /// Whole requests, one after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Asked {
    /// `count` requests, each with a reply subject of its own, to the subjects that `subject` gives.
    pub(crate) fn new(count: usize, payload: &[u8], subject: impl Fn(usize) -> String) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(count));
        for index in 0..count {
            let reply = format!("{INBOX}.{index:06}");
            bytes.extend(frames::request(&subject(index), &reply, payload));
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    /// The bytes of requests `from..to`.
    fn slice(&self, from: usize, to: usize) -> &[u8] {
        let start = from.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = to.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.bytes[start..end]
    }
}

/// When to stop asking.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// So many have been asked.
    Count(u64),
    /// So long has passed.
    Time(Duration),
}

/// One connection that asks.
pub(crate) struct Window {
    connection: Connection,
    asked: Asked,
    in_flight: usize,
    /// Fails on an answer that is not the right one.
    check: fn(&Delivered<'_>) -> Result<()>,
}

impl Window {
    /// Connects.
    pub(crate) fn open(
        address: SocketAddr,
        asked: Asked,
        in_flight: usize,
        check: fn(&Delivered<'_>) -> Result<()>,
    ) -> Result<Self> {
        let connection = Connection::open(address)?;
        connection.subscribe(&format!("{INBOX}.*"), None, 1)?;
        Ok(Self {
            connection,
            asked,
            in_flight,
            check,
        })
    }

    /// Asks, and waits for the last answer. The latency is empty when there are too many under way.
    pub(crate) fn run(&self, until: Until) -> Result<Answers> {
        let mut stream = self.connection.stream();
        let mut incoming = Incoming::new(stream);
        let mut starts = (self.in_flight <= TIMED_MAX).then(VecDeque::new);
        let mut latency = Histogram::new(3)?;
        let start = Instant::now();
        let (mut sent, mut answered) = (0_u64, 0_u64);
        let mut next = 0;
        loop {
            let mut room = self.in_flight - usize::try_from(sent - answered)?;
            match until {
                Until::Count(count) => room = room.min(usize::try_from(count - sent)?),
                Until::Time(time) if start.elapsed() >= time => room = 0,
                Until::Time(_) => {}
            }
            if room == 0 && sent == answered {
                break;
            }
            if let Some(starts) = &mut starts {
                starts.extend(std::iter::repeat_n(Instant::now(), room));
            }
            sent += room as u64;
            while room > 0 {
                let count = room.min(self.asked.ends.len() - next);
                stream.write_all(self.asked.slice(next, next + count))?;
                next = (next + count) % self.asked.ends.len();
                room -= count;
            }
            incoming.read()?;
            let before = answered;
            while let Some(answer) = incoming.next()? {
                (self.check)(&answer)?;
                answered += 1;
            }
            if let Some(starts) = &mut starts {
                let now = Instant::now();
                for asked_at in starts.drain(..usize::try_from(answered - before)?) {
                    latency.record(u64::try_from((now - asked_at).as_nanos())?)?;
                }
            }
        }
        Ok(Answers {
            requests: answered,
            elapsed: start.elapsed(),
            latency,
        })
    }
}

/// That a message was stored.
pub(crate) fn is_stored(answer: &Delivered<'_>) -> Result<()> {
    if !answer.payload.starts_with(br#"{"stream""#) {
        bail!("not stored: {}", String::from_utf8_lossy(answer.payload));
    }
    Ok(())
}

/// That a stored message came.
pub(crate) fn is_message(answer: &Delivered<'_>) -> Result<()> {
    ensure!(
        !answer.payload.is_empty(),
        "no such message: {}",
        String::from_utf8_lossy(answer.headers)
    );
    Ok(())
}
