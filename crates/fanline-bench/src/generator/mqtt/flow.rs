//! Messages of QoS 1 or 2 from one client to another, with a fixed number of messages in flight.

use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::Connection;
use super::incoming::Incoming;
use super::packets::{self, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL};
use crate::generator::Outcome;
use crate::generator::connection::hang_up;

const TOPIC: &str = "flow/a";

const IN_FLIGHT: u64 = 100;

pub(crate) struct Flow {
    /// QoS of the messages: 1 or 2.
    qos: u8,
    publisher: Connection,
    /// The subscriber, whose session outlives this connection.
    subscriber: Connection,
    payload: Vec<u8>,
    /// The last message of a run. When it arrives, the subscriber stops.
    last: Vec<u8>,
}

impl Flow {
    pub(crate) fn open(address: SocketAddr, qos: u8, payload_bytes: usize) -> Result<Self> {
        let subscriber = Connection::open(address, "subscriber", false)?;
        subscriber.subscribe(TOPIC, qos)?;
        let publisher = Connection::open(address, "publisher", true)?;
        Ok(Self {
            qos,
            publisher,
            subscriber,
            payload: crate::generator::frames::payload(payload_bytes),
            last: vec![b'!'; payload_bytes],
        })
    }

    /// Publishes for `duration`. Measures from the first write until both clients have completed the
    /// handshake of the last message.
    pub(crate) fn run(&self, duration: Duration) -> Result<Outcome> {
        let start = Instant::now();
        let (received, sent) = thread::scope(|scope| {
            let receiving = scope.spawn(|| self.hang_up_on_error(self.receive()));
            let sent = self.hang_up_on_error(self.publish(start, duration));
            (receiving.join(), sent)
        });
        let received = received.map_err(|_| anyhow!("the subscriber has panicked"))?;
        // If one client fails, it also closes the connection of the other, which then fails too. The
        // publisher's error is returned first.
        let (sent, received) = (sent?, received?);
        ensure!(sent == received, "{received} of {sent} messages arrived");
        Ok(Outcome::untimed(sent, start.elapsed()))
    }

    fn hang_up_on_error<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            hang_up([self.publisher.stream(), self.subscriber.stream()]);
        }
        result
    }

    fn publish(&self, start: Instant, duration: Duration) -> Result<u64> {
        let (usual, place) = packets::numbered_publish(TOPIC, &self.payload, self.qos);
        let (last, _) = packets::numbered_publish(TOPIC, &self.last, self.qos);
        let mut stream = self.publisher.stream();
        let mut incoming = Incoming::new(stream);
        let (mut sent, mut done, mut is_over) = (0, 0, false);
        let mut out = Vec::new();
        loop {
            let is_late = start.elapsed() >= duration;
            while !is_over && sent - done < IN_FLIGHT {
                let at = out.len() + place;
                out.extend_from_slice(if is_late { &last } else { &usual });
                out[at..at + 2].copy_from_slice(&packet_id(sent)?.to_be_bytes());
                sent += 1;
                is_over = is_late;
            }
            stream.write_all(&out).context("the publisher")?;
            out.clear();
            if is_over && sent == done {
                return Ok(sent);
            }
            incoming.read().context("the publisher")?;
            while let Some(packet) = incoming.next()? {
                match packet.kind() {
                    PUBACK | PUBCOMP => done += 1,
                    PUBREC => packets::push_answer(&mut out, PUBREL, packet.packet_id()?),
                    _ => bail!("the publisher received {:#04x}", packet.first),
                }
            }
        }
    }

    fn receive(&self) -> Result<u64> {
        let mut stream = self.subscriber.stream();
        let mut incoming = Incoming::new(stream);
        let (mut received, mut completed, mut is_over) = (0, 0, false);
        let mut out = Vec::new();
        while !is_over || completed < received {
            incoming.read().context("the subscriber")?;
            while let Some(packet) = incoming.next()? {
                match packet.kind() {
                    PUBLISH => {
                        let (id, payload) = packet.numbered()?;
                        is_over = payload == self.last;
                        ensure!(is_over || payload == self.payload, "unexpected payload");
                        received += 1;
                        let is_once = self.qos == 1;
                        completed += u64::from(is_once);
                        let answer = if is_once { PUBACK } else { PUBREC };
                        packets::push_answer(&mut out, answer, id);
                    }
                    PUBREL => {
                        completed += 1;
                        packets::push_answer(&mut out, PUBCOMP, packet.packet_id()?);
                    }
                    _ => bail!("the subscriber received {:#04x}", packet.first),
                }
            }
            stream.write_all(&out).context("the subscriber")?;
            out.clear();
        }
        Ok(received)
    }
}

/// Returns the packet identifier for a message number. Identifiers wrap around, and are never 0.
fn packet_id(number: u64) -> Result<u16> {
    Ok(u16::try_from(number % u64::from(u16::MAX))? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_ids_wrap_around_and_skip_0() {
        for (number, expected) in [(0, 1), (65_534, 65_535), (65_535, 1)] {
            assert_eq!(packet_id(number).unwrap(), expected);
        }
    }
}
