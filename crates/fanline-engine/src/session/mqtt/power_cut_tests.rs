//! Simulated power cuts of a whole MQTT server; a seed determines each run. Clients publish and receive with
//! QoS 1 and 2, connect, and disconnect. In a power cut, the disk retains any part of the unsynced writes.
//! Each session, and one member of the shared subscription, receives each QoS 2 message exactly once, and
//! each QoS 1 message at least once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::auth::{Access, ConnectionKind};
use crate::jetstream::{AccountFolders, AccountSync, Folders, Handler, JetStreams, Now, Settings};
use crate::store::disk_tests::seeds;
use crate::store::simulated_disk::{Dice, Reach, SimulatedDisk};
use crate::store::{Disk, DiskError};
use crate::{
    Auth, Batch, BatchCursor, Chunk, CloseReason, JetStreamService, Limits, Peer, ServerInfo,
    SessionId, Shard, ShardConfig,
};

const STREAMS: [&str; 6] = [
    "$MQTT_msgs",
    "$MQTT_rmsgs",
    "$MQTT_sess",
    "$MQTT_qos2in",
    "$MQTT_out",
    "$MQTT_shared",
];
const PUBLISHER: usize = 0;
/// A session that stays disconnected until the end, so that all messages stay in the log. A message that all
/// sessions have acknowledged would be removed, and a duplicate of it would not be recognized any more.
const AWAY: usize = 1;
const LIVE: usize = 2;
const MEMBERS: [usize; 2] = [3, 4];
const DEVICES: [(&str, u8, &str); 5] = [
    ("publisher", V4, ""),
    ("away", V4, "t"),
    ("live", V4, "t"),
    ("first", V5, "$share/g/t"),
    ("second", V5, "$share/g/t"),
];
const V4: u8 = 4;
const V5: u8 = 5;
/// Time that the final check waits so that consumers redeliver; longer than their `ack_wait`.
const ACK_WAIT: Duration = Duration::from_secs(31);
/// Largest packet identifier of QoS 2 messages. QoS 1 messages use the identifiers above it.
const IDS_OF_QOS_2: u16 = 4;
const IDS: u16 = 6;
/// Largest number of rounds of packets until no packet and no sync is outstanding.
const ROUNDS_MAX: usize = 400;

/// Simulated disks that survive a restart of the server.
#[derive(Clone)]
struct Shelf(BTreeMap<String, SimulatedDisk>);

impl AccountFolders for Shelf {
    fn has(&self, account: &str) -> bool {
        account == "$G"
    }

    fn of(&mut self, _: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(self.clone()))
    }
}

impl Folders for Shelf {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let used = self.0.iter().filter(|(_, disk)| !disk.names().is_empty());
        Ok(used.map(|(name, _)| name.clone()).collect())
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(self.0[stream].clone()))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let disk = self.0.get_mut(stream).ok_or(DiskError::NotFound)?;
        disk.names().iter().try_for_each(|name| disk.remove(name))
    }
}

/// A client, with its session state.
#[derive(Default)]
struct Device {
    session: Option<SessionId>,
    is_in: bool,
    /// Whether its session was created.
    is_known: bool,
    unread: VecDeque<u8>,
    /// Messages that the client publishes, by packet identifier: message number, and whether PUBREC has
    /// arrived.
    sent: BTreeMap<u16, (u32, bool)>,
    /// Messages of QoS 2 without PUBREL from the server, by packet identifier.
    begun: BTreeMap<u16, u32>,
    /// Number of times that each message arrived.
    got: BTreeMap<u32, u32>,
}

struct Simulation {
    seed: u64,
    dice: Dice,
    shelf: Shelf,
    shard: Shard,
    service: JetStreamService<JetStreams>,
    now: Now,
    connections: u64,
    devices: [Device; 5],
    /// Running syncs, with the writes that they cover.
    syncs: Vec<(AccountSync, Reach)>,
    messages: u32,
    /// QoS of each message whose publisher has received the last acknowledgement.
    published: BTreeMap<u32, u8>,
}

fn start(shelf: &Shelf, now: Now) -> (Shard, JetStreamService<JetStreams>) {
    let config = Arc::new(ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: 2,
        traces: false,
        leafs: None,
        routes: None,
        gateways: None,
    });
    let service = JetStreamService::new(1, &config, 7, |ports| {
        let mut js = JetStreams::new(Settings::default(), Some(Box::new(shelf.clone())), 7);
        js.set_accounts(&Access::open(), now, ports);
        js
    });
    (Shard::new(0, config, ServerInfo::default(), 7), service)
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let shelf = Shelf(
            STREAMS
                .map(|name| (name.into(), SimulatedDisk::new()))
                .into(),
        );
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: 1_700_000_000_000_000_000,
        };
        let (shard, service) = start(&shelf, now);
        let mut simulation = Simulation {
            seed,
            dice: Dice::new(seed),
            shelf,
            shard,
            service,
            now,
            connections: 0,
            devices: Default::default(),
            syncs: Vec::new(),
            messages: 0,
            published: BTreeMap::new(),
        };
        simulation.service.settle(now);
        for (at, (_, version, filter)) in DEVICES.into_iter().enumerate() {
            simulation.connect(at);
            simulation.settle();
            if filter.is_empty() {
                continue;
            }
            let mut subscribe = vec![0, 1];
            if version == V5 {
                subscribe.push(0);
            }
            push_text(&mut subscribe, filter);
            subscribe.push(2);
            simulation.send(at, 0x82, &subscribe);
            simulation.settle();
        }
        simulation.drop_connection(AWAY);
        simulation.settle();
        simulation
    }

    fn connect(&mut self, at: usize) {
        let (name, version, _) = DEVICES[at];
        self.connections += 1;
        let peer = Peer {
            kind: ConnectionKind::Mqtt,
            ..Peer::default()
        };
        let now = self.now.since_start;
        let id = self.shard.open(self.connections, peer, false, now);
        self.devices[at].session = Some(id);
        let mut connect = b"\0\x04MQTT".to_vec();
        connect.extend([version, 0, 0, 0]);
        if version == V5 {
            connect.extend([5, 0x11, 0xff, 0xff, 0xff, 0xff]);
        }
        push_text(&mut connect, name);
        self.send(at, 0x10, &connect);
    }

    /// Sends a packet.
    fn send(&mut self, at: usize, first: u8, body: &[u8]) {
        let Some(id) = self.devices[at].session else {
            return;
        };
        let length = u8::try_from(body.len()).unwrap();
        assert!(length < 128);
        let packet = [&[first, length], body].concat();
        let chunk = Chunk::new(packet.into());
        let now = self.now.since_start;
        let receipt = self.shard.receive(id, &chunk, 0..chunk.len(), now);
        assert_eq!(receipt.consumed, chunk.len());
        self.write();
    }

    fn drop_connection(&mut self, at: usize) {
        let device = &mut self.devices[at];
        device.is_in = false;
        device.unread.clear();
        if let Some(id) = device.session.take() {
            self.shard.remove(id, CloseReason::ClientClosed);
        }
    }

    /// Passes written packets to the clients.
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
            let mut devices = self.devices.iter_mut();
            if let Some(device) = devices.find(|device| device.session == Some(id)) {
                device.unread.extend(written);
            }
        }
        assert_eq!(self.shard.next_ended(), None, "seed {}", self.seed);
    }

    /// Passes batches between the shard and the JetStream service. Returns false if there were none.
    fn exchange(&mut self) -> bool {
        let now = self.now;
        let mut is_quiet = true;
        let mut batch = std::mem::take(self.shard.outgoing(1));
        // The service applies its own batch before the shard receives one.
        loop {
            is_quiet &= batch.is_empty();
            let mut cursor = BatchCursor::default();
            while self.service.apply(&batch, &mut cursor, now).must_flush {}
            self.service.settle(now);
            batch = std::mem::take(self.service.outgoing(1));
            if batch.is_empty() {
                break;
            }
        }
        let batches: [Batch; 2] = [
            std::mem::take(self.service.announcements(0)),
            std::mem::take(self.service.outgoing(0)),
        ];
        for batch in batches {
            is_quiet &= batch.is_empty();
            let mut cursor = BatchCursor::default();
            while self.shard.apply(&batch, &mut cursor).must_flush {}
        }
        self.write();
        !is_quiet
    }

    /// Begins the next sync. If no sync is due, releases acknowledgements.
    fn poll_sync(&mut self) -> bool {
        let now = self.now.since_start;
        let sync = self.service.with(|js, _| js.poll_sync(now));
        let is_there = sync.is_some();
        if !is_there {
            self.service.with(|js, ports| js.release_acks(now, ports));
        }
        self.syncs.extend(sync.map(|sync| {
            let request = &sync.sync.request;
            let reach = self.shelf.0[&sync.sync.name].reach(request);
            (sync, reach)
        }));
        is_there
    }

    fn finish_sync(&mut self, at: usize) {
        let (AccountSync { account, sync, .. }, reach) = self.syncs.remove(at);
        let mut disk = self.shelf.0[&sync.name].clone();
        let result = disk.perform_until(&sync.request, &reach, &mut self.dice);
        let now = self.now;
        self.service.with(|js, _| {
            js.handle_synced(
                account,
                sync.stream,
                sync.request.id,
                result,
                now.since_start,
            );
        });
        self.service.settle(now);
    }

    fn wait(&mut self, duration: Duration) {
        self.now.since_start += duration;
        self.now.unix_nanos += i64::try_from(duration.as_nanos()).unwrap();
        self.shard.handle_timeout(self.now.since_start);
        self.service.handle_timeout(self.now);
    }

    /// Handles the next packet of a client. Returns false when there is none.
    fn read(&mut self, at: usize) -> bool {
        let device = &mut self.devices[at];
        let Some(first) = device.unread.pop_front() else {
            return false;
        };
        let length = device.unread.pop_front().map_or(0, usize::from);
        let body: Vec<u8> = device.unread.drain(..length).collect();
        let id = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
        match first >> 4 {
            2 => self.connected(at, body[0] == 1),
            3 => self.take_message(at, first, &body),
            4 => {
                if let Some((message, _)) = device.sent.remove(&id(0)) {
                    self.published.insert(message, 1);
                }
            }
            5 => {
                if let Some((_, is_received)) = device.sent.get_mut(&id(0)) {
                    *is_received = true;
                }
                self.send(at, 0x62, &body[..2]);
            }
            6 => {
                device.begun.remove(&id(0));
                self.send(at, 0x70, &body[..2]);
            }
            7 => {
                if let Some((message, _)) = device.sent.remove(&id(0)) {
                    self.published.insert(message, 2);
                }
            }
            _ => {}
        }
        true
    }

    /// Resumes QoS 1 and 2 handshakes (MQTT-4.4.0-1).
    fn connected(&mut self, at: usize, is_present: bool) {
        let device = &mut self.devices[at];
        assert!(!device.is_known || is_present, "seed {}", self.seed);
        device.is_in = true;
        device.is_known = true;
        for (id, (message, is_received)) in device.sent.clone() {
            match is_received {
                true => self.send(at, 0x62, &id.to_be_bytes()),
                false => self.publish(id, message, 8),
            }
        }
    }

    fn publish(&mut self, id: u16, message: u32, dup: u8) {
        let mut body = Vec::new();
        push_text(&mut body, "t");
        body.extend(id.to_be_bytes());
        body.extend(message.to_be_bytes());
        let qos = if id > IDS_OF_QOS_2 { 2 } else { 4 };
        self.send(PUBLISHER, 0x30 | qos | dup, &body);
    }

    fn publish_new(&mut self) {
        let id = 1 + u16::try_from(self.dice.below(usize::from(IDS))).unwrap();
        let device = &mut self.devices[PUBLISHER];
        if device.is_in && !device.sent.contains_key(&id) {
            self.messages += 1;
            device.sent.insert(id, (self.messages, false));
            self.publish(id, self.messages, 0);
        }
    }

    fn take_message(&mut self, at: usize, first: u8, body: &[u8]) {
        let (name, version, _) = DEVICES[at];
        let device = &mut self.devices[at];
        let (id, rest) = body[3..].split_at(2);
        let properties = if version == V5 {
            1 + usize::from(rest[0])
        } else {
            0
        };
        let message = u32::from_be_bytes(rest[properties..].try_into().unwrap());
        if first & 6 == 2 {
            *device.got.entry(message).or_default() += 1;
            let id = id.to_owned();
            return self.send(at, 0x40, &id);
        }
        let begun = device
            .begun
            .insert(u16::from_be_bytes([id[0], id[1]]), message);
        // While a packet identifier is in use, it identifies one message (MQTT-4.3.3-10).
        assert!(
            begun.is_none_or(|begun| begun == message),
            "seed {}: {name} takes {message} for {begun:?}",
            self.seed
        );
        if begun.is_none() {
            *device.got.entry(message).or_default() += 1;
        }
        self.send(at, 0x50, id);
    }

    fn step(&mut self) {
        let at = self.dice.below(DEVICES.len());
        match self.dice.below(16) {
            0..=4 => self.publish_new(),
            5..=9 if self.devices[at].session.is_some() => {
                self.read(at);
            }
            5..=9 if at != AWAY => self.connect(at),
            10 if self.dice.one_in(4) => self.drop_connection(at),
            11 => {
                let millis = [1, 20, 300][self.dice.below(3)];
                self.wait(Duration::from_millis(millis));
            }
            _ => {
                self.exchange();
            }
        }
        while self.dice.one_in(3) && self.poll_sync() {}
        while !self.syncs.is_empty() && self.dice.one_in(2) {
            let at = self.dice.below(self.syncs.len());
            self.finish_sync(at);
        }
    }

    /// Passes all packets and finishes all syncs.
    fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut is_quiet = !self.exchange();
            while self.poll_sync() {}
            while !self.syncs.is_empty() {
                self.finish_sync(0);
                is_quiet = false;
            }
            for at in 0..DEVICES.len() {
                while self.read(at) {
                    is_quiet = false;
                }
            }
            if is_quiet {
                return;
            }
        }
        panic!("seed {}: there is no end", self.seed);
    }

    /// Cuts the power, and restarts the server.
    fn cut(&mut self) {
        for disk in self.shelf.0.values() {
            disk.crash(&mut self.dice);
        }
        self.syncs.clear();
        for device in &mut self.devices {
            device.session = None;
            device.is_in = false;
            device.unread.clear();
        }
        self.now.since_start = Duration::ZERO;
        (self.shard, self.service) = start(&self.shelf, self.now);
        let problems = self.service.with(|js, _| js.take_problems());
        assert_eq!(problems, [""; 0], "seed {}", self.seed);
        self.service.settle(self.now);
    }

    /// Connects all clients, and checks that each message has arrived as often as it must.
    fn check(&mut self) {
        for at in 0..DEVICES.len() {
            if self.devices[at].session.is_none() {
                self.connect(at);
            }
        }
        for _ in 0..3 {
            self.settle();
            self.wait(ACK_WAIT);
        }
        let seed = self.seed;
        let got = |at: usize, message: u32| {
            let got = &self.devices[at].got;
            got.get(&message).copied().unwrap_or_default()
        };
        assert!(self.devices[PUBLISHER].sent.is_empty(), "seed {seed}");
        for (message, qos) in &self.published {
            let of_group = MEMBERS.map(|at| got(at, *message)).into_iter().sum();
            let counts = [got(AWAY, *message), got(LIVE, *message), of_group];
            let is_right = |count: &u32| *count == 1 || *qos == 1 && *count > 1;
            assert!(
                counts.iter().all(is_right),
                "seed {seed}: message {message} of QoS {qos} came to away, live and the group {counts:?} times"
            );
        }
    }
}

fn push_text(body: &mut Vec<u8>, text: &str) {
    body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}

#[test]
fn power_cuts_break_no_handshake() {
    let mut published = 0;
    for seed in seeds().step_by(5) {
        let mut simulation = Simulation::new(seed);
        for _ in 0..1 + seed % 3 {
            for _ in 0..simulation.dice.below(400) {
                simulation.step();
            }
            simulation.cut();
        }
        simulation.check();
        published += simulation.published.len();
    }
    assert!(
        published > 1000,
        "the devices publish too little: {published}"
    );
}
