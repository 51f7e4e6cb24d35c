//! The engine's allocations per message of QoS 0, counted in this process. The allocations of a server in
//! another process cannot be counted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use fanline_engine::auth::{AccountId, ConnectionKind};
use fanline_engine::jetstream::{Handler, Message, Now, Ports};
use fanline_engine::{
    Auth, BatchCursor, Chunk, JetStreamService, Limits, Peer, ServerInfo, SessionId, Shard,
    ShardConfig,
};

use crate::allocations::Allocations;

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
    delivered_bytes: usize,
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
        });
        Self {
            service: JetStreamService::new(1, &config, 7, |_| Nothing),
            shard: Shard::new(0, config, ServerInfo::default(), 7),
            delivered_bytes: 0,
        }
    }

    /// Connects a client of MQTT 3.1.1, and lets the session service accept it.
    fn client(&mut self, name: u8) -> SessionId {
        let peer = Peer {
            kind: ConnectionKind::Mqtt,
            ..Peer::default()
        };
        let cid = u64::from(name);
        let id = self.shard.open(cid, peer, false, Duration::ZERO);
        let connect = [&b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01"[..], &[name]].concat();
        self.send(id, &Chunk::new(connect.into()));
        let batch = std::mem::take(self.shard.outgoing(1));
        let mut cursor = BatchCursor::default();
        while self.service.apply(&batch, &mut cursor, NOW).must_flush {}
        let batch = std::mem::take(self.service.outgoing(0));
        let mut cursor = BatchCursor::default();
        while self.shard.apply(&batch, &mut cursor).must_flush {}
        self.write();
        id
    }

    fn send(&mut self, id: SessionId, input: &Chunk) {
        let mut from = 0;
        while from < input.len() {
            let range = from..input.len();
            let receipt = self.shard.receive(id, input, range, Duration::ZERO);
            from += receipt.consumed;
            self.write();
        }
    }

    fn write(&mut self) {
        while let Some(id) = self.shard.next_dirty() {
            let out = self.shard.outbox(id);
            let bytes = out.pending_bytes();
            out.advance(bytes);
            self.delivered_bytes += bytes;
            self.shard.written(id, Duration::ZERO);
        }
    }
}

/// Returns the number of allocations per message from one client to another.
pub(super) fn per_message(payload_bytes: usize) -> Result<f64> {
    let mut simulation = Simulation::new();
    let subscriber = simulation.client(b's');
    let subscribe = b"\x82\x08\0\x01\0\x03a/b\0".to_vec();
    simulation.send(subscriber, &Chunk::new(subscribe.into()));
    let publisher = simulation.client(b'p');
    let body_bytes = 5 + payload_bytes;
    ensure!((128..16_384).contains(&body_bytes), "a length of two bytes");
    let length = [
        u8::try_from(body_bytes % 128)? | 128,
        u8::try_from(body_bytes / 128)?,
    ];
    let packet = [
        &[0x30][..],
        &length,
        b"\0\x03a/b",
        &vec![b'x'; payload_bytes],
    ]
    .concat();
    let packets = Chunk::new(packet.repeat(PACKETS_PER_READ).into());
    for _ in 0..WARM_UP_READS {
        simulation.send(publisher, &packets);
    }
    simulation.delivered_bytes = 0;
    let before = Allocations::of_this_thread();
    for _ in 0..READS {
        simulation.send(publisher, &packets);
    }
    let made = Allocations::of_this_thread().since(before).count;
    let messages = READS * PACKETS_PER_READ;
    ensure!(
        simulation.delivered_bytes >= messages * payload_bytes,
        "not all was delivered"
    );
    Ok(made as f64 / messages as f64)
}
