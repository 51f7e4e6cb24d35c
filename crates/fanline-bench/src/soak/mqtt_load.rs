//! MQTT at QoS 1: a publisher, and a subscriber whose session outlives its connection.
//!
//! QoS 1 permits that a message arrives twice. Every message must arrive at least once, and not before the
//! previous one.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::number;
use super::stage::{Stage, TIMEOUT, add, violation};
use crate::generator::mqtt::incoming::Incoming;
use crate::generator::mqtt::packets::{self, CONNACK, PUBACK, PUBLISH, SUBACK};

pub(super) const NAME: &str = "MQTT, QoS 1";
const TOPIC: &str = "soak/mqtt";
/// Number of messages in a batch.
const BATCH: u64 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// Pause before the load checks again whether the server is up.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The publisher and the subscriber. They have a thread of their own, because they block on their sockets.
#[derive(Default)]
pub(super) struct Devices {
    /// Number of messages that the server has acknowledged. Messages are numbered from 1.
    acknowledged: u64,
    /// Number of messages that the subscriber has received, in order.
    received: u64,
}

impl Devices {
    /// Runs the load until the end of the run.
    pub(super) fn keep(mut self, stage: Arc<Stage>) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            while !stage.is_ending() {
                let transitions = stage.run_state().transitions;
                if !transitions.is_multiple_of(2) {
                    thread::sleep(POLL_INTERVAL);
                    continue;
                }
                if let Err(error) = self.play(&stage) {
                    stage.record_fault(NAME, transitions, &error);
                    thread::sleep(POLL_INTERVAL);
                }
            }
        })
    }

    fn play(&mut self, stage: &Stage) -> Result<()> {
        let (to, from) = (connect(stage)?, connect(stage)?);
        let mut subscriber = Incoming::new(&from);
        begin(&from, &mut subscriber, "soak-subscriber", false)?;
        self.subscribe(stage, &from, &mut subscriber)?;
        let mut publisher = Incoming::new(&to);
        begin(&to, &mut publisher, "soak-publisher", true)?;
        while !stage.is_ending() {
            let batch = self.acknowledged + 1..=self.acknowledged + BATCH;
            let mut out = Vec::new();
            for number in batch.clone() {
                let payload = number::payload(0, number);
                let (mut packet, place) = packets::numbered_publish(TOPIC, &payload, 1);
                packet[place..place + 2].copy_from_slice(&packet_id(number)?.to_be_bytes());
                out.extend_from_slice(&packet);
            }
            (&to).write_all(&out)?;
            for number in batch {
                expect_puback(&mut publisher, number)?;
                self.acknowledged = number;
            }
            while self.received < self.acknowledged {
                self.receive(stage, &from, &mut subscriber)?;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Subscribes. Queued messages of the session may arrive before the response.
    fn subscribe(
        &mut self,
        stage: &Stage,
        stream: &TcpStream,
        incoming: &mut Incoming<'_>,
    ) -> Result<()> {
        let mut stream = stream;
        stream.write_all(&packets::subscribe(1, TOPIC, 1))?;
        loop {
            let Some(packet) = incoming.next()? else {
                incoming.read().context("no SUBACK")?;
                continue;
            };
            match packet.kind() {
                SUBACK => {
                    ensure!(
                        packet.body.get(2) == Some(&1),
                        "the server rejected the subscription"
                    );
                    return Ok(());
                }
                PUBLISH => {
                    let (id, payload) = packet.numbered()?;
                    self.take(stage, stream, id, payload)?;
                }
                _ => bail!("the subscriber received {:#04x}", packet.first),
            }
        }
    }

    fn receive(
        &mut self,
        stage: &Stage,
        stream: &TcpStream,
        incoming: &mut Incoming<'_>,
    ) -> Result<()> {
        let waits_for = self.received + 1;
        let late = || format!("message {waits_for} does not arrive");
        incoming.read().with_context(late)?;
        while let Some(packet) = incoming.next()? {
            ensure!(
                packet.kind() == PUBLISH,
                "the subscriber received {:#04x}",
                packet.first
            );
            let (id, payload) = packet.numbered()?;
            self.take(stage, stream, id, payload)?;
        }
        Ok(())
    }

    /// Receives one message and acknowledges it.
    fn take(&mut self, stage: &Stage, mut to: &TcpStream, id: u16, payload: &[u8]) -> Result<()> {
        let Some((0, number)) = number::read(payload) else {
            return Err(violation("a payload that was not published"));
        };
        match number {
            number if number <= self.received => add(&stage.counts.mqtt_repeated, 1),
            number if number == self.received + 1 => {
                self.received = number;
                add(&stage.counts.mqtt, 1);
            }
            number => {
                let gap = format!("message {number} arrived after {}", self.received);
                return Err(violation(gap));
            }
        }
        add(&stage.counts.deliveries, 1);
        let mut out = Vec::new();
        packets::push_answer(&mut out, PUBACK, id);
        to.write_all(&out).context("the subscriber")
    }
}

fn connect(stage: &Stage) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&stage.mqtt, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Connects a client. Bytes after the response stay in `incoming`.
fn begin(
    mut stream: &TcpStream,
    incoming: &mut Incoming<'_>,
    client_id: &str,
    is_clean: bool,
) -> Result<()> {
    stream.write_all(&packets::connect(client_id, is_clean))?;
    loop {
        let Some(packet) = incoming.next()? else {
            incoming.read().context("no CONNACK")?;
            continue;
        };
        ensure!(
            packet.kind() == CONNACK,
            "the server sent {:#04x}",
            packet.first
        );
        ensure!(
            packet.body.get(1) == Some(&0),
            "refused with {:?}",
            packet.body
        );
        return Ok(());
    }
}

fn expect_puback(incoming: &mut Incoming<'_>, number: u64) -> Result<()> {
    loop {
        let Some(packet) = incoming.next()? else {
            incoming.read().context("no PUBACK")?;
            continue;
        };
        ensure!(
            packet.kind() == PUBACK,
            "the publisher received {:#04x}",
            packet.first
        );
        let id = packet.packet_id()?;
        if id != packet_id(number)? {
            return Err(violation(format!(
                "{id} was acknowledged instead of {number}"
            )));
        }
        return Ok(());
    }
}

/// Returns the packet identifier for a message number. Identifiers wrap around, and are never 0.
fn packet_id(number: u64) -> Result<u16> {
    Ok(u16::try_from(number % u64::from(u16::MAX))? + 1)
}
