//! The input is a script for three MQTT clients (the *devices*), a NATS client, and the devices' sessions and
//! retained messages on a disk. Lines of `--` separate its steps:
//!
//! - `0` to `2`, then bytes: this device sends the bytes. It connects first if it is not connected.
//! - `n`, a subject, a line feed, then bytes: the NATS client publishes the bytes with that subject, for
//!   example into a stream of sessions or retained messages. If the bytes begin with `NATS/1.0`, they start
//!   with headers, which end with an empty line.
//! - `x`, a device: the connection of this device ends.
//! - `t` and a byte `b`: 2^(b mod 45) nanoseconds pass.
//! - `r`: the server is killed and started again.
//! - `s`: the server is stopped and started again.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::{Access, ConnectionKind};
use fanline_engine::jetstream::{AccountFolders, Folders, Handler, JetStreams, Now, Settings};
use fanline_engine::store::DiskError;
use fanline_engine::{
    Auth, Batch, BatchCursor, Chunk, CloseReason, JetStreamService, Limits, Peer, ServerInfo,
    SessionId, Shard, ShardConfig,
};

use super::memory_disk::MemoryFolders;

const STEPS_MAX: usize = 60;
const DEVICES: usize = 3;
const SEPARATOR: &[u8] = b"\n--\n";
/// Maximum number of exchanges between the shard and the JetStream service in a step.
const ROUNDS_MAX: usize = 64;

/// Checks that devices can connect and disconnect whatever sessions and messages are stored, and that they
/// read complete packets.
pub fn check(data: &[u8]) {
    let mut simulation = Simulation::new();
    let mut rest = Some(data);
    for _ in 0..STEPS_MAX {
        let Some(here) = rest else { break };
        let end = here
            .windows(SEPARATOR.len())
            .position(|part| part == SEPARATOR);
        rest = end.map(|end| &here[end + SEPARATOR.len()..]);
        match &here[..end.unwrap_or(here.len())] {
            [device @ b'0'..=b'2', bytes @ ..] => {
                simulation.send_from(usize::from(device - b'0'), bytes)
            }
            [b'n', publish @ ..] => simulation.publish(publish),
            [b'x', device @ b'0'..=b'2', ..] => simulation.disconnect(usize::from(device - b'0')),
            [b't', b, ..] => simulation.wait(1 << (b % 45)),
            [b'r', ..] => simulation = simulation.restarted(false),
            [b's', ..] => simulation = simulation.restarted(true),
            _ => {}
        }
        simulation.settle();
    }
    simulation.restarted(true).settle();
}

struct Device {
    id: SessionId,
    unread: Vec<u8>,
    received: Vec<u8>,
}

struct Simulation {
    folders: MemoryFolders,
    shard: Shard,
    service: JetStreamService<JetStreams>,
    devices: [Option<Device>; DEVICES],
    nats: Option<SessionId>,
    connections: u64,
    now: Now,
}

/// The streams of all accounts. Only the account `$G` has any.
struct Accounts(MemoryFolders);

impl AccountFolders for Accounts {
    fn has(&self, account: &str) -> bool {
        account == "$G"
    }

    fn of(&mut self, _: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(self.0.clone()))
    }
}

impl Simulation {
    fn new() -> Self {
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: 1_700_000_000_000_000_000,
        };
        Simulation::over(MemoryFolders::default(), now)
    }

    fn over(folders: MemoryFolders, now: Now) -> Self {
        let mut limits = Limits::default();
        limits.mqtt.packet_bytes_max = 4096;
        let config = Arc::new(ShardConfig {
            limits,
            auth: Auth::Open,
            shards: 2,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        });
        let accounts = Accounts(folders.clone());
        let service = JetStreamService::new(1, &config, 7, |ports| {
            let mut js = JetStreams::new(Settings::default(), Some(Box::new(accounts)), 7);
            js.set_accounts(&Access::open(), now, ports);
            js
        });
        let mut simulation = Simulation {
            folders,
            shard: Shard::new(0, config, ServerInfo::default(), 7),
            service,
            devices: [const { None }; DEVICES],
            nats: None,
            connections: 0,
            now,
        };
        simulation.service.settle(now);
        simulation.settle();
        simulation
    }

    fn restarted(mut self, properly: bool) -> Self {
        for device in 0..DEVICES {
            if properly {
                self.disconnect(device);
            }
        }
        if properly {
            self.settle();
            let now = self.now;
            self.service.with(|js, ports| js.close(now, ports));
        }
        let now = Now {
            since_start: Duration::ZERO,
            ..self.now
        };
        Simulation::over(self.folders, now)
    }

    fn connect(&mut self, kind: ConnectionKind) -> SessionId {
        self.connections += 1;
        let peer = Peer {
            kind,
            ..Peer::default()
        };
        let now = self.now.since_start;
        self.shard.open(self.connections, peer, false, now)
    }

    fn send_from(&mut self, device: usize, bytes: &[u8]) {
        if self.devices[device].is_none() {
            let id = self.connect(ConnectionKind::Mqtt);
            self.devices[device] = Some(Device {
                id,
                unread: Vec::new(),
                received: Vec::new(),
            });
        }
        let Some(device) = &mut self.devices[device] else {
            return;
        };
        device.unread.extend_from_slice(bytes);
        let now = self.now.since_start;
        loop {
            let chunk = Chunk::new(device.unread[..].into());
            let receipt = self.shard.receive(device.id, &chunk, 0..chunk.len(), now);
            device.unread.drain(..receipt.consumed);
            if !receipt.must_flush {
                return;
            }
        }
    }

    fn publish(&mut self, publish: &[u8]) {
        let line_end = publish.iter().position(|b| *b == b'\n');
        let (subject, rest) = publish.split_at(line_end.unwrap_or(publish.len()));
        let rest = rest.get(1..).unwrap_or_default();
        let is_headers = rest.starts_with(b"NATS/1.0");
        let end = rest.windows(4).position(|end| end == b"\r\n\r\n");
        let headers = end.filter(|_| is_headers).map_or(0, |end| end + 4);
        let id = match self.nats {
            Some(id) => id,
            None => self.connect(ConnectionKind::Standard),
        };
        let mut input = Vec::new();
        if self.nats.replace(id).is_none() {
            input.extend(b"CONNECT {\"verbose\":false,\"headers\":true}\r\n");
        }
        input.extend(if headers > 0 { &b"HPUB "[..] } else { b"PUB " });
        input.extend(subject);
        if headers > 0 {
            input.extend(format!(" {headers}").into_bytes());
        }
        input.extend(format!(" {}\r\n", rest.len()).into_bytes());
        input.extend(rest);
        input.extend(b"\r\n");
        let chunk = Chunk::new(input.into());
        let now = self.now.since_start;
        self.shard.receive(id, &chunk, 0..chunk.len(), now);
    }

    fn disconnect(&mut self, device: usize) {
        self.settle();
        if let Some(device) = self.devices[device].take() {
            self.shard.remove(device.id, CloseReason::ClientClosed);
            check_packets(&device.received);
        }
    }

    fn wait(&mut self, nanos: u64) {
        self.now.since_start += Duration::from_nanos(nanos);
        self.now.unix_nanos += i64::try_from(nanos).expect("a short time");
        self.shard.handle_timeout(self.now.since_start);
        self.service.handle_timeout(self.now);
    }

    /// Exchanges batches between the shard and the JetStream service, completes syncs, and lets clients
    /// read.
    fn settle(&mut self) {
        let now = self.now;
        for _ in 0..ROUNDS_MAX {
            self.write();
            let batch = std::mem::take(self.shard.outgoing(1));
            let own = std::mem::take(self.service.outgoing(1));
            let is_quiet = batch.is_empty() && own.is_empty();
            for batch in [batch, own] {
                let mut cursor = BatchCursor::default();
                while self.service.apply(&batch, &mut cursor, now).must_flush {}
            }
            self.service.settle(now);
            let has_synced = self.service.with(|js, ports| {
                let mut has_synced = false;
                while let Some(sync) = js.poll_sync(now.since_start) {
                    let (stream, id) = (sync.sync.stream, sync.sync.request.id);
                    js.handle_synced(sync.account, stream, id, Ok(()), now.since_start);
                    has_synced = true;
                }
                js.release_acks(now.since_start, ports);
                has_synced
            });
            self.service.settle(now);
            let batches: [Batch; 2] = [
                std::mem::take(self.service.announcements(0)),
                std::mem::take(self.service.outgoing(0)),
            ];
            if is_quiet && !has_synced && batches.iter().all(Batch::is_empty) {
                return;
            }
            for batch in batches {
                let mut cursor = BatchCursor::default();
                while self.shard.apply(&batch, &mut cursor).must_flush {}
            }
        }
    }

    fn write(&mut self) {
        while let Some(id) = self.shard.next_dirty() {
            let mut written = Vec::new();
            let out = self.shard.outbox(id);
            while !out.is_empty() {
                let mut parts = [std::io::IoSlice::new(&[]); 4];
                let count = out.parts(&mut parts);
                let before = written.len();
                for part in &parts[..count] {
                    written.extend_from_slice(part);
                }
                out.advance(written.len() - before);
            }
            self.shard.written(id, self.now.since_start);
            let mut devices = self.devices.iter_mut().flatten();
            if let Some(device) = devices.find(|device| device.id == id) {
                device.received.extend(written);
            }
        }
        while let Some((id, _)) = self.shard.next_ended() {
            self.shard.remove(id, CloseReason::ClientClosed);
            if self.nats == Some(id) {
                self.nats = None;
            }
            for device in &mut self.devices {
                if let Some(gone) = device.take_if(|device| device.id == id) {
                    check_packets(&gone.received);
                }
            }
        }
    }
}

/// Checks that a device received complete packets, and no packet of a type that only clients send.
fn check_packets(mut stream: &[u8]) {
    while let Some((first, rest)) = stream.split_first() {
        let mut length = 0;
        let mut used = 0;
        for byte in rest.iter().take(4) {
            length |= usize::from(byte & 0x7f) << (7 * used);
            used += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let is_of_client = matches!(first >> 4, 0 | 1 | 8 | 10 | 12 | 15);
        // A server may send AUTH, but this server never does.
        assert!(!is_of_client, "a device received {first:#x}");
        let Some(after) = rest.get(used + length..) else {
            panic!("a packet {first:#x} that is not whole");
        };
        stream = after;
    }
}
