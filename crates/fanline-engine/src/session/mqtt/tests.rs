//! MQTT sessions on a shard with the JetStream service, as MQTT and NATS clients observe them.

use std::sync::Arc;
use std::time::Duration;

use crate::auth::{Access, ConnectionKind};
use crate::jetstream::{Handler, JetStreams, Now, Settings};
use crate::{
    Auth, BatchCursor, Chunk, JetStreamService, Limits, Peer, ServerInfo, SessionId, Shard,
    ShardConfig,
};

const NOW: Now = Now {
    since_start: Duration::ZERO,
    unix_nanos: 1_700_000_000_000_000_000,
};

struct Simulation {
    shard: Shard,
    service: JetStreamService<JetStreams>,
}

impl Simulation {
    /// Creates a server that stores the MQTT streams in memory.
    fn new() -> Self {
        let mut limits = Limits::default();
        limits.mqtt.in_memory = true;
        let config = Arc::new(ShardConfig {
            limits,
            auth: Auth::Open,
            shards: 2,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        });
        let service = JetStreamService::new(1, &config, 7, |ports| {
            let mut jetstream = JetStreams::new(Settings::default(), None, 7);
            jetstream.set_accounts(&Access::open(), NOW, ports);
            jetstream
        });
        let shard = Shard::new(0, config, ServerInfo::default(), 7);
        let mut simulation = Simulation { shard, service };
        simulation.exchange();
        simulation
    }

    fn open(&mut self, cid: u64, kind: ConnectionKind) -> SessionId {
        let peer = Peer {
            kind,
            ..Peer::default()
        };
        self.shard.open(cid, peer, false, NOW.since_start)
    }

    /// Sends input, and passes batches until there are none.
    fn send(&mut self, id: SessionId, input: &[u8]) {
        let chunk = Chunk::new(input.into());
        let receipt = self
            .shard
            .receive(id, &chunk, 0..chunk.len(), NOW.since_start);
        assert_eq!(receipt.consumed, input.len());
        self.exchange();
    }

    fn exchange(&mut self) {
        for _ in 0..8 {
            let mut batch = std::mem::take(self.shard.outgoing(1));
            for _ in 0..8 {
                let mut cursor = BatchCursor::default();
                while self.service.apply(&batch, &mut cursor, NOW).must_flush {}
                self.service.settle(NOW);
                batch = std::mem::take(self.service.outgoing(1));
            }
            for batch in [
                std::mem::take(self.service.announcements(0)),
                std::mem::take(self.service.outgoing(0)),
            ] {
                let mut cursor = BatchCursor::default();
                while self.shard.apply(&batch, &mut cursor).must_flush {}
            }
        }
    }

    /// Takes the output for a connection.
    fn output(&mut self, id: SessionId) -> Vec<u8> {
        let out = self.shard.outbox(id);
        let mut written = Vec::new();
        while !out.is_empty() {
            let mut parts = [std::io::IoSlice::new(&[]); 4];
            let count = out.parts(&mut parts);
            let before = written.len();
            for part in &parts[..count] {
                written.extend_from_slice(part);
            }
            out.advance(written.len() - before);
        }
        self.shard.written(id, NOW.since_start);
        written
    }
}

#[test]
fn answers_reach_the_session_and_observers() {
    let mut simulation = Simulation::new();
    let observer = simulation.open(1, ConnectionKind::Standard);
    let connect = b"CONNECT {\"verbose\":false}\r\nSUB $MQTT.rply.> 1\r\nSUB $JS.API.> 2\r\n";
    simulation.send(observer, connect);
    simulation.output(observer);
    let device = simulation.open(2, ConnectionKind::Mqtt);
    // Without clean session.
    simulation.send(device, b"\x10\x0d\0\x04MQTT\x04\0\0\0\0\x01d");
    assert_eq!(simulation.output(device), b"\x20\x02\0\0", "CONNACK");
    simulation.output(observer);
    simulation.send(device, b"\x82\x06\0\x01\0\x01t\x01");
    assert_eq!(simulation.output(device), b"\x90\x03\0\x01\x01", "SUBACK");
    let seen = String::from_utf8(simulation.output(observer)).unwrap();
    let id_hash = super::session_record::id_hash("d");
    let create = format!("MSG $JS.API.CONSUMER.CREATE.$MQTT_msgs.{id_hash} 2 $MQTT.rply.2.k2 ");
    let created = "MSG $MQTT.rply.2.k2 1 ";
    let stored = "MSG $MQTT.rply.2.s2 1 ";
    for line in [create.as_str(), created, stored] {
        assert!(seen.contains(line), "no {line:?} in {seen}");
    }
    simulation.send(device, b"\x32\x07\0\x01t\0\x09hi");
    // The session receives its own message as well.
    let packets = simulation.output(device);
    assert!(packets.starts_with(b"\x40\x02\0\x09"), "{packets:?}");
    assert!(packets.ends_with(b"hi"), "{packets:?}");
    let seen = String::from_utf8(simulation.output(observer)).unwrap();
    let ack = "MSG $MQTT.rply.2.a9 1 31\r\n{\"stream\":\"$MQTT_msgs\",\"seq\":1}\r\n";
    assert!(seen.contains(ack), "{seen}");
}

#[test]
fn answers_of_other_clients_are_not_taken() {
    let mut simulation = Simulation::new();
    let device = simulation.open(2, ConnectionKind::Mqtt);
    simulation.send(device, b"\x10\x0d\0\x04MQTT\x04\0\0\0\0\x01d");
    assert_eq!(simulation.output(device), b"\x20\x02\0\0", "CONNACK");
    let client = simulation.open(1, ConnectionKind::Standard);
    simulation.send(client, b"CONNECT {\"verbose\":false}\r\n");
    // A message of QoS 2 whose PUBREC waits for the service.
    let publish = Chunk::new((*b"\x34\x07\0\x01t\0\x05hi").into());
    let range = 0..publish.len();
    simulation
        .shard
        .receive(device, &publish, range, NOW.since_start);
    let forged = Chunk::new((*b"PUB $MQTT.rply.2.h5 9\r\n{\"seq\":1}\r\n").into());
    let range = 0..forged.len();
    simulation
        .shard
        .receive(client, &forged, range, NOW.since_start);
    assert_eq!(simulation.output(device), b"");
    simulation.exchange();
    assert_eq!(simulation.output(device), b"\x50\x02\0\x05", "PUBREC");
}
