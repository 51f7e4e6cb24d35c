//! Tests of copies from another domain: two accounts on two servers, and a connection between them that may
//! fail.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::subject::Filter;

/// Index of the origin's server. The next constant is the index of the copy's server.
const ORIGIN: usize = 0;
const COPY: usize = 1;

/// A message in transit.
#[derive(Clone, Debug, Default)]
struct Packet {
    subject: Vec<u8>,
    reply: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
    shown: Vec<u8>,
}

/// The connection between the two servers.
#[derive(Default)]
struct Connection {
    /// Subscriptions of each server, with their number.
    filters: [BTreeMap<Vec<u8>, usize>; 2],
    /// Filters for which a server has subscribed or unsubscribed, not announced yet.
    interest_changes: VecDeque<(usize, Vec<u8>)>,
    packets: VecDeque<(usize, Packet)>,
    is_closed: bool,
    /// Number of messages that the connection loses next.
    loses: usize,
    /// Messages that the clients of each server have received.
    received: [Vec<Packet>; 2],
}

impl Connection {
    fn has_subscriber(&self, side: usize, subject: &[u8]) -> bool {
        let mut filters = self.filters[side].keys();
        filters.any(|filter| Filter::parse(filter).is_ok_and(|filter| filter.matches(subject)))
    }

    /// Returns whether a message may cross the connection. Requests to a server's own API do not cross.
    fn can_cross(&self, subject: &[u8]) -> bool {
        !self.is_closed && !subject.starts_with(b"$JS.API.")
    }
}

/// The port of one server.
struct ServerPort {
    connection: Rc<RefCell<Connection>>,
    side: usize,
}

impl ServerPort {
    fn send(&mut self, packet: Packet) {
        self.connection
            .borrow_mut()
            .packets
            .push_back((self.side, packet));
    }
}

impl Port for ServerPort {
    fn publish(&mut self, message: &Message<'_>) {
        self.send(Packet {
            subject: message.subject.into(),
            reply: message.reply.into(),
            headers: message.headers.into(),
            payload: message.payload.into(),
            shown: Vec::new(),
        });
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        self.send(Packet {
            subject: to.into(),
            reply: message.reply.into(),
            headers: message.headers.into(),
            payload: message.payload.into(),
            shown: message.subject.into(),
        });
    }

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        let connection = self.connection.borrow();
        let other_side = 1 - self.side;
        connection.has_subscriber(self.side, subject)
            || (connection.can_cross(subject) && connection.has_subscriber(other_side, subject))
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        group.is_empty() && self.has_interest(subject)
    }

    fn subscribe(&mut self, filter: &[u8]) {
        let mut connection = self.connection.borrow_mut();
        *connection.filters[self.side]
            .entry(filter.into())
            .or_default() += 1;
        connection
            .interest_changes
            .push_back((self.side, filter.into()));
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        let mut connection = self.connection.borrow_mut();
        let count = connection.filters[self.side].get_mut(filter).unwrap();
        *count -= 1;
        if *count == 0 {
            connection.filters[self.side].remove(filter);
        }
        connection
            .interest_changes
            .push_back((self.side, filter.into()));
    }
}

struct Simulation {
    connection: Rc<RefCell<Connection>>,
    sides: [(JetStream, ServerPort); 2],
    now: Now,
    published: u64,
}

impl Simulation {
    fn new() -> Self {
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: 1_700_000_000_000_000_000,
        };
        let connection = Rc::new(RefCell::new(Connection::default()));
        let side = |side: usize| {
            let settings = Settings {
                account: "$G".to_owned(),
                domain: Some(["hub", "edge"][side].to_owned()),
                ..Settings::default()
            };
            let mut port = ServerPort {
                connection: Rc::clone(&connection),
                side,
            };
            let seed = 7 + side as u64;
            let js = JetStream::new(settings, None, seed, now, &mut port);
            (js, port)
        };
        let sides = [side(ORIGIN), side(COPY)];
        let mut simulation = Simulation {
            connection,
            sides,
            now,
            published: 0,
        };
        simulation.run();
        simulation
    }

    fn handle(&mut self, side: usize, packet: &Packet) {
        let message = Message {
            subject: &packet.subject,
            reply: &packet.reply,
            headers: &packet.headers,
            payload: &packet.payload,
            shown: &packet.shown,
            is_from_route: false,
            is_delegated: false,
        };
        let (js, port) = &mut self.sides[side];
        js.handle(&message, self.now, port);
    }

    /// Runs until no message is in transit and no work is left.
    fn run(&mut self) {
        loop {
            for (js, port) in &mut self.sides {
                js.settle(self.now, port);
            }
            let interest_changes = self.connection.borrow_mut().interest_changes.pop_front();
            if let Some((of, filter)) = interest_changes {
                let is_closed = self.connection.borrow().is_closed;
                for (side, (js, port)) in self.sides.iter_mut().enumerate() {
                    if side == of || !is_closed {
                        js.handle_interest(&filter, self.now, port);
                    }
                }
                continue;
            }
            let packet = self.connection.borrow_mut().packets.pop_front();
            let Some((from, packet)) = packet else {
                return;
            };
            for side in [from, 1 - from] {
                if self.arrives(from, side, &packet) {
                    self.handle(side, &packet);
                }
            }
        }
    }

    fn arrives(&self, from: usize, side: usize, packet: &Packet) -> bool {
        let mut connection = self.connection.borrow_mut();
        if from != side {
            if !connection.can_cross(&packet.subject) {
                return false;
            }
            if connection.has_subscriber(side, &packet.subject) && connection.loses > 0 {
                connection.loses -= 1;
                return false;
            }
        }
        if packet.subject.starts_with(b"received.") {
            connection.received[side].push(packet.clone());
        }
        connection.has_subscriber(side, &packet.subject)
    }

    /// Advances the time and runs all timers that become due.
    fn wait(&mut self, duration: Duration) {
        let end = self.now.since_start + duration;
        loop {
            let timers = self.sides.iter().filter_map(|(js, _)| js.next_timeout());
            let next = timers.min().filter(|next| *next <= end).unwrap_or(end);
            let next = next.max(self.now.since_start);
            let passed = next - self.now.since_start;
            self.now.since_start = next;
            self.now.unix_nanos += i64::try_from(passed.as_nanos()).unwrap();
            for (js, port) in &mut self.sides {
                js.handle_timeout(self.now, port);
            }
            self.run();
            if next == end {
                return;
            }
        }
    }

    /// Returns the answer to a request to the API of one server.
    fn request(&mut self, side: usize, path: &str, body: &str) -> serde_json::Value {
        let packet = Packet {
            subject: format!("$JS.API.{path}").into_bytes(),
            reply: b"received.api".to_vec(),
            payload: body.as_bytes().to_vec(),
            ..Packet::default()
        };
        self.connection.borrow_mut().received[side].clear();
        self.handle(side, &packet);
        self.run();
        let received = self.connection.borrow().received[side].clone();
        serde_json::from_slice(&received[0].payload).unwrap()
    }

    fn add(&mut self, side: usize, name: &str, fields: &str) {
        let body = format!(r#"{{"name":"{name}","storage":"memory",{fields}}}"#);
        let made = self.request(side, &format!("STREAM.CREATE.{name}"), &body);
        assert!(made.get("error").is_none(), "{made}");
    }

    fn publish(&mut self, subject: &str, headers: &str, payload: &str) {
        let packet = Packet {
            subject: subject.as_bytes().to_vec(),
            headers: headers.as_bytes().to_vec(),
            payload: payload.as_bytes().to_vec(),
            ..Packet::default()
        };
        self.handle(ORIGIN, &packet);
        self.run();
    }

    fn publish_some(&mut self, count: u64) {
        for _ in 0..count {
            self.published += 1;
            let number = self.published;
            self.publish(&format!("o.{}", number % 3), "", &number.to_string());
        }
    }

    fn disconnect(&mut self) {
        self.connection.borrow_mut().is_closed = true;
        self.notify_all();
    }

    fn reconnect(&mut self) {
        self.connection.borrow_mut().is_closed = false;
        self.notify_all();
    }

    /// Announces to each server which filters the other has, or that they are gone.
    fn notify_all(&mut self) {
        for side in [ORIGIN, COPY] {
            let filters: Vec<_> = self.connection.borrow().filters[1 - side]
                .keys()
                .cloned()
                .collect();
            let (js, port) = &mut self.sides[side];
            for filter in filters {
                js.handle_interest(&filter, self.now, port);
            }
        }
        self.run();
    }

    /// Returns the records of a stream, each as `sequence subject payload`.
    fn records(&mut self, side: usize, stream: &str) -> Vec<String> {
        let mut shown = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.sides[side].0.read(stream, &[], 1, &mut |record| {
            let (subject, payload) = (text(record.subject), text(record.payload));
            shown.push(format!("{} {subject} {payload}", record.sequence));
            true
        });
        shown
    }

    fn origin_of(&mut self, stream: &str) -> serde_json::Value {
        let info = self.request(COPY, &format!("STREAM.INFO.{stream}"), "");
        match info.get("mirror") {
            Some(mirror) => mirror.clone(),
            None => info["sources"][0].clone(),
        }
    }
}

const EXTERNAL: &str = r#""external":{"api":"$JS.hub.API","deliver":""}"#;

fn origin(simulation: &mut Simulation) {
    simulation.add(ORIGIN, "O", r#""subjects":["o.>"],"allow_msg_ttl":true"#);
}

fn mirror(simulation: &mut Simulation, name: &str, more: &str) {
    simulation.add(
        COPY,
        name,
        &format!(r#""mirror":{{"name":"O",{EXTERNAL}{more}}},"allow_msg_ttl":true"#),
    );
}

fn source(simulation: &mut Simulation, name: &str, more: &str) {
    simulation.add(
        COPY,
        name,
        &format!(r#""sources":[{{"name":"O",{EXTERNAL}{more}}}]"#),
    );
}

#[test]
fn remote_sources_filter_and_rename_records() {
    let mut simulation = Simulation::new();
    origin(&mut simulation);
    simulation.publish_some(3);
    for (more, expected) in [
        ("", &["1 o.1 1", "2 o.2 2", "3 o.0 3", "4 o.1 4"][..]),
        (r#","opt_start_seq":3"#, &["3 o.0 3", "4 o.1 4"]),
        (r#","filter_subject":"o.1""#, &["1 o.1 1", "4 o.1 4"]),
        (
            r#","subject_transforms":[{"src":"o.1","dest":"one"},{"src":"o.2","dest":""}]"#,
            &["1 one 1", "2 o.2 2", "4 one 4"],
        ),
        (r#","opt_start_time":"2123-01-01T00:00:00Z""#, &[]),
    ] {
        mirror(&mut simulation, "M", more);
        simulation.wait(Duration::from_secs(2));
        if simulation.published == 3 {
            simulation.publish_some(1);
        }
        simulation.wait(Duration::from_secs(1));
        assert_eq!(simulation.records(COPY, "M"), expected, "{more}");
        let deleted = simulation.request(COPY, "STREAM.DELETE.M", "");
        assert_eq!(deleted["success"], true);
    }
    simulation.wait(Duration::from_secs(20));
    let info = simulation.request(ORIGIN, "STREAM.INFO.O", "");
    assert_eq!(info["state"]["consumer_count"], 0);
    let connection = simulation.connection.borrow();
    let mut left = connection.filters[COPY].keys();
    assert!(!left.any(|filter| filter.starts_with(b"$JS.M.") || filter.starts_with(b"$JSC.")));
}

#[test]
fn copy_has_source_header_and_ttl_of_origin() {
    let mut simulation = Simulation::new();
    origin(&mut simulation);
    let headers = "NATS/1.0\r\nNats-TTL: 30s\r\nNats-Expected-Stream: O\r\nA: b\r\n\r\n";
    simulation.publish("o.x", headers, "short");
    simulation.publish("o.y", "", "long");
    mirror(&mut simulation, "M", "");
    source(&mut simulation, "S", "");
    simulation.wait(Duration::from_secs(1));
    assert_eq!(simulation.records(COPY, "M"), ["1 o.x short", "2 o.y long"]);
    let mut headers = Vec::new();
    simulation.sides[COPY].0.read("S", &[], 1, &mut |record| {
        headers.push(String::from_utf8_lossy(record.headers).into_owned());
        true
    });
    let source = "Nats-Stream-Source: O:bTMUkJQk 2 > > o.y ";
    assert!(headers[1].contains(source), "{}", headers[1]);
    assert!(headers[0].contains("A: b"), "{}", headers[0]);
    assert!(!headers[0].contains("Expected"), "{}", headers[0]);
    simulation.wait(Duration::from_secs(30));
    assert_eq!(simulation.records(COPY, "M"), ["2 o.y long"]);
    assert_eq!(simulation.records(ORIGIN, "O"), ["2 o.y long"]);
}

/// A mirror may answer direct gets in place of its origin.
#[test]
fn mirror_answers_direct_gets_for_its_origin() {
    let mut simulation = Simulation::new();
    origin(&mut simulation);
    simulation.publish_some(1);
    for (is_direct, expected) in [("false", ""), ("true", "1")] {
        simulation.add(
            COPY,
            "M",
            &format!(r#""mirror":{{"name":"O",{EXTERNAL}}},"mirror_direct":{is_direct}"#),
        );
        simulation.wait(Duration::from_secs(1));
        simulation.connection.borrow_mut().received[COPY].clear();
        simulation.handle(
            COPY,
            &Packet {
                subject: b"$JS.API.DIRECT.GET.O.o.1".to_vec(),
                reply: b"received.direct".to_vec(),
                ..Packet::default()
            },
        );
        simulation.run();
        let received = simulation.connection.borrow().received[COPY].clone();
        assert_eq!(received[0].payload, expected.as_bytes(), "{is_direct}");
        simulation.request(COPY, "STREAM.DELETE.M", "");
    }
}

#[test]
fn stream_info_shows_status_of_remote_origin() {
    let mut simulation = Simulation::new();
    mirror(&mut simulation, "M", "");
    simulation.wait(Duration::from_secs(1));
    let status = simulation.origin_of("M");
    assert_eq!(status["error"]["err_code"], 10059, "{status}");
    assert_eq!(
        (&status["lag"], &status["active"]),
        (&0.into(), &(-1).into())
    );
    origin(&mut simulation);
    simulation.publish_some(5);
    simulation.wait(Duration::from_secs(12));
    let status = simulation.origin_of("M");
    assert!(status.get("error").is_none(), "{status}");
    assert_eq!(status["lag"], 0);
    assert!(
        status["active"].as_i64().unwrap() <= 1_000_000_000,
        "{status}"
    );
    simulation.disconnect();
    simulation.publish_some(5);
    // After hours without a connection, retries continue. Copying resumes within seconds of the reconnection.
    simulation.wait(Duration::from_secs(3 * 3_600));
    assert_eq!(simulation.records(COPY, "M").len(), 5);
    simulation.reconnect();
    simulation.wait(Duration::from_secs(2));
    assert_eq!(
        simulation.records(COPY, "M"),
        simulation.records(ORIGIN, "O")
    );
}

#[test]
fn mirror_can_become_an_ordinary_stream() {
    let mut simulation = Simulation::new();
    origin(&mut simulation);
    simulation.publish_some(3);
    mirror(&mut simulation, "M", "");
    simulation.wait(Duration::from_secs(1));
    let body = r#"{"name":"M","storage":"memory","subjects":["m"],"allow_msg_ttl":true}"#;
    let updated = simulation.request(COPY, "STREAM.UPDATE.M", body);
    assert!(updated.get("error").is_none(), "{updated}");
    simulation.publish_some(3);
    simulation.wait(Duration::from_secs(1));
    assert_eq!(simulation.records(COPY, "M").len(), 3);
    let is_inlet = |filter: &Vec<u8>| filter.starts_with(b"$JS.M.");
    assert!(
        !simulation.connection.borrow().filters[COPY]
            .keys()
            .any(is_inlet)
    );
    simulation.handle(
        COPY,
        &Packet {
            subject: b"m".to_vec(),
            payload: b"own".to_vec(),
            ..Packet::default()
        },
    );
    simulation.run();
    assert_eq!(simulation.records(COPY, "M")[3], "4 m own");
}

/// A copy uses a preconfigured consumer, and tells it which records are durable.
#[test]
fn work_queue_is_copied_by_preconfigured_consumer() {
    let mut simulation = Simulation::new();
    simulation.add(ORIGIN, "O", r#""subjects":["o.>"],"retention":"workqueue""#);
    let consumer = r#"{"stream_name":"O","config":{"durable_name":"dur","ack_policy":"flow_control","deliver_subject":"to.me","flow_control":true,"idle_heartbeat":1000000000,"sourcing":true}}"#;
    let made = simulation.request(ORIGIN, "CONSUMER.DURABLE.CREATE.O.dur", consumer);
    assert!(made.get("error").is_none(), "{made}");
    source(
        &mut simulation,
        "S",
        r#","consumer":{"name":"dur","deliver_subject":"to.me"}"#,
    );
    for _ in 0..5 {
        simulation.publish_some(20);
        simulation.wait(Duration::from_secs(2));
        simulation.disconnect();
        simulation.publish_some(20);
        simulation.wait(Duration::from_secs(20));
        simulation.reconnect();
        simulation.wait(Duration::from_secs(20));
    }
    let copied = simulation.records(COPY, "S");
    let payloads: Vec<_> = copied
        .iter()
        .map(|record| record.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .collect();
    assert_eq!(payloads, (1..=simulation.published).collect::<Vec<_>>());
    assert_eq!(simulation.records(ORIGIN, "O").len(), 0);
}

/// Records that were purged or deleted at the origin stay in the copy. The copy does not wait for them.
#[test]
fn removal_at_the_origin_does_not_stall_the_copy() {
    let mut simulation = Simulation::new();
    origin(&mut simulation);
    simulation.publish_some(4);
    mirror(&mut simulation, "M", "");
    simulation.wait(Duration::from_secs(1));
    simulation.disconnect();
    simulation.publish_some(4);
    simulation.request(ORIGIN, "STREAM.PURGE.O", r#"{"seq":7}"#);
    simulation.reconnect();
    simulation.wait(Duration::from_secs(30));
    simulation.publish_some(1);
    simulation.wait(Duration::from_secs(5));
    let numbers: Vec<_> = simulation
        .records(COPY, "M")
        .iter()
        .map(|record| record.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "7", "8", "9"]);
}

#[derive(Clone, Debug)]
enum Step {
    Publish(u64),
    Disconnect,
    Reconnect,
    Lose(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..40_u64).prop_map(Step::Publish),
        1 => Just(Step::Disconnect),
        2 => Just(Step::Reconnect),
        1 => (1..5_usize).prop_map(Step::Lose),
        3 => (1..15_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_copied_once_despite_connection_failures(
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut simulation = Simulation::new();
        origin(&mut simulation);
        mirror(&mut simulation, "M", "");
        source(&mut simulation, "S", r#","filter_subject":"o.1""#);
        for step in steps {
            match step {
                Step::Publish(count) => simulation.publish_some(count),
                Step::Disconnect => simulation.disconnect(),
                Step::Reconnect => simulation.reconnect(),
                Step::Lose(count) => simulation.connection.borrow_mut().loses = count,
                Step::Wait(millis) => simulation.wait(Duration::from_millis(millis)),
            }
        }
        simulation.connection.borrow_mut().loses = 0;
        simulation.reconnect();
        simulation.wait(Duration::from_secs(60));
        prop_assert_eq!(simulation.records(COPY, "M"), simulation.records(ORIGIN, "O"));
        let payloads = |records: Vec<String>| -> Vec<String> {
            let parts = records.iter().map(|record| record.split_once(' ').unwrap().1.to_owned());
            parts.filter(|part| part.starts_with("o.1 ")).collect()
        };
        prop_assert_eq!(payloads(simulation.records(COPY, "S")), payloads(simulation.records(ORIGIN, "O")));
    }
}
