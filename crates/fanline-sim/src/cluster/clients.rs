//! Clients: what they write and read.

use std::collections::{BTreeSet, VecDeque};

use fanline_engine::auth::ConnectionKind;

use super::model::{Delivered, Home};
use super::setup::ACCOUNTS;
use super::{Cluster, Invariant, Outcome, Violation, violation};
use crate::accounts::PASSWORD;
use crate::client::{ClientKey, Event, NatsReader, Received, push_line, push_publish};
use crate::model::Claim;
use crate::server::ConnectionKey;

/// Clients at a time, unless a quiet moment needs more.
const CLIENTS_MAX: usize = 8;

/// Number of unwritten bytes above which a client starts no new action.
const OUT_BYTES_MAX: usize = 16 * 1024;

const SUBSCRIPTIONS_MAX: usize = 6;

/// All subjects of messages.
pub(super) const SUBJECTS: [&str; 4] = ["s.a.a", "s.a.b", "s.b.a", "s.b.b"];

const FILTERS: [&str; 10] = [
    "s.>", "s.*.a", "s.*.b", "s.a.*", "s.b.*", "s.a.>", "s.a.a", "s.a.b", "s.b.a", "s.b.b",
];

const QUEUES: [&str; 2] = ["q", "r"];

/// A NATS client of one server.
pub(super) struct Client {
    pub(super) key: ClientKey,
    pub(super) home: Home,
    connection: ConnectionKey,
    echoes: bool,
    /// What it has yet to write.
    out: VecDeque<u8>,
    reader: NatsReader,
    /// What each expected PONG proves.
    pongs: VecDeque<Vec<Claim>>,
    /// What the next PING will prove.
    claims: Vec<Claim>,
    subscriptions: BTreeSet<u64>,
    next_sid: u64,
}

impl Client {
    /// Returns whether the client waits for something.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pongs.is_empty() || self.reader.is_within_event()
    }
}

impl Cluster {
    /// Lets a client queue something to write; without enough clients, connects one.
    pub(super) fn act_as_client(&mut self) {
        let count = self.clients.len();
        if count < 3 || count < CLIENTS_MAX && self.dice.one_in(12) {
            if let Some(node) = self.some_node() {
                // Most clients share an account.
                let account = self.dice.below(ACCOUNTS.len() * 2) % (ACCOUNTS.len() + 1);
                self.connect(node, account % ACCOUNTS.len());
            }
            return;
        }
        let at = self.dice.below(count);
        if self.clients[at].out.len() > OUT_BYTES_MAX {
            return;
        }
        match self.dice.below(20) {
            0..10 => {
                let subject = SUBJECTS[self.dice.below(SUBJECTS.len())];
                for _ in 0..=self.dice.below(3) {
                    self.publish(at, subject);
                }
            }
            10..14 => self.subscribe(at),
            14..16 => self.unsubscribe(at),
            16 => self.limit_subscription(at),
            _ => self.ping(at),
        }
    }

    pub(super) fn connect(&mut self, node: usize, account: usize) {
        let shard = self.dice.below(self.setup.nodes[node].shards);
        let Some(server) = self.server(node) else {
            return;
        };
        let connection = server.connect(shard, ConnectionKind::Standard, 1 << 20);
        self.clients_opened += 1;
        let key = ClientKey(self.clients_opened);
        let echoes = !self.dice.one_in(4);
        let user = ACCOUNTS[account];
        let mut out = VecDeque::new();
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"echo\":{echoes},\"user\":\"{user}\",\"pass\":\"{PASSWORD}\"}}"
        );
        push_line(&mut out, &hello);
        self.clients.push(Client {
            key,
            home: Home { node, account },
            connection,
            echoes,
            out,
            reader: NatsReader::default(),
            pongs: VecDeque::new(),
            claims: Vec::new(),
            subscriptions: BTreeSet::new(),
            next_sid: 1,
        });
        self.note(|| format!("{key:?} of {user} connects to shard {shard} of server {node}"));
    }

    pub(super) fn publish(&mut self, at: usize, subject: &str) {
        self.messages += 1;
        let (id, step) = (self.messages, self.step);
        let filler = match self.dice.below(12) {
            0 => 5000,
            1 => 300,
            _ => self.dice.below(20),
        };
        let header = if self.dice.one_in(4) { "N: 1" } else { "" };
        let client = &mut self.clients[at];
        let (key, home) = (client.key, client.home);
        let mut payload = format!("{id} {} ", home.account).into_bytes();
        payload.resize(payload.len() + filler, b'x');
        push_publish(&mut client.out, subject, "", header, &payload);
        client.claims.push(Claim::Published(id));
        self.model.publish(key, home, subject, id, step);
        self.note(|| format!("{key:?} publishes message {id} to {subject}, {filler} bytes more"));
    }

    fn subscribe(&mut self, at: usize) {
        let filter = FILTERS[self.dice.below(FILTERS.len())];
        let has_queue = self.dice.one_in(3);
        let queue = has_queue.then(|| QUEUES[self.dice.below(QUEUES.len())]);
        let client = &mut self.clients[at];
        if client.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return;
        }
        let sid = client.next_sid;
        client.next_sid += 1;
        let line = match queue {
            Some(queue) => format!("SUB {filter} {queue} {sid}"),
            None => format!("SUB {filter} {sid}"),
        };
        push_line(&mut client.out, &line);
        client.subscriptions.insert(sid);
        client.claims.push(Claim::Visible(sid));
        let (key, home, echoes) = (client.key, client.home, client.echoes);
        self.model
            .subscribe((key, sid), home, filter, queue, echoes);
        self.note(|| format!("{key:?} subscribes to {filter} in {queue:?} as {sid}"));
        if self.dice.one_in(2) {
            self.ping(at);
        }
    }

    fn some_subscription(&mut self, at: usize) -> Option<u64> {
        let sids: Vec<u64> = self.clients[at].subscriptions.iter().copied().collect();
        (!sids.is_empty()).then(|| sids[self.dice.below(sids.len())])
    }

    fn unsubscribe(&mut self, at: usize) {
        let Some(sid) = self.some_subscription(at) else {
            return;
        };
        let client = &mut self.clients[at];
        push_line(&mut client.out, &format!("UNSUB {sid}"));
        client.claims.push(Claim::Gone(sid));
        client.subscriptions.remove(&sid);
        let key = client.key;
        self.model.unsubscribe((key, sid));
        self.note(|| format!("{key:?} unsubscribes {sid}"));
    }

    fn limit_subscription(&mut self, at: usize) {
        let Some(sid) = self.some_subscription(at) else {
            return;
        };
        let max = 1 + self.dice.below(8) as u64;
        let client = &mut self.clients[at];
        push_line(&mut client.out, &format!("UNSUB {sid} {max}"));
        client.claims.push(Claim::Limited(sid, max));
        // It is not unsubscribed again, so that its maximum holds.
        client.subscriptions.remove(&sid);
        let key = client.key;
        self.model.unsubscribe((key, sid));
        self.note(|| format!("{key:?} unsubscribes {sid} after {max} messages"));
    }

    pub(super) fn ping(&mut self, at: usize) {
        let client = &mut self.clients[at];
        push_line(&mut client.out, "PING");
        let claims = std::mem::take(&mut client.claims);
        client.pongs.push_back(claims);
        let key = client.key;
        self.note(|| format!("{key:?} pings"));
    }

    /// Lets a client write some of its bytes.
    pub(super) fn write_as_client(&mut self) {
        if !self.clients.is_empty() {
            let at = self.dice.below(self.clients.len());
            let bytes = [1, 13, 100, 100_000][self.dice.below(4)];
            self.write(at, bytes);
        }
    }

    /// Lets a client write up to `bytes` bytes. Returns whether there were any.
    pub(super) fn write(&mut self, at: usize, bytes: usize) -> bool {
        let client = &self.clients[at];
        let (key, node, connection) = (client.key, client.home.node, client.connection);
        let length = bytes.min(client.out.len());
        let bytes: Vec<u8> = self.clients[at].out.drain(..length).collect();
        let socket = self
            .server(node)
            .and_then(|server| server.socket(connection));
        let Some(socket) = socket.filter(|_| length > 0) else {
            return false;
        };
        socket.to_server.extend(bytes);
        self.note(|| format!("{key:?} writes {length} bytes"));
        true
    }

    /// Closes the connection of a client.
    pub(super) fn hang_up_one(&mut self) {
        if !self.clients.is_empty() {
            let at = self.dice.below(self.clients.len());
            let abrupt = self.dice.one_in(2);
            self.hang_up(at, abrupt);
        }
    }

    pub(super) fn hang_up(&mut self, at: usize, abrupt: bool) {
        let client = self.clients.remove(at);
        if let Some(server) = self.server(client.home.node) {
            server.hang_up(client.connection, abrupt);
        }
        self.model.disconnect(client.key);
        let key = client.key;
        self.note(|| format!("{key:?} disconnects, abruptly: {abrupt}"));
    }

    /// Lets a client read some bytes.
    pub(super) fn read_as_client(&mut self) -> Outcome {
        if self.clients.is_empty() {
            return Ok(());
        }
        let at = self.dice.below(self.clients.len());
        let bytes = [5, 200, 100_000][self.dice.below(3)];
        self.read(at, bytes).map(drop)
    }

    /// Lets a client read up to `bytes` bytes. Returns whether there was anything.
    pub(super) fn read(&mut self, at: usize, bytes: usize) -> Result<bool, Violation> {
        let client = &self.clients[at];
        let (key, node, connection) = (client.key, client.home.node, client.connection);
        let socket = self
            .server(node)
            .and_then(|server| server.socket(connection));
        let Some(socket) = socket else {
            return Ok(false);
        };
        let new = socket.read_at_client(bytes);
        if new.is_empty() {
            if socket.is_server_gone {
                let text = format!("server {node} closed the connection of {key:?}");
                violation(Invariant::Correctness, text)?;
            }
            return Ok(false);
        }
        self.clients[at].reader.push(&new);
        self.note(|| format!("{key:?} reads {} bytes", new.len()));
        loop {
            let next = self.clients[at].reader.next();
            let next = next.map_err(|text| Violation {
                invariant: Invariant::Correctness,
                text: format!("{key:?}: {text}"),
            })?;
            let Some(event) = next else {
                return Ok(true);
            };
            self.handle(at, event)?;
        }
    }

    fn handle(&mut self, at: usize, event: Event) -> Outcome {
        let client = &mut self.clients[at];
        let key = client.key;
        match event {
            Event::Info => Ok(()),
            Event::Ping => {
                push_line(&mut client.out, "PONG");
                Ok(())
            }
            Event::Pong => {
                let Some(claims) = client.pongs.pop_front() else {
                    let text = format!("{key:?} received a PONG without a PING");
                    return violation(Invariant::Correctness, text);
                };
                self.note(|| format!("{key:?} has a PONG, which proves {claims:?}"));
                for claim in claims {
                    self.model.claim(key, &claim, self.step);
                }
                Ok(())
            }
            Event::Error(text) => {
                let text = format!("{key:?} received the error {text}");
                violation(Invariant::Correctness, text)
            }
            Event::Message(message) => self.take(key, &message),
        }
    }

    fn take(&mut self, key: ClientKey, message: &Received) -> Outcome {
        let Some((id, account)) = numbers_of(&message.payload) else {
            let text = format!("{key:?} received another payload");
            return violation(Invariant::Correctness, text);
        };
        let (sid, subject) = (message.sid, &message.subject);
        self.note(|| format!("{key:?} receives message {id} to {subject} for {sid}"));
        self.model.deliver(&Delivered {
            key: (key, sid),
            subject,
            message: id,
            account,
        })
    }
}

/// Returns the number of a message and of its account.
pub(super) fn numbers_of(payload: &[u8]) -> Option<(u64, usize)> {
    let text = String::from_utf8_lossy(payload);
    let mut words = text.split(' ');
    let id = words.next()?.parse().ok()?;
    Some((id, words.next()?.parse().ok()?))
}
