//! Requests on one connection, with a fixed number of requests in flight. A publish to a stream is also a
//! request.

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use hdrhistogram::Histogram;

use super::connection::Connection;
use super::incoming::{Delivered, Incoming};
use super::{Outcome, frames};

/// Largest number of requests in flight at which each request is timed. With more requests, timing would
/// distort the result.
const TIMED_MAX: usize = 64;

/// Prefix of reply subjects. It is as long as the random inboxes of official clients.
const INBOX: &str = "_INBOX.FanlineBenchGenerator0";

/// Number of digits at the end of a reply subject. These digits are the number of the request.
const NUMBER_BYTES: usize = 8;

/// A sequence of requests that is sent repeatedly.
pub(crate) struct RequestSequence {
    /// Complete requests, one after the other.
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// Number of requests that were sent so far.
    requests: u64,
    /// Reply subjects without their last token.
    inbox: String,
}

struct Place {
    /// Position of the request's number in its reply subject.
    number: usize,
    end: usize,
}

impl RequestSequence {
    /// Creates `count` requests to the subjects that `subject` returns. Each time a request is sent, it has a
    /// new reply subject, as with official clients. So the server cannot cache the recipient.
    pub(crate) fn new(count: usize, payload: &[u8], subject: impl Fn(usize) -> String) -> Self {
        Self::answered_at(INBOX, count, payload, subject)
    }

    /// Does the same as [`new`](Self::new), for one of several connections at the same time. No other connection has
    /// `inbox`.
    pub(crate) fn answered_at(
        inbox: &str,
        count: usize,
        payload: &[u8],
        subject: impl Fn(usize) -> String,
    ) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(count));
        for index in 0..count {
            let subject = subject(index);
            let reply = format!("{inbox}.{:0NUMBER_BYTES$}", 0);
            let number = bytes.len() + format!("PUB {subject} {inbox}.").len();
            bytes.extend(frames::request(&subject, &reply, payload));
            let end = bytes.len();
            places.push(Place { number, end });
        }
        Self {
            bytes,
            places,
            requests: 0,
            inbox: inbox.to_owned(),
        }
    }

    /// Returns a filter of all reply subjects.
    pub(super) fn replies(&self) -> String {
        format!("{}.*", self.inbox)
    }

    /// Returns the bytes of the next requests, at most `most` requests, and the number of these requests.
    pub(super) fn next(&mut self, most: usize) -> (&[u8], usize) {
        let from = usize::try_from(self.requests % self.places.len() as u64).unwrap_or(0);
        let to = self.places.len().min(from + most);
        for place in &self.places[from..to] {
            let digits = &mut self.bytes[place.number..place.number + NUMBER_BYTES];
            write_number(digits, self.requests);
            self.requests += 1;
        }
        let start = from.checked_sub(1).map_or(0, |at| self.places[at].end);
        let end = to.checked_sub(1).map_or(0, |at| self.places[at].end);
        (&self.bytes[start..end], to - from)
    }
}

/// Writes the last digits of a number into `digits`.
fn write_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Until {
    Count(u64),
    Time(Duration),
}

pub(crate) struct Window {
    connection: Connection,
    requests: RequestSequence,
    in_flight: usize,
    /// Returns an error if a response is wrong.
    check: fn(&Delivered<'_>) -> Result<()>,
}

impl Window {
    pub(crate) fn open(
        address: SocketAddr,
        requests: RequestSequence,
        in_flight: usize,
        check: fn(&Delivered<'_>) -> Result<()>,
    ) -> Result<Self> {
        let connection = Connection::open(address)?;
        connection.subscribe(&requests.replies(), None, 1)?;
        Ok(Self {
            connection,
            requests,
            in_flight,
            check,
        })
    }

    /// Sends requests and waits for the last response. The latency is empty if more than `TIMED_MAX` requests
    /// are in flight.
    pub(crate) fn run(&mut self, until: Until) -> Result<Outcome> {
        let mut stream = self.connection.stream();
        let mut incoming = Incoming::new(stream);
        let mut starts = (self.in_flight <= TIMED_MAX).then(VecDeque::new);
        let mut latency = Histogram::new(3)?;
        let start = Instant::now();
        let (mut sent, mut answered) = (0_u64, 0_u64);
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
                let (bytes, count) = self.requests.next(room);
                stream.write_all(bytes)?;
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
        Ok(Outcome {
            messages: answered,
            elapsed: start.elapsed(),
            latency: Some(latency),
        })
    }
}

/// Checks that the response confirms that a message was stored.
pub(crate) fn is_stored(answer: &Delivered<'_>) -> Result<()> {
    if !answer.payload.starts_with(br#"{"stream""#) {
        bail!("not stored: {}", String::from_utf8_lossy(answer.payload));
    }
    Ok(())
}

pub(crate) fn is_message(answer: &Delivered<'_>) -> Result<()> {
    ensure!(
        !answer.payload.is_empty(),
        "no such message: {}",
        String::from_utf8_lossy(answer.headers)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_continuously() {
        let mut requests = RequestSequence::new(2, b"x", |index| format!("s{index}"));
        let mut check = |most, expected: &[(usize, u32)]| {
            let (bytes, count) = requests.next(most);
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let request =
                |(subject, number)| format!("PUB s{subject} {INBOX}.{number:08} 1\r\nx\r\n");
            let requests = expected.iter().copied().map(request);
            assert_eq!((text, count), (requests.collect(), expected.len()));
        };
        check(1, &[(0, 0)]);
        check(5, &[(1, 1)]);
        check(5, &[(0, 2), (1, 3)]);
    }
}
