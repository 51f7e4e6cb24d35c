//! Allocations of messages with QoS 0 from and to MQTT clients, and of responses.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::{AccountId, ConnectionKind};
use fanline_engine::jetstream::{Handler, Message, Now, Ports};
use fanline_engine::{
    Auth, BatchCursor, Chunk, JetStreamService, Limits, Peer, ServerInfo, SessionId, Shard,
    ShardConfig,
};

use crate::allocations;

const MESSAGES: usize = 100_000;
const FRAMES_PER_READ: usize = 20;
const PAYLOAD: &[u8] = &[b'x'; 128];
const NOW: Now = Now {
    since_start: Duration::ZERO,
    unix_nanos: 1_700_000_000_000_000_000,
};

/// A JetStream handler that stores nothing. Messages with QoS 0 need no storage.
struct NoStreams;

impl Handler for NoStreams {
    fn handle(&mut self, _: AccountId, _: &Message<'_>, _: Now, _: &mut dyn Ports) {}
    fn handle_interest(&mut self, _: AccountId, _: &[u8], _: bool, _: Now, _: &mut dyn Ports) {}
    fn handle_timeout(&mut self, _: Now, _: &mut dyn Ports) {}
    fn next_timeout(&self) -> Option<Duration> {
        None
    }
    fn settle(&mut self, _: Now, _: &mut dyn Ports) {}
}

/// A shard, and a JetStream service for the MQTT sessions.
struct Simulation {
    shard: Shard,
    service: JetStreamService<NoStreams>,
    delivered_bytes: usize,
}

/// Protocol of a client: NATS, or MQTT with a protocol level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Nats,
    Mqtt(u8),
}

impl Simulation {
    fn new() -> Self {
        let config = Arc::new(ShardConfig {
            limits: Limits::default(),
            auth: Auth::Open,
            shards: 2,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        });
        Simulation {
            service: JetStreamService::new(1, &config, 7, |_| NoStreams),
            shard: Shard::new(0, config, ServerInfo::default(), 7),
            delivered_bytes: 0,
        }
    }

    fn send(&mut self, id: SessionId, input: &Chunk) {
        let mut from = 0;
        while from < input.len() {
            let range = from..input.len();
            from += self
                .shard
                .receive(id, input, range, Duration::ZERO)
                .consumed;
            self.write();
        }
    }

    /// Discards the pending output of clients.
    fn write(&mut self) {
        while let Some(id) = self.shard.next_dirty() {
            let out = self.shard.outbox(id);
            let bytes = out.pending_bytes();
            out.advance(bytes);
            self.delivered_bytes += bytes;
            self.shard.written(id, Duration::ZERO);
        }
    }

    /// Exchanges batches between the shard and the service.
    fn exchange(&mut self) {
        let batch = std::mem::take(self.shard.outgoing(1));
        let mut cursor = BatchCursor::default();
        while self.service.apply(&batch, &mut cursor, NOW).must_flush {}
        self.service.settle(NOW);
        for batch in [
            std::mem::take(self.service.announcements(0)),
            std::mem::take(self.service.outgoing(0)),
        ] {
            let mut cursor = BatchCursor::default();
            while self.shard.apply(&batch, &mut cursor).must_flush {}
        }
        self.write();
    }

    /// Connects a client. It also subscribes if `is_subscriber` is set.
    fn client(&mut self, protocol: Protocol, number: u8, is_subscriber: bool) -> SessionId {
        let peer = Peer {
            kind: match protocol {
                Protocol::Nats => ConnectionKind::Standard,
                Protocol::Mqtt(_) => ConnectionKind::Mqtt,
            },
            ..Peer::default()
        };
        let id = self
            .shard
            .open(u64::from(number) + 1, peer, false, Duration::ZERO);
        let connect = match protocol {
            Protocol::Nats => b"CONNECT {\"verbose\":false,\"headers\":true}\r\n".to_vec(),
            Protocol::Mqtt(level) => {
                let mut body = b"\0\x04MQTT".to_vec();
                body.extend_from_slice(&[level, 2, 0, 0]);
                body.extend_from_slice(no_properties(level));
                body.extend_from_slice(&[0, 1, b'a' + number]);
                packet(0x10, &body)
            }
        };
        self.send(id, &Chunk::new(connect.into()));
        self.exchange();
        if is_subscriber {
            let subscribe = match protocol {
                Protocol::Nats => b"SUB a.b 1\r\n".to_vec(),
                Protocol::Mqtt(level) => {
                    let mut body = vec![0, 1];
                    body.extend_from_slice(no_properties(level));
                    body.extend_from_slice(b"\0\x03a/b\0");
                    packet(0x82, &body)
                }
            };
            self.send(id, &Chunk::new(subscribe.into()));
            self.exchange();
        }
        id
    }
}

fn no_properties(level: u8) -> &'static [u8] {
    match level {
        5 => &[0],
        _ => &[],
    }
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("short");
    let mut packet = vec![first];
    let [high, low] = ((length & 0x7F) | ((length >> 7) << 8)).to_be_bytes();
    match high {
        0 => packet.push(low),
        high => packet.extend_from_slice(&[low | 0x80, high]),
    }
    packet.extend_from_slice(body);
    packet
}

fn publish(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Nats => [&b"PUB a.b 128\r\n"[..], PAYLOAD, b"\r\n"].concat(),
        Protocol::Mqtt(level) => {
            let body = [&b"\0\x03a/b"[..], no_properties(level), PAYLOAD];
            packet(0x30, &body.concat())
        }
    }
}

#[track_caller]
fn check(from: Protocol, to: &[Protocol]) {
    let mut simulation = Simulation::new();
    for (number, protocol) in (1..).zip(to) {
        simulation.client(*protocol, number, true);
    }
    let publisher = simulation.client(from, 0, false);
    let frames = Chunk::new(publish(from).repeat(FRAMES_PER_READ).into());
    let warm_up = Chunk::new(publish(from).repeat(8 * FRAMES_PER_READ).into());
    for _ in 0..100 {
        simulation.send(publisher, &warm_up);
    }
    simulation.delivered_bytes = 0;
    let allocations = allocations(|| {
        for _ in 0..MESSAGES / FRAMES_PER_READ {
            simulation.send(publisher, &frames);
        }
    });
    let least = MESSAGES * to.len() * PAYLOAD.len();
    assert!(simulation.delivered_bytes > least, "{from:?} to {to:?}");
    assert_eq!(allocations, 0, "{from:?} to {to:?}");
}

#[test]
fn messages_between_mqtt_clients_allocate_nothing() {
    for level in [4, 5] {
        check(Protocol::Mqtt(level), &[Protocol::Mqtt(level)]);
        check(Protocol::Mqtt(level), &[Protocol::Mqtt(level); 4]);
        check(Protocol::Mqtt(9 - level), &[Protocol::Mqtt(level)]);
    }
}

#[test]
fn messages_across_protocols_allocate_nothing() {
    for level in [4, 5] {
        check(Protocol::Nats, &[Protocol::Mqtt(level)]);
        check(Protocol::Nats, &[Protocol::Mqtt(level); 4]);
        check(Protocol::Mqtt(level), &[Protocol::Nats]);
        check(
            Protocol::Mqtt(level),
            &[Protocol::Nats, Protocol::Mqtt(level)],
        );
    }
}

/// Regression: the outbox allocated a buffer for each response, which then became a spare buffer of the shard.
/// The spare buffers grew to 32 MiB.
#[test]
fn responses_to_mqtt_clients_allocate_nothing() {
    let mut simulation = Simulation::new();
    let client = simulation.client(Protocol::Mqtt(4), 0, false);
    let ping = Chunk::new(packet(0xC0, b"").into());
    simulation.send(client, &ping);
    simulation.delivered_bytes = 0;
    let allocations = allocations(|| {
        for _ in 0..1000 {
            simulation.send(client, &ping);
        }
    });
    assert_eq!((simulation.delivered_bytes, allocations), (2000, 0));
}
