//! The engine's allocations per message of QoS 0, counted in this process. The allocations of a server in
//! another process cannot be counted.

use std::time::Duration;

use anyhow::{Result, ensure};
use fanline_engine::auth::{AccountId, ConnectionKind};
use fanline_engine::jetstream::{Handler, Message, Now, Ports};
use fanline_engine::{BatchCursor, Chunk, JetStreamService, Peer, SessionId, Shard};

use crate::allocations::Allocations;
use crate::engine;
use crate::generator::mqtt::packets;

const NOW: Now = Now {
    since_start: Duration::ZERO,
    unix_nanos: 0,
};
/// Number of packets per read. The two constants below are numbers of reads: of the warm-up, and while
/// allocations are counted.
const PACKETS_PER_READ: usize = 100;
const WARM_UP_READS: usize = 200;
const READS: usize = 2000;

/// A storage service that discards everything, which is sufficient for QoS 0.
struct Nothing;

impl Handler for Nothing {
    fn handle(&mut self, _: AccountId, _: &Message<'_>, _: Now, _: &mut dyn Ports) {}
    fn handle_interest(&mut self, _: AccountId, _: &[u8], _: bool, _: Now, _: &mut dyn Ports) {}
    fn handle_timeout(&mut self, _: Now, _: &mut dyn Ports) {}
    fn next_timeout(&self) -> Option<Duration> {
        None
    }
    fn settle(&mut self, _: Now, _: &mut dyn Ports) {}
}

struct Simulation {
    shard: Shard,
    service: JetStreamService<Nothing>,
}

impl Simulation {
    fn new() -> Self {
        let config = engine::config(2);
        Self {
            service: JetStreamService::new(1, &config, 7, |_| Nothing),
            shard: engine::shard(0, &config),
        }
    }

    /// Connects a client of MQTT 3.1.1, and lets the session service accept it.
    fn client(&mut self, name: &str) -> SessionId {
        let peer = Peer {
            kind: ConnectionKind::Mqtt,
            ..Peer::default()
        };
        let id = engine::client(&mut self.shard, peer, packets::connect(name, true));
        let batch = std::mem::take(self.shard.outgoing(1));
        let mut cursor = BatchCursor::default();
        while self.service.apply(&batch, &mut cursor, NOW).must_flush {}
        let batch = std::mem::take(self.service.outgoing(0));
        let mut cursor = BatchCursor::default();
        while self.shard.apply(&batch, &mut cursor).must_flush {}
        engine::drain(&mut self.shard);
        id
    }

    fn send(&mut self, id: SessionId, bytes: &Chunk) -> usize {
        engine::receive(&mut self.shard, id, bytes)
    }
}

pub(super) fn per_message(payload_bytes: usize) -> Result<f64> {
    let mut simulation = Simulation::new();
    let subscriber = simulation.client("s");
    let subscribe = packets::subscribe(1, "a/b", 0);
    simulation.send(subscriber, &Chunk::new(subscribe.into()));
    let publisher = simulation.client("p");
    let packet = packets::publish("a/b", &vec![b'x'; payload_bytes]);
    let packets = Chunk::new(packet.repeat(PACKETS_PER_READ).into());
    for _ in 0..WARM_UP_READS {
        simulation.send(publisher, &packets);
    }
    let before = Allocations::of_this_thread();
    let delivered_bytes = (0..READS).map(|_| simulation.send(publisher, &packets));
    let delivered_bytes: usize = delivered_bytes.sum();
    let made = Allocations::of_this_thread().since(before).count;
    let messages = READS * PACKETS_PER_READ;
    ensure!(
        delivered_bytes >= messages * payload_bytes,
        "not all was delivered"
    );
    Ok(made as f64 / messages as f64)
}
