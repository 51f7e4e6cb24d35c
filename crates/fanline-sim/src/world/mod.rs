//! The world: a server and its clients. One random step follows another.

mod answers;
mod device_traffic;
mod devices;
mod end;
mod packets;
mod quiet;
mod reading;
mod requests;
mod restart;
mod storage;
mod traffic;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::{Access, ConnectionKind};
use fanline_engine::jetstream::Now;
use fanline_engine::store::simulated_disk::Dice;
use fanline_engine::{CloseReason, Limits};

use devices::Device;
use requests::{Pending, Unacknowledged};

use crate::accounts::{ACCOUNTS, PASSWORD, Variant, directory};
use crate::client::{ClientKey, NatsReader};
use crate::model::{Claim, CoreModel, MqttModel, RetainedModel, STREAMS, StreamModel};
use crate::run::Covered;
use crate::server::{ConnectionKey, Disks, Sabotage, Server, ServerSettings, SyncState};
use crate::trace::Trace;
use crate::violation::{Invariant, Outcome, Violation, violation};

/// Clients at a time.
const CLIENTS_MAX: usize = 6;

/// When the first server starts, in nanoseconds since 1970.
const BEGIN_UNIX_NANOS: i64 = 1_700_000_000_000_000_000;

/// The role of a subscription for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It receives what others publish.
    Core,
    /// It receives responses.
    Inbox,
    /// It receives deliveries of a push consumer.
    Push,
}

/// A NATS client.
struct NatsClient {
    key: ClientKey,
    connection: ConnectionKey,
    account: usize,
    echoes: bool,
    /// What it has yet to write.
    out: VecDeque<u8>,
    reader: NatsReader,
    /// What each expected PONG proves.
    pongs: VecDeque<Vec<Claim>>,
    /// What the next PING will prove.
    claims: Vec<Claim>,
    subscriptions: BTreeMap<u64, Role>,
    next_sid: u64,
    /// Whether it does not read for now.
    is_slow: bool,
    /// Prefix of the reply subjects of its requests, once it has subscribed.
    inbox: Option<String>,
    unacknowledged: Vec<Unacknowledged>,
}

/// A server and its clients.
pub(crate) struct World {
    dice: Dice,
    step: u64,
    now: Now,
    server: Server,
    settings: ServerSettings,
    disks: Disks,
    clients: Vec<NatsClient>,
    clients_opened: u64,
    messages: u64,
    core: CoreModel,
    devices: Vec<Device>,
    mqtt: MqttModel,
    retained: RetainedModel,
    streams: Vec<StreamModel>,
    /// Requests without an answer, by reply subject.
    requests: BTreeMap<String, Pending>,
    requests_made: u64,
    covered: Covered,
    /// Directories that shards, and at last the service, have yet to apply.
    reloads: Vec<VecDeque<Arc<Access>>>,
    trace: Trace,
}

impl World {
    /// Creates the world of a seed.
    pub(crate) fn new(seed: u64, sabotage: Sabotage, trace: Trace) -> Self {
        let mut dice = Dice::new(seed);
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: BEGIN_UNIX_NANOS,
        };
        let mut limits = Limits {
            // Clients may wait long before they write their CONNECT.
            auth_timeout: Duration::from_secs(3600),
            ..Limits::default()
        };
        if dice.one_in(8) {
            limits.pending_bytes_max = 64 * 1024;
        }
        let shards = 1 + dice.below(3);
        let settings = ServerSettings {
            shards,
            limits,
            access: directory(None, Variant::default()),
            seed,
            sabotage,
            member: None,
        };
        let streams =
            STREAMS.map(|(name, kind)| StreamModel::new(name, kind, dice.below(ACCOUNTS.len())));
        let devices = Device::all(|end| dice.below(end));
        let disks = Disks::default();
        let server = Server::start(&settings, &disks, now);
        World {
            dice,
            step: 0,
            now,
            server,
            settings,
            disks,
            clients: Vec::new(),
            clients_opened: 0,
            messages: 0,
            core: CoreModel::default(),
            devices,
            mqtt: MqttModel::default(),
            retained: RetainedModel::default(),
            streams: streams.into(),
            requests: BTreeMap::new(),
            requests_made: 0,
            covered: Covered::default(),
            reloads: vec![VecDeque::new(); shards + 1],
            trace,
        }
    }

    /// Runs random steps, and a quiet end.
    pub(crate) fn run(&mut self, steps: u64) -> Outcome {
        while self.step < steps {
            self.step += 1;
            self.act()?;
            self.check_memory()?;
        }
        self.end()
    }

    /// Returns the current step, and takes the trace.
    pub(crate) fn story(&mut self) -> (u64, Vec<String>) {
        (self.step, self.trace.take())
    }

    /// Returns what the run has covered.
    pub(crate) fn covered(&self) -> Covered {
        Covered {
            messages: self.core.checked,
            ..self.covered
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.add(self.step, line);
    }

    /// Performs one random step.
    fn act(&mut self) -> Outcome {
        match self.dice.below(100) {
            0..30 => self.act_as_client(),
            30..42 => self.write_as_client(),
            42..56 => self.read_as_server(),
            56..66 => return self.read_as_client(),
            66..74 => self.take_mailbox(),
            74..82 => self.flush(),
            82..86 => self.wake(),
            86..91 => {
                self.note(|| "the service takes its mailbox".into());
                self.server.round();
            }
            91..96 => self.sync(),
            96 | 97 => self.pass_time(),
            98 => self.reload(),
            _ => return self.disturb(),
        }
        Ok(())
    }

    /// Rare events.
    fn disturb(&mut self) -> Outcome {
        match self.dice.below(10) {
            0..3 => self.hang_up_one(),
            3 => {
                let at = self.dice.below(self.devices.len());
                self.break_device(at);
            }
            4..6 => self.begin_reload(),
            6..8 => return self.settle(),
            8 if self.dice.one_in(4) => return self.restart(),
            _ => {}
        }
        Ok(())
    }

    fn connect(&mut self) {
        let account = self.dice.below(ACCOUNTS.len());
        self.connect_to(account);
    }

    fn connect_to(&mut self, account: usize) {
        let shard = self.dice.below(self.server.shards());
        let room = [700, 8 * 1024, 1 << 20][self.dice.below(3)];
        let connection = self.server.connect(shard, ConnectionKind::Standard, room);
        self.clients_opened += 1;
        let key = ClientKey(self.clients_opened);
        let echoes = !self.dice.one_in(4);
        let user = ACCOUNTS[account].to_lowercase();
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"echo\":{echoes},\"user\":\"{user}\",\"pass\":\"{PASSWORD}\"}}\r\n"
        );
        self.clients.push(NatsClient {
            key,
            connection,
            account,
            echoes,
            out: hello.into_bytes().into(),
            reader: NatsReader::default(),
            pongs: VecDeque::new(),
            claims: Vec::new(),
            subscriptions: BTreeMap::new(),
            next_sid: 1,
            is_slow: false,
            inbox: None,
            unacknowledged: Vec::new(),
        });
        self.note(|| format!("{key:?} of account {account} connects to shard {shard}"));
    }

    fn some_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.dice.below(count))
    }

    fn some_connection(&mut self) -> Option<ConnectionKey> {
        let keys = self.server.connection_keys();
        (!keys.is_empty()).then(|| keys[self.dice.below(keys.len())])
    }

    fn read_as_server(&mut self) {
        let Some(key) = self.some_connection() else {
            return;
        };
        let bytes = [1, 20, 300, 128 * 1024][self.dice.below(4)];
        self.note(|| format!("the server reads {bytes} bytes of {key:?}"));
        self.server.receive(key, bytes);
    }

    fn take_mailbox(&mut self) {
        let shard = self.dice.below(self.server.shards());
        self.note(|| format!("shard {shard} takes its mailbox"));
        self.server.take_mailbox(shard);
        self.server.handle_shard_timeout(shard);
    }

    fn flush(&mut self) {
        let shard = self.dice.below(self.server.shards());
        self.note(|| format!("shard {shard} flushes"));
        self.server.flush(shard);
    }

    fn wake(&mut self) {
        if let Some(key) = self.some_connection() {
            self.note(|| format!("the task of {key:?} wakes"));
            self.server.wake(key);
        }
    }

    fn sync(&mut self) {
        let syncs = self.server.syncs();
        if syncs.is_empty() {
            return;
        }
        let at = self.dice.below(syncs.len());
        match syncs[at] {
            SyncState::Requested => {
                self.note(|| format!("sync {at} is performed"));
                self.server.perform_sync(at, &mut self.dice);
            }
            SyncState::Performed => {
                self.note(|| format!("sync {at} is finished"));
                self.server.finish_sync(at);
            }
        }
    }

    fn pass_time(&mut self) {
        let millis = [1, 10, 100, 1000, 3000][self.dice.below(5)];
        self.wait(Duration::from_millis(millis));
    }

    fn wait(&mut self, duration: Duration) {
        self.note(|| format!("{duration:?} pass"));
        self.now.since_start += duration;
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or_default();
        self.now.unix_nanos += nanos;
        self.server.set_now(self.now);
    }

    /// Begins a reload. Each thread applies it later.
    fn begin_reload(&mut self) {
        let variant = Variant {
            spare: self.dice.below(3),
            has_import: self.dice.one_in(2),
        };
        let access = directory(Some(&self.settings.access), variant);
        self.settings.access = Arc::clone(&access);
        self.core.begin_reload(variant.has_import);
        self.note(|| format!("a reload begins: {variant:?}"));
        for queue in &mut self.reloads {
            queue.push_back(Arc::clone(&access));
        }
    }

    /// Lets one thread apply a reload.
    fn reload(&mut self) {
        let at = self.dice.below(self.reloads.len());
        self.reload_at(at);
    }

    fn reload_at(&mut self, at: usize) -> bool {
        let Some(access) = self.reloads[at].pop_front() else {
            return false;
        };
        self.note(|| format!("thread {at} applies a reload"));
        match at < self.server.shards() {
            true => self.server.reload_shard(at, &access),
            false => self.server.reload_service(&access),
        }
        if self.reloads.iter().all(VecDeque::is_empty) {
            self.core.end_reloads(self.step);
        }
        true
    }

    fn check_memory(&mut self) -> Outcome {
        // A batch may exceed the limit before the connection is closed.
        let most = self.settings.limits.pending_bytes_max + (1 << 20);
        let pending = self.server.pending_bytes_most();
        if pending > most {
            let text = format!("a connection has {pending} bytes pending, more than {most}");
            return violation(Invariant::Memory, text);
        }
        Ok(())
    }
}
