//! Several servers whose connections deliver in any order that keeps that of each connection.

mod absent;
mod groups;
mod lanes;
mod shelf;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::auth::{Access, AccessConfig};
use crate::jetstream::accounts::JetStreams;
use crate::jetstream::{ACK_PREFIX, Handler, Port, Settings};
use crate::random::FastRandom;
use crate::subject::Filter;
use shelf::Shelf;

/// Longest time for which a test waits, in the time of the servers.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// What crosses a connection between two servers.
enum Event {
    Interest(AccountId, Vec<u8>, bool),
    Message(AccountId, Packet, Via),
}

/// Where a message comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Via {
    Here,
    OtherServer,
    /// A server without JetStream, as a member of the queue group.
    Delegator,
}

/// Number of the server without JetStream, which the tests play.
const CORE: usize = usize::MAX;

#[derive(Clone, Debug)]
struct Packet {
    subject: Vec<u8>,
    reply: Vec<u8>,
    /// Payload, or the headers of a message without payload.
    payload: Vec<u8>,
}

/// What one server has published, and its subscriptions.
#[derive(Default)]
struct Outputs {
    account: AccountId,
    filters: BTreeMap<(AccountId, Vec<u8>), usize>,
    changes: Vec<(AccountId, Vec<u8>, bool)>,
    groups: BTreeSet<(AccountId, Vec<u8>)>,
    published: Vec<(AccountId, Packet)>,
    /// Number of published messages.
    count: usize,
}

impl Port for Outputs {
    fn publish(&mut self, message: &Message<'_>) {
        let packet = Packet {
            subject: message.subject.into(),
            reply: message.reply.into(),
            payload: match message.payload {
                b"" => message.headers.into(),
                payload => payload.into(),
            },
        };
        self.count += 1;
        self.published.push((self.account, packet));
    }

    fn deliver(&mut self, _: &[u8], _: &Message<'_>) {}

    fn has_interest(&mut self, _: &[u8]) -> bool {
        true
    }

    fn has_receiver(&mut self, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn subscribe(&mut self, filter: &[u8]) {
        let count = self
            .filters
            .entry((self.account, filter.into()))
            .or_default();
        *count += 1;
        if *count == 1 {
            self.changes.push((self.account, filter.into(), true));
        }
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        let key = (self.account, filter.to_vec());
        let count = self.filters.get_mut(&key).expect("a subscription");
        *count -= 1;
        if *count == 0 {
            self.filters.remove(&key);
            self.changes.push((self.account, filter.into(), false));
        }
    }

    fn set_member(&mut self, filter: &[u8], _: &[u8], is_member: bool) {
        let key = (self.account, filter.to_vec());
        match is_member {
            true => self.groups.insert(key),
            false => self.groups.remove(&key),
        };
    }
}

impl Ports for Outputs {
    fn of(&mut self, account: AccountId) -> &mut dyn Port {
        self.account = account;
        self
    }
}

struct Server {
    streams: JetStreams,
    shelf: Shelf,
    outputs: Outputs,
    /// Interest of each other server.
    known: Vec<BTreeMap<(AccountId, Vec<u8>), ()>>,
    is_up: bool,
}

struct World {
    servers: Vec<Server>,
    /// Events from one server to another.
    connections: BTreeMap<(usize, usize), VecDeque<Event>>,
    /// Answers to clients, by reply subject.
    answers: BTreeMap<String, Vec<Value>>,
    /// Advisories, with their accounts and subjects.
    events: Vec<(AccountId, String, Value)>,
    now: Now,
    random: FastRandom,
}

/// Creates the JetStream of a server.
fn service(at: usize, replicas: i64, shelf: &Shelf) -> JetStreams {
    let tags: [&[&str]; 3] = [&["ssd"], &["ssd", "eu"], &[]];
    let settings = Settings {
        server_id: format!("N{at}"),
        server_name: format!("name-{at}"),
        cluster: Some(ClusterSettings {
            name: "c".into(),
            tags: tags[at].iter().map(|tag| (*tag).to_owned()).collect(),
            replicas,
        }),
        ..Settings::default()
    };
    JetStreams::new(settings, Some(Box::new(shelf.clone())), 1)
}

fn matches(filter: &[u8], subject: &[u8]) -> bool {
    Filter::parse(filter).is_ok_and(|filter| filter.matches(subject))
}

impl World {
    fn new(count: usize, seed: u64) -> World {
        World::with_replicas(&[1; 3][..count], seed)
    }

    /// Creates a server for each number of replicas that the streams of one have.
    fn with_replicas(replicas: &[i64], seed: u64) -> World {
        let count = replicas.len();
        let server = |at: usize| {
            let shelf = Shelf::default();
            Server {
                streams: service(at, replicas[at], &shelf),
                shelf,
                outputs: Outputs::default(),
                known: (0..count).map(|_| BTreeMap::new()).collect(),
                is_up: true,
            }
        };
        let mut world = World {
            servers: (0..count).map(server).collect(),
            connections: BTreeMap::new(),
            answers: BTreeMap::new(),
            events: Vec::new(),
            now: Now::default(),
            random: FastRandom::new(seed),
        };
        for at in 0..count {
            world.start(at);
        }
        world.run();
        world
    }

    fn start(&mut self, at: usize) {
        let access = Access::new(AccessConfig::default()).unwrap();
        let Server {
            streams, outputs, ..
        } = &mut self.servers[at];
        streams.set_accounts(&access, self.now, outputs);
        self.collect(at);
    }

    /// Lets a server stop to lead its lane.
    fn retire(&mut self, at: usize) {
        let Server {
            streams, outputs, ..
        } = &mut self.servers[at];
        outputs.count = 0;
        streams.retire(self.now, outputs);
        self.collect(at);
    }

    /// Lets a server lead the lane of another one.
    fn lead(&mut self, at: usize, of: usize) {
        let shelf = self.servers[of].shelf.clone();
        self.servers[at].streams = service(at, 3, &shelf);
        self.servers[at].shelf = shelf;
        self.servers[at].outputs = Outputs::default();
        let Server { streams, known, .. } = &mut self.servers[at];
        for (account, filter) in known.iter().flat_map(BTreeMap::keys) {
            streams.handle_peer_interest(*account, filter, true);
        }
        self.start(at);
    }

    /// Passes on what a server has published and announced.
    fn collect(&mut self, at: usize) {
        let server = &mut self.servers[at];
        let streams = &mut server.streams;
        streams.settle(self.now, &mut server.outputs);
        while let Some(sync) = streams.poll_sync(self.now.since_start) {
            let (result, now) = (server.shelf.perform(&sync), self.now.since_start);
            let (stream, id) = (sync.sync.stream, sync.sync.request.id);
            streams.handle_synced(sync.account, stream, id, result, now);
            streams.settle(self.now, &mut server.outputs);
        }
        streams.release_acks(self.now.since_start, &mut server.outputs);
        let changes = std::mem::take(&mut server.outputs.changes);
        let published = std::mem::take(&mut server.outputs.published);
        for (account, filter, present) in changes {
            if is_all_requests(&filter, None) {
                continue;
            }
            for to in self.others(at) {
                let event = Event::Interest(account, filter.clone(), present);
                self.connections
                    .entry((at, to))
                    .or_default()
                    .push_back(event);
            }
        }
        for (account, packet) in published {
            self.publish(at, account, packet);
        }
    }

    fn others(&self, at: usize) -> Vec<usize> {
        let is_other = |to: &usize| *to != at && self.servers[*to].is_up;
        (0..self.servers.len()).filter(is_other).collect()
    }

    /// Delivers a message of a server or its client to all servers with interest that it knows.
    fn publish(&mut self, at: usize, account: AccountId, packet: Packet) {
        let text = String::from_utf8_lossy(&packet.subject).into_owned();
        if text.starts_with("_INBOX.") {
            let status = String::from_utf8_lossy(&packet.payload);
            let answer = match &*status {
                "" => Value::Null,
                status if status.starts_with("NATS/1.0") => Value::from(status),
                _ => serde_json::from_slice(&packet.payload).unwrap(),
            };
            return self.answers.entry(text).or_default().push(answer);
        }
        if text.starts_with("$JS.EVENT.") {
            let body = serde_json::from_slice(&packet.payload).unwrap();
            return self.events.push((account, text, body));
        }
        for to in self.others(at) {
            let known = self.servers[at].known[to].keys();
            let mut of_account = known.filter(|(owner, _)| *owner == account);
            if of_account.any(|(_, filter)| matches(filter, &packet.subject)) {
                let event = Event::Message(account, packet.clone(), Via::OtherServer);
                self.connections
                    .entry((at, to))
                    .or_default()
                    .push_back(event);
            }
        }
        self.deliver(at, account, &packet, Via::Here);
    }

    fn deliver(&mut self, at: usize, account: AccountId, packet: &Packet, via: Via) {
        let Server {
            streams, outputs, ..
        } = &mut self.servers[at];
        let own = outputs.filters.keys();
        let mut own = own.filter(|(owner, _)| *owner == account);
        if !own.any(|(_, filter)| matches(filter, &packet.subject)) {
            return;
        }
        let is_request =
            packet.subject.starts_with(b"$JS.") && !packet.subject.starts_with(ACK_PREFIX);
        let message = Message {
            subject: &packet.subject,
            reply: &packet.reply,
            payload: &packet.payload,
            is_from_route: via != Via::Here && is_request,
            is_delegated: via == Via::Delegator && is_request,
            ..Message::default()
        };
        streams.handle(account, &message, self.now, outputs);
        self.collect(at);
    }

    /// Lets one event arrive, or a timer fire. Returns whether there was any.
    fn step(&mut self) -> bool {
        let pairs: Vec<(usize, usize)> = self
            .connections
            .iter()
            .filter(|(_, events)| !events.is_empty())
            .map(|(pair, _)| *pair)
            .collect();
        if !pairs.is_empty() {
            let picked = self.random.below(u32::try_from(pairs.len()).unwrap()) as usize;
            let (from, to) = pairs[picked];
            let event = self
                .connections
                .get_mut(&pairs[picked])
                .unwrap()
                .pop_front();
            match event.unwrap() {
                Event::Interest(account, filter, present) => {
                    self.note_interest(from, to, account, filter, present);
                }
                Event::Message(account, packet, via) => self.deliver(to, account, &packet, via),
            }
            return true;
        }
        let up = (0..self.servers.len()).filter(|at| self.servers[*at].is_up);
        let timers = up
            .filter_map(|at| Some((self.servers[at].streams.peers.as_ref()?.next_timeout()?, at)));
        let Some((due, at)) = timers.min() else {
            return false;
        };
        self.now.since_start = self.now.since_start.max(due);
        let server = &mut self.servers[at];
        server.streams.handle_timeout(self.now, &mut server.outputs);
        self.collect(at);
        true
    }

    fn note_interest(
        &mut self,
        from: usize,
        to: usize,
        account: AccountId,
        filter: Vec<u8>,
        present: bool,
    ) {
        let server = &mut self.servers[to];
        server
            .streams
            .handle_peer_interest(account, &filter, present);
        match present {
            true => server.known[from].insert((account, filter), ()),
            false => server.known[from].remove(&(account, filter)),
        };
    }

    /// Lets all events arrive, without timers.
    fn deliver_events(&mut self) {
        while self.connections.values().any(|events| !events.is_empty()) {
            self.step();
        }
    }

    /// Publishes a message of a client.
    fn send_to(&mut self, at: usize, subject: &str, payload: &str) {
        let packet = Packet {
            subject: subject.into(),
            reply: Vec::new(),
            payload: payload.into(),
        };
        self.publish(at, AccountId::GLOBAL, packet);
        self.deliver_events();
    }

    fn run(&mut self) {
        while self.step() {
            assert!(self.now.since_start < WAIT_MAX, "requests wait for ever");
        }
    }

    /// Sends a request of a client, without waiting for anything. Returns its reply subject.
    fn send(&mut self, at: usize, request: &str, payload: &Value) -> String {
        let reply = format!("_INBOX.{}", self.answers.len());
        self.answers.insert(reply.clone(), Vec::new());
        let packet = Packet {
            subject: format!("$JS.API.{request}").into(),
            reply: reply.clone().into(),
            payload: payload.to_string().into(),
        };
        self.publish(at, AccountId::GLOBAL, packet);
        reply
    }

    /// Sends a request like a server without JetStream: to the server `to`, and to those that have announced the
    /// stream to it. Returns its reply subject.
    fn delegate(
        &mut self,
        (to, owners): (usize, &[usize]),
        request: &str,
        payload: &Value,
    ) -> String {
        let reply = format!("_INBOX.{}", self.answers.len());
        self.answers.insert(reply.clone(), Vec::new());
        let packet = Packet {
            subject: format!("$JS.API.{request}").into(),
            reply: reply.clone().into(),
            payload: payload.to_string().into(),
        };
        for owner in owners.iter().filter(|owner| **owner != to) {
            let event = Event::Message(AccountId::GLOBAL, packet.clone(), Via::OtherServer);
            let connection = self.connections.entry((CORE, *owner)).or_default();
            connection.push_back(event);
        }
        let event = Event::Message(AccountId::GLOBAL, packet, Via::Delegator);
        let connection = self.connections.entry((CORE, to)).or_default();
        connection.push_back(event);
        reply
    }

    /// Returns the only answer to a request.
    fn answer(&mut self, reply: &str) -> Value {
        let answers = &self.answers[reply];
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0].clone()
    }

    fn request(&mut self, at: usize, request: &str, payload: &Value) -> Value {
        let reply = self.send(at, request, payload);
        self.run();
        self.answer(&reply)
    }

    fn create(&mut self, at: usize, name: &str, subject: &str) -> Value {
        let config = stream(name, subject);
        self.request(at, &format!("STREAM.CREATE.{name}"), &config)
    }

    /// Returns the advisories since the last call whose subjects contain a word.
    fn take_events(&mut self, word: &str) -> Vec<(AccountId, String, Value)> {
        let mut events = std::mem::take(&mut self.events);
        events.retain(|(_, subject, _)| subject.contains(word));
        events
    }

    /// Stops a server: its connections end.
    fn stop(&mut self, at: usize) {
        self.servers[at].is_up = false;
        self.connections
            .retain(|(from, to), _| *from != at && *to != at);
        for to in self.others(at) {
            for ((account, filter), ()) in std::mem::take(&mut self.servers[to].known[at]) {
                self.note_interest(at, to, account, filter, false);
            }
        }
    }

    /// Returns the servers that have a stream of this name.
    fn owners(&self, name: &str) -> Vec<usize> {
        let has = |at: &usize| {
            self.servers[*at]
                .streams
                .has_stream_in(AccountId::GLOBAL, name)
        };
        (0..self.servers.len()).filter(has).collect()
    }
}

fn stream(name: &str, subject: &str) -> Value {
    json!({"name": name, "subjects": [subject], "storage": "memory"})
}

fn code(answer: &Value) -> u64 {
    answer["error"]["err_code"].as_u64().unwrap_or(0)
}

#[test]
fn stream_is_on_the_server_that_was_asked_and_reached_from_all() {
    let mut world = World::new(3, 1);
    for at in 0..3 {
        let (name, subject) = (format!("S{at}"), format!("s{at}"));
        let created = world.create(at, &name, &subject);
        assert_eq!(
            created["cluster"],
            json!({"name": "c", "leader": format!("name-{at}")})
        );
        assert_eq!(world.owners(&name), [at]);
    }
    for at in 0..3 {
        for owner in 0..3 {
            let info = world.request(at, &format!("STREAM.INFO.S{owner}"), &json!({}));
            assert_eq!(info["cluster"]["leader"], format!("name-{owner}"), "{info}");
            let consumer = json!({"stream_name": format!("S{owner}"), "config": {"durable_name": format!("c{at}"), "ack_policy": "explicit"}});
            let path = format!("CONSUMER.CREATE.S{owner}.c{at}");
            let created = world.request(at, &path, &consumer);
            assert_eq!(
                created["cluster"]["leader"],
                format!("name-{owner}"),
                "{created}"
            );
        }
        let again = world.create(at, "S1", "s1");
        assert_eq!(again["cluster"]["leader"], "name-1", "{again}");
        let other = world.create(at, "S1", "other");
        assert_eq!(code(&other), 10058, "{other}");
        let missing = world.request(at, "STREAM.INFO.none", &json!({}));
        assert_eq!(code(&missing), 10059, "{missing}");
        let overlapping = world.create(at, "T", "s1");
        assert_eq!(code(&overlapping), 10065, "{overlapping}");
    }
    let deleted = world.request(0, "STREAM.DELETE.S2", &json!({}));
    assert_eq!(deleted["success"], true);
    world.create(0, "S2", "s2");
    assert_eq!(world.owners("S2"), [0]);
}

#[test]
fn one_of_three_servers_creates_a_stream_that_all_claim_at_once() {
    for seed in 0..300 {
        let mut world = World::new(3, seed);
        let config = stream("S", "s");
        let sent: Vec<String> = (0..3)
            .map(|at| world.send(at, "STREAM.CREATE.S", &config))
            .collect();
        world.run();
        let owners = world.owners("S");
        assert_eq!(owners.len(), 1, "seed {seed}: {owners:?}");
        for reply in sent {
            let answer = world.answer(&reply);
            assert_eq!(
                answer["cluster"]["leader"],
                format!("name-{}", owners[0]),
                "seed {seed}: {answer}"
            );
        }
    }
}

#[test]
fn one_of_three_servers_creates_a_stream_with_subjects_that_overlap() {
    for seed in 0..300 {
        let mut world = World::new(3, seed);
        let subjects = ["a.*", "a.>", "a.b"];
        let sent: Vec<String> = (0..3)
            .map(|at| {
                world.send(
                    at,
                    &format!("STREAM.CREATE.S{at}"),
                    &stream(&format!("S{at}"), subjects[at]),
                )
            })
            .collect();
        world.run();
        let owners: Vec<usize> = (0..3)
            .flat_map(|at| world.owners(&format!("S{at}")))
            .collect();
        assert_eq!(owners.len(), 1, "seed {seed}: {owners:?}");
        let codes: Vec<u64> = sent
            .iter()
            .map(|reply| code(&world.answer(reply)))
            .collect();
        let refused = codes.iter().filter(|code| **code == 10065).count();
        assert_eq!(refused, 2, "seed {seed}: {codes:?}");
    }
}

#[test]
fn changed_subjects_are_claimed() {
    let mut world = World::new(3, 1);
    world.create(0, "S", "s");
    world.create(1, "T", "t");
    let overlapping = world.request(2, "STREAM.UPDATE.S", &stream("S", "t"));
    assert_eq!(code(&overlapping), 10065, "{overlapping}");
    let changed = world.request(2, "STREAM.UPDATE.S", &stream("S", "u"));
    assert_eq!(changed["config"]["subjects"], json!(["u"]), "{changed}");
}

#[test]
fn lists_contain_the_streams_of_all_servers() {
    let mut world = World::new(3, 1);
    for (at, name) in [(2, "A"), (0, "B"), (1, "C"), (2, "D")] {
        world.create(at, name, &format!("{name}.x"));
    }
    for at in 0..3 {
        let names = world.request(at, "STREAM.NAMES", &json!({}));
        assert_eq!(
            (&names["streams"], &names["total"]),
            (&json!(["A", "B", "C", "D"]), &json!(4))
        );
        let names = world.request(at, "STREAM.NAMES", &json!({"subject": "C.>"}));
        assert_eq!(names["streams"], json!(["C"]));
        let list = world.request(at, "STREAM.LIST", &json!({"offset": 1}));
        let streams = list["streams"].as_array().unwrap();
        let found: Vec<&str> = streams
            .iter()
            .filter_map(|info| info["config"]["name"].as_str())
            .collect();
        assert_eq!(
            (found, &list["total"]),
            (vec!["B", "C", "D"], &json!(4)),
            "{list}"
        );
        assert_eq!(streams[1]["cluster"]["leader"], "name-1");
        let account = world.request(at, "INFO", &json!({}));
        assert_eq!(account["streams"], 4, "{account}");
    }
}

#[test]
fn streams_are_placed_by_tags() {
    let mut world = World::new(3, 1);
    let mut create = |at: usize, name: &str, placement: Value| {
        let mut config = stream(name, name);
        config["placement"] = placement;
        let answer = world.request(at, &format!("STREAM.CREATE.{name}"), &config);
        let description = answer["error"]["description"].as_str().map(str::to_owned);
        (world.owners(name), description)
    };
    assert_eq!(create(2, "A", json!({"tags": ["SSD"]})), (vec![0], None));
    assert_eq!(
        create(1, "B", json!({"tags": ["ssd"], "cluster": "c"})),
        (vec![1], None)
    );
    assert_eq!(create(0, "C", json!({"tags": ["eu"]})), (vec![1], None));
    assert_eq!(create(0, "D", json!({"tags": ["!ssd"]})), (vec![2], None));
    for (placement, expected) in [
        (
            json!({"tags": ["x"]}),
            "no suitable peers for placement, tags not matched ['x']",
        ),
        (json!({"cluster": "d"}), "no suitable peers for placement"),
    ] {
        assert_eq!(
            create(0, "E", placement),
            (vec![], Some(expected.to_owned()))
        );
    }
}

#[test]
fn several_replicas_are_refused() {
    let mut world = World::new(3, 1);
    let config = json!({"name": "S", "num_replicas": 3, "storage": "memory"});
    let refused = world.request(0, "STREAM.CREATE.S", &config);
    assert_eq!(code(&refused), 10074, "{refused}");
}

#[test]
fn stream_is_created_by_a_server_with_as_many_replicas() {
    let mut world = World::with_replicas(&[1, 3, 1], 1);
    for (at, replicas, leader) in [(0, 3, "name-1"), (1, 3, "name-1"), (1, 1, "name-0")] {
        let name = format!("S{at}{replicas}");
        let config = json!({"name": name, "subjects": [name], "num_replicas": replicas, "storage": "memory"});
        let created = world.request(at, &format!("STREAM.CREATE.{name}"), &config);
        assert_eq!(created["cluster"]["leader"], leader, "{created}");
        assert_eq!(created["config"]["num_replicas"], replicas, "{created}");
        let same = world.request(2, &format!("STREAM.CREATE.{name}"), &config);
        assert_eq!(same["cluster"]["leader"], leader, "{same}");
        let other =
            json!({"name": name, "subjects": [name], "num_replicas": 5, "storage": "memory"});
        let refused = world.request(at, &format!("STREAM.UPDATE.{name}"), &other);
        assert_eq!(code(&refused), 10061, "{refused}");
    }
    let config = json!({"name": "T", "num_replicas": 5, "storage": "memory"});
    let refused = world.request(0, "STREAM.CREATE.T", &config);
    assert_eq!(code(&refused), 10005, "{refused}");
}

#[test]
fn server_that_does_not_answer_delays_requests_for_a_bounded_time() {
    let mut world = World::new(3, 1);
    world.create(2, "A", "a");
    // The server stops without its connections ending.
    world.servers[2].is_up = false;
    let refused = world.create(0, "S", "s");
    assert_eq!(code(&refused), 10008, "{refused}");
    let names = world.request(0, "STREAM.NAMES", &json!({}));
    assert_eq!(names["streams"], json!(["A"]));
    let list = world.request(0, "STREAM.LIST", &json!({}));
    assert_eq!(
        (&list["streams"], &list["missing"]),
        (&json!([]), &json!(["A"]))
    );
    // The connections end.
    let reply = world.send(0, "STREAM.CREATE.S", &stream("S", "s"));
    world.stop(2);
    world.run();
    let created = world.answer(&reply);
    assert_eq!(created["cluster"]["leader"], "name-0", "{created}");
    let missing = world.request(1, "STREAM.INFO.A", &json!({}));
    assert_eq!(code(&missing), 10059);
}

#[test]
fn two_streams_of_one_name_are_reported_and_one_answers() {
    let mut world = World::new(2, 1);
    // Both are created while the servers do not know each other.
    let peers: Vec<_> = world
        .servers
        .iter_mut()
        .map(|server| server.streams.peers.take())
        .collect();
    for at in 0..2 {
        world.send(at, "STREAM.CREATE.S", &stream("S", "s"));
    }
    world.run();
    for (server, peers) in world.servers.iter_mut().zip(peers) {
        server.streams.peers = peers;
    }
    for (at, other) in [(0, 1), (1, 0)] {
        let marker = format!("$JS.OWNER.N{other}.S");
        world.note_interest(other, at, AccountId::GLOBAL, marker.into(), true);
        let problems = world.servers[at].streams.take_problems();
        assert!(
            problems.iter().any(|it| it.contains("N0 answers requests")),
            "{problems:?}"
        );
    }
    for at in 0..2 {
        let info = world.request(at, "STREAM.INFO.S", &json!({}));
        assert_eq!(info["cluster"]["leader"], "name-0");
    }
}

#[test]
fn server_alone_claims_nothing() {
    let mut world = World::new(1, 1);
    let reply = world.send(0, "STREAM.CREATE.S", &stream("S", "s"));
    let created = world.answer(&reply);
    assert_eq!(created["did_create"], true, "{created}");
}

#[test]
fn requests_of_a_server_without_jetstream_are_answered_once() {
    for seed in 0..100 {
        let mut world = World::new(3, seed);
        let created = world.delegate((2, &[]), "STREAM.CREATE.S", &stream("S", "s"));
        world.run();
        assert_eq!(world.answer(&created)["cluster"]["leader"], "name-2");
        for to in 0..3 {
            let info = world.delegate((to, &[2]), "STREAM.INFO.S", &json!({}));
            let again = world.delegate((to, &[2]), "STREAM.CREATE.S", &stream("S", "s"));
            let overlapping = world.delegate((to, &[]), "STREAM.CREATE.T", &stream("T", "s"));
            let missing = world.delegate((to, &[]), "STREAM.INFO.none", &json!({}));
            let names = world.delegate((to, &[]), "STREAM.NAMES", &json!({}));
            let list = world.delegate((to, &[]), "STREAM.LIST", &json!({}));
            let account = world.delegate((to, &[]), "INFO", &json!({}));
            world.run();
            for reply in [info, again] {
                assert_eq!(world.answer(&reply)["cluster"]["leader"], "name-2");
            }
            assert_eq!(code(&world.answer(&overlapping)), 10065);
            assert_eq!(code(&world.answer(&missing)), 10059);
            assert_eq!(world.answer(&names)["streams"], json!(["S"]));
            assert_eq!(world.answer(&list)["streams"][0]["config"]["name"], "S");
            assert_eq!(world.answer(&account)["streams"], 1);
        }
    }
}

#[test]
fn server_without_jetstream_may_know_a_deletion_first() {
    for seed in 0..100 {
        let mut world = World::new(3, seed);
        world.create(0, "S", "s");
        let deleted = world.delegate((1, &[0]), "STREAM.DELETE.S", &json!({}));
        while world.answers[&deleted].is_empty() {
            assert!(world.step(), "seed {seed}: no answer");
        }
        // The other servers may still know the stream.
        let info = world.delegate((2, &[]), "STREAM.INFO.S", &json!({}));
        world.run();
        assert_eq!(world.answer(&deleted)["success"], true);
        assert_eq!(code(&world.answer(&info)), 10059, "seed {seed}");
    }
}

#[test]
fn stream_that_servers_without_jetstream_create_at_once_exists_once() {
    for seed in 0..100 {
        let mut world = World::new(3, seed);
        let config = stream("S", "s");
        let sent: Vec<String> = (0..3)
            .map(|to| world.delegate((to, &[]), "STREAM.CREATE.S", &config))
            .collect();
        world.run();
        let owners = world.owners("S");
        assert_eq!(owners.len(), 1, "seed {seed}: {owners:?}");
        for reply in sent {
            let leader = format!("name-{}", owners[0]);
            assert_eq!(
                world.answer(&reply)["cluster"]["leader"],
                leader,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn stream_that_was_created_twice_and_deleted_stays_deleted() {
    for seed in 0..100 {
        let mut world = World::new(3, seed);
        world.create(0, "S", "s");
        let config = stream("S", "s");
        let mut replies = Vec::new();
        for (to, request, payload) in [
            (1, "STREAM.CREATE.S", &config),
            (2, "STREAM.DELETE.S", &json!({})),
        ] {
            let reply = world.delegate((to, &[0]), request, payload);
            while world.answers[&reply].is_empty() {
                assert!(world.step(), "seed {seed}: no answer");
            }
            replies.push(reply);
        }
        world.run();
        for reply in replies {
            assert_eq!(code(&world.answer(&reply)), 0, "seed {seed}");
        }
        assert!(world.owners("S").is_empty(), "seed {seed}");
    }
}
