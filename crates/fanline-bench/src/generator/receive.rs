//! Subscribers that read into one large buffer and count.
//!
//! All messages of a run are equal, so the input of a subscriber repeats one frame. After each read, the last
//! few bytes are compared with the frame at that position. The cost of this check does not depend on the
//! number of messages, and the check fails if a byte was lost or added. During the warm-up, and if the check
//! fails, every byte is compared.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::frames::{PING, PONG};
use super::poller::Poller;

pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Number of bytes that are compared after each read.
const TAIL_BYTES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    /// The last few bytes of every read.
    Tail,
    All,
}

/// Reads on one thread until each of `streams` has received `messages` copies of its frame. Returns the time
/// of the last read.
pub(crate) fn receive<'a>(
    streams: impl Iterator<Item = (&'a TcpStream, &'a [u8])>,
    messages: u64,
    verify: Verify,
) -> Result<Instant> {
    let (streams, mut tallies): (Vec<_>, Vec<_>) = streams
        .map(|(stream, frame)| {
            (
                stream,
                Tally::new(frame, messages * frame.len() as u64, verify),
            )
        })
        .unzip();
    let mut pending = streams.len();
    let mut poller = Poller::new(streams)?;
    let mut ready = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    while pending > 0 {
        poller.wait(&mut ready).with_context(|| {
            let starved = tallies.iter().find(|tally| !tally.is_complete());
            let progress = starved.map(|tally| tally.progress("the first"));
            format!("{pending} starved, {}", progress.unwrap_or_default())
        })?;
        for &index in &ready {
            let tally = &mut tallies[index];
            let read = poller.read(index, &mut buffer);
            let Some(count) = read.with_context(|| tally.progress("a subscriber failed"))? else {
                continue;
            };
            let was_complete = tally.is_complete();
            tally.take(&buffer[..count], poller.stream(index))?;
            pending -= usize::from(!was_complete && tally.is_complete());
        }
    }
    Ok(Instant::now())
}

#[derive(Clone)]
struct Tally<'a> {
    frame: &'a [u8],
    verify: Verify,
    target_bytes: u64,
    received_bytes: u64,
    /// Position of the next byte in the frame.
    phase: usize,
    /// Number of bytes of an incomplete PING at the end of the last read.
    ping_bytes: usize,
}

impl<'a> Tally<'a> {
    fn new(frame: &'a [u8], target_bytes: u64, verify: Verify) -> Self {
        Self {
            frame,
            verify,
            target_bytes,
            received_bytes: 0,
            phase: 0,
            ping_bytes: 0,
        }
    }

    fn is_complete(&self) -> bool {
        self.received_bytes >= self.target_bytes
    }

    /// Counts the bytes of one read, and answers the PINGs among them.
    fn take(&mut self, bytes: &[u8], mut stream: &TcpStream) -> Result<()> {
        if bytes.is_empty() {
            bail!(self.progress("the server closed a subscriber"));
        }
        if self.verify == Verify::Tail && self.ping_bytes == 0 && self.tail_matches(bytes) {
            self.received_bytes += bytes.len() as u64;
            self.phase = (self.phase + bytes.len()) % self.frame.len();
        } else {
            for _ in 0..self.compare_all(bytes)? {
                stream.write_all(PONG)?;
            }
        }
        if self.received_bytes > self.target_bytes {
            bail!(self.progress("more was delivered than was published"));
        }
        Ok(())
    }

    fn tail_matches(&self, bytes: &[u8]) -> bool {
        let end = (self.phase + bytes.len()) % self.frame.len();
        let count = TAIL_BYTES.min(bytes.len()).min(self.frame.len());
        let tail = &bytes[bytes.len() - count..];
        let (before, after) = tail.split_at(count.saturating_sub(end));
        self.frame.ends_with(before) && self.frame[..end].ends_with(after)
    }

    /// Compares every byte. Returns the number of complete PINGs between the messages.
    fn compare_all(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut rest = bytes;
        let mut pings = 0;
        while !rest.is_empty() {
            let in_ping = self.ping_bytes > 0 || (self.phase == 0 && rest[0] == PING[0]);
            let expected = if in_ping {
                &PING[self.ping_bytes..]
            } else {
                &self.frame[self.phase..]
            };
            let count = expected.len().min(rest.len());
            if rest[..count] != expected[..count] {
                let shown = String::from_utf8_lossy(&rest[..rest.len().min(80)]);
                bail!(self.progress(&format!("unexpected bytes {shown:?}")));
            }
            if in_ping {
                self.ping_bytes = (self.ping_bytes + count) % PING.len();
                pings += usize::from(self.ping_bytes == 0);
            } else {
                self.received_bytes += count as u64;
                self.phase = (self.phase + count) % self.frame.len();
            }
            rest = &rest[count..];
        }
        Ok(pings)
    }

    fn progress(&self, what: &str) -> String {
        let (received, target) = (self.received_bytes, self.target_bytes);
        format!("{what} after {received} of {target} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_between_messages_is_not_counted() {
        let frame = b"MSG a 1 12\r\nabcdefghijkl\r\n";
        let mut stream = frame.repeat(3);
        stream.splice(frame.len() * 2..frame.len() * 2, PING.iter().copied());
        for cut in 1..stream.len() {
            let mut tally = Tally::new(frame, frame.len() as u64 * 3, Verify::Tail);
            let mut pings = 0;
            for part in [&stream[..cut], &stream[cut..]] {
                if tally.ping_bytes == 0 && tally.tail_matches(part) {
                    tally.received_bytes += part.len() as u64;
                    tally.phase = (tally.phase + part.len()) % frame.len();
                } else {
                    pings += tally.compare_all(part).unwrap();
                }
            }
            assert_eq!((cut, pings, tally.is_complete()), (cut, 1, true));
            assert_eq!(tally.received_bytes, tally.target_bytes);
        }
    }
}
