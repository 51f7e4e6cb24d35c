//! Kills the server: no acknowledged message may be lost, and no confirmed deletion undone.
//!
//! Clients publish, consume, and delete while the process is killed at random moments, repeatedly with the
//! same folder. After each start all acknowledged messages must be there, unchanged. `FANLINE_KILLS` sets the
//! number of kills, `FANLINE_SEED` the random seed.

mod deletes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline_client::{Client, ConnectOptions, Message, OutgoingMessage, Subscription};
use tokio::time::timeout;

use crate::folder::Folder;
use crate::server::Server;

const KILLS_DEFAULT: u64 = 200;
const PUBLISHERS: u64 = 3;
/// Largest number of unacknowledged publishes of one client. A client pauses for [`PAUSE`] at this limit.
const IN_FLIGHT: u64 = 30;
const PAUSE: Duration = Duration::from_millis(4);
/// Number of keys in the stream of last values.
const KEYS: u64 = 20;
const RESPONSE_LIMIT: Duration = Duration::from_secs(20);

/// Pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}

/// Returns a number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Returns the payload of a publisher's `number`th message, which is unique.
fn payload(publisher: u64, number: u64) -> Vec<u8> {
    let mut random = Random((publisher << 40 | number) + 1);
    let mut text = format!("{publisher} {number} ").into_bytes();
    let filler = if random.below(50) == 0 { 20_000 } else { 300 };
    let filler = random.below(filler);
    text.extend((0..filler).map(|_| u8::try_from(random.below(256)).expect("a byte")));
    text
}

/// Returns publisher and number of a payload; `None` if no publisher sent it.
fn origin(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut words = bytes.splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    let (publisher, nth) = (number()?, number()?);
    (payload(publisher, nth) == bytes).then_some((publisher, nth))
}

/// Acknowledged operations.
#[derive(Default)]
struct Promises {
    /// For each sequence of the stream of all messages: the publisher, and the number of its message.
    all: BTreeMap<u64, (u64, u64)>,
    /// For each key of the stream of last values: the highest sequence.
    last: HashMap<u64, u64>,
    /// The next number of each publisher.
    next: HashMap<u64, u64>,
    /// Sequences of messages that the consumer received. `acked` contains those whose acknowledgement the
    /// server confirmed.
    given: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    deletions: deletes::Deletions,
}

impl Promises {
    /// Returns the number of a publisher's next message.
    fn next(&mut self, publisher: u64) -> u64 {
        let next = self.next.entry(publisher).or_insert(0);
        *next += 1;
        *next
    }

    /// Records an acknowledgement, whose subject ends with the stream and the message's number.
    fn note(&mut self, publisher: u64, ack: &Message) {
        let response = text(ack);
        let sequence = field(&response, "seq").filter(|seq| *seq > 0);
        let sequence = sequence.unwrap_or_else(|| panic!("refused: {response}"));
        let mut subject = ack.subject().rsplit('.');
        let number = subject.next().and_then(|number| number.parse().ok());
        let number: u64 = number.expect("the number that was sent");
        if subject.next() == Some("last") {
            let last = self.last.entry(number % KEYS).or_insert(0);
            *last = sequence.max(*last);
        } else {
            let before = self.all.insert(sequence, (publisher, number));
            assert_eq!(before, None, "sequence {sequence} was assigned twice");
        }
    }
}

type Shared = Arc<Mutex<Promises>>;

/// Returns the number after `"key":`.
fn field(json: &str, key: &str) -> Option<u64> {
    let (_, rest) = json.split_once(&format!("\"{key}\":"))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.payload()).into_owned()
}

/// Returns `None` if the server is down already.
async fn connect(address: &str) -> Option<Client> {
    let options = ConnectOptions::new(address).expect("an address");
    Client::connect(&options).await.ok()
}

async fn ask(client: &Client, path: &str, body: &str) -> String {
    let subject = format!("$JS.API.{path}");
    let answer = client
        .request(&subject, body.to_owned(), RESPONSE_LIMIT)
        .await;
    let answer = text(&answer.unwrap_or_else(|error| panic!("{path}: {error}")));
    assert!(!answer.contains(r#""error""#), "{path}: {answer}");
    answer
}

async fn publish(client: &Client, subject: String, reply: String, payload: Vec<u8>) -> bool {
    let message = OutgoingMessage {
        subject,
        reply: Some(reply),
        payload: payload.into(),
        ..OutgoingMessage::default()
    };
    client.publish_message(&message).await.is_ok()
}

/// Publishes to both streams until the connection is lost, and records acknowledgements.
async fn publisher(address: String, me: u64, promises: Shared) {
    let Some(client) = connect(&address).await else {
        return;
    };
    let inbox = client.new_inbox();
    let Ok(mut acks) = client.subscribe(&format!("{inbox}.*.*")).await else {
        return;
    };
    loop {
        for _ in 0..IN_FLIGHT {
            let number = promises.lock().expect("whole").next(me);
            let (key, payload) = (number % KEYS, payload(me, number));
            let (stream, subject) = match number % 4 {
                0 => ("last", format!("last.{key}")),
                _ => ("all", format!("all.{me}.{key}")),
            };
            let reply = format!("{inbox}.{stream}.{number}");
            if !publish(&client, subject, reply, payload).await {
                return;
            }
        }
        for _ in 0..IN_FLIGHT {
            let Some(ack) = acks.next().await else { return };
            promises.lock().expect("whole").note(me, &ack);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Pulls up to a hundred messages; `None` if the connection is lost.
async fn fetch(client: &Client, records: &mut Subscription, inbox: &str) -> Option<Vec<Message>> {
    let next = "$JS.API.CONSUMER.MSG.NEXT.ALL.reader".to_owned();
    let request = br#"{"batch":100,"no_wait":true}"#.to_vec();
    if !publish(client, next, inbox.to_owned(), request).await {
        return None;
    }
    let mut taken = Vec::new();
    while taken.len() < 100 {
        let record = records.next().await?;
        if record.status().is_some() {
            break;
        }
        taken.push(record);
    }
    Some(taken)
}

/// Returns the stream sequence of a delivered message.
fn sequence_of(record: &Message) -> u64 {
    let mut words = record.reply().unwrap_or_default().split('.');
    let sequence = words.nth(5).and_then(|word| word.parse().ok());
    sequence.expect("an address for the acknowledgement")
}

/// Pulls from the durable consumer and acknowledges, until the connection is lost or, with `to_end`, until
/// the stream is read completely.
async fn reader(address: String, promises: Shared, to_end: bool) {
    let Some(client) = connect(&address).await else {
        return;
    };
    let inbox = client.new_inbox();
    let Ok(mut records) = client.subscribe(&inbox).await else {
        return;
    };
    while let Some(taken) = fetch(&client, &mut records, &inbox).await {
        let given: Vec<u64> = taken.iter().map(sequence_of).collect();
        {
            let mut promises = promises.lock().expect("whole");
            let again = given.iter().find(|given| promises.acked.contains(given));
            assert_eq!(again, None, "it was acknowledged, and confirmed");
            promises.given.extend(&given);
        }
        let Some((last, others)) = taken.split_last() else {
            if to_end {
                return;
            }
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for record in others {
            let subject = record.reply().unwrap_or_default();
            if client.publish(subject, "+ACK").await.is_err() {
                return;
            }
        }
        // The confirmation of the last acknowledgement also confirms the earlier ones.
        let subject = last.reply().unwrap_or_default();
        if client
            .request(subject, "+ACK", RESPONSE_LIMIT)
            .await
            .is_err()
        {
            return;
        }
        promises.lock().expect("whole").acked.extend(given);
    }
}

async fn make(client: &Client) {
    let all = r#"{"name":"ALL","subjects":["all.>"],"storage":"file","allow_direct":true}"#;
    ask(client, "STREAM.CREATE.ALL", all).await;
    let last = r#"{"name":"LAST","subjects":["last.*"],"storage":"file","max_msgs_per_subject":1}"#;
    ask(client, "STREAM.CREATE.LAST", last).await;
    let reader = r#"{"stream_name":"ALL","config":{"durable_name":"reader","ack_policy":"explicit","ack_wait":1000000000,"max_ack_pending":200}}"#;
    ask(client, "CONSUMER.CREATE.ALL.reader", reader).await;
    deletes::make(client).await;
}

/// Reads the stream of all messages from a sequence on, and compares it with the acknowledged publishes.
async fn check_all(client: &Client, from: u64, promises: &Promises) {
    let info = ask(client, "STREAM.INFO.ALL", "").await;
    assert!(!info.contains(r#""lost""#), "{info}");
    let last = field(&info, "last_seq").expect("a sequence");
    assert_eq!(field(&info, "messages"), Some(last), "{info}");
    let promised = promises.all.last_key_value().map_or(0, |(seq, _)| *seq);
    assert!(
        last >= promised,
        "{promised} was acknowledged, {last} is the last"
    );
    let inbox = client.new_inbox();
    let mut records = client.subscribe(&inbox).await.expect("subscribed");
    let mut newest: HashMap<u64, u64> = HashMap::new();
    let mut next = from;
    while next <= last {
        let request = format!(r#"{{"seq":{next},"batch":1000}}"#).into_bytes();
        let subject = "$JS.API.DIRECT.GET.ALL".to_owned();
        assert!(publish(client, subject, inbox.clone(), request).await);
        loop {
            let record = timeout(RESPONSE_LIMIT, records.next())
                .await
                .expect("in time");
            let record = record.expect("connected");
            if let Some(status) = record.status() {
                assert_eq!(status, 204, "at {next} of {last}");
                break;
            }
            let header = record
                .headers()
                .and_then(|headers| headers.get("Nats-Sequence"));
            assert_eq!(header, Some(next.to_string().as_str()));
            let Some((publisher, number)) = origin(record.payload()) else {
                panic!("no publisher sent message {next}");
            };
            if let Some(promised) = promises.all.get(&next) {
                assert_eq!(*promised, (publisher, number), "{next} is another one");
            }
            let before = newest.insert(publisher, number);
            assert!(
                before < Some(number),
                "message {next} is out of order or duplicated"
            );
            next += 1;
        }
    }
}

async fn check_last(client: &Client, promises: &Promises) {
    for (key, sequence) in &promises.last {
        let request = format!(r#"{{"last_by_subj":"last.{key}"}}"#);
        let found = ask(client, "STREAM.MSG.GET.LAST", &request).await;
        let there = field(&found, "seq").expect("a sequence");
        assert!(
            there >= *sequence,
            "key {key}: {sequence} was acknowledged, {there} is there"
        );
    }
}

/// Checks the consumer's position. Messages may be redelivered if their acknowledgement was not confirmed,
/// but no message may be skipped.
async fn check_reader(client: &Client, promises: &mut Promises) {
    let info = ask(client, "CONSUMER.INFO.ALL.reader", "").await;
    let (_, floor) = info.split_once(r#""ack_floor":"#).expect("a floor");
    let floor = field(floor, "stream_seq").expect("a sequence");
    // Messages up to the floor are never redelivered, because they were acknowledged. If the server was
    // killed in the meantime, the client may not have received the confirmation.
    let missed = (1..=floor).find(|sequence| !promises.given.contains(sequence));
    assert_eq!(missed, None, "it was never delivered: {info}");
    let mut acked = promises.acked.iter().zip(1..);
    let gap = acked.find(|(acked, expected)| **acked != *expected);
    let promised = gap.map_or(promises.acked.len() as u64, |(_, expected)| expected - 1);
    assert!(floor >= promised, "acknowledged to {promised}: {info}");
    promises.acked.extend(1..=floor);
}

#[test]
fn acknowledged_messages_survive_kills() {
    let (kills, seed) = (
        setting("FANLINE_KILLS", KILLS_DEFAULT),
        setting("FANLINE_SEED", 1),
    );
    println!("FANLINE_SEED={seed}");
    let folder = Folder::new("killed");
    let store = folder.path("store");
    let flags = ["-js", "-sd", &store];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let promises = Shared::default();
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut checked = 1;
    for round in 0..=kills {
        let mut server = Server::start(&flags);
        let address = server.address.clone();
        let mut locked = promises.lock().expect("whole");
        let promised = &mut *locked;
        runtime.block_on(async {
            let client = connect(&address).await.expect("connected");
            if round == 0 {
                make(&client).await;
            }
            // After the last kill, all messages are checked. After the earlier ones, only new messages are
            // checked.
            let from = if round == kills { 1 } else { checked };
            check_all(&client, from, promised).await;
            check_last(&client, promised).await;
            check_reader(&client, promised).await;
            deletes::check(&client, &promised.deletions).await;
            checked = promised.all.last_key_value().map_or(1, |(seq, _)| *seq);
        });
        drop(locked);
        if round == kills {
            break;
        }
        let mut clients: Vec<_> = (0..PUBLISHERS)
            .map(|me| runtime.spawn(publisher(address.clone(), me, Arc::clone(&promises))))
            .collect();
        clients.push(runtime.spawn(deletes::run(address.clone(), round, Arc::clone(&promises))));
        clients.push(runtime.spawn(reader(address, Arc::clone(&promises), false)));
        // The server writes the consumer's position to disk within 250 ms, or earlier if a request waits for
        // it. One sleep in eight may be longer than that.
        let micros = if random.below(8) == 0 {
            500_000
        } else {
            130_000
        };
        std::thread::sleep(Duration::from_micros(random.below(micros)));
        match random.below(10) {
            0 => server.signal("quit"),
            _ => server.kill(),
        }
        server.wait();
        for client in clients {
            runtime
                .block_on(client)
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    // The last reader receives all messages whose acknowledgement was not confirmed.
    let server = Server::start(&flags);
    std::thread::sleep(Duration::from_millis(1100));
    let promises_now = Arc::clone(&promises);
    runtime.block_on(reader(server.address.clone(), promises_now, true));
    let promises = promises.lock().expect("whole");
    let (last, given) = (promises.all.last_key_value(), &promises.given);
    let last = *last.expect("something was acknowledged").0;
    assert_eq!((1..=last).find(|sequence| !given.contains(sequence)), None);
    println!("{} acknowledged, {} given", promises.all.len(), given.len());
    println!("{}", promises.deletions);
}
