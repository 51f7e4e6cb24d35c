//! A simulated stream with consumers, and a port that records messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Filter;
use crate::jetstream::consumer::{ConsumerId, Consumers, Context};
use crate::jetstream::{ConsumerConfig, Message, Now, Port, Retention};
use crate::store::{NewRecord, Store, StoreLimits};

/// Time at which tests start, on 2026-11-21. Times of records count from it.
pub(super) const EPOCH: i64 = 1_795_300_000_000_000_000;

/// A port that records messages.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) listening: BTreeSet<String>,
    pub(super) messages: Vec<String>,
    /// Acknowledgement subject of the last delivery of each record, by consumer name and sequence.
    pub(super) acks: BTreeMap<(String, u64), String>,
    /// Subject of the last flow control request.
    pub(super) flow: Option<String>,
    pub(super) pin: Option<String>,
    pub(super) deliveries: Vec<(String, u64)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Formats headers in one line, without headers that differ from run to run.
fn headers_in_line(headers: &[u8]) -> String {
    let lines = text(headers);
    let mut parts = Vec::new();
    for line in lines
        .trim_start_matches("NATS/1.0")
        .trim()
        .split("\r\n")
        .filter(|l| !l.is_empty())
    {
        match line.split_once(": ") {
            Some(("Nats-Pin-Id", _)) => parts.push("pinned".to_owned()),
            Some(("Nats-Consumer-Stalled", _)) => parts.push("stalled".to_owned()),
            Some((name, value)) => {
                parts.push(format!("{}={value}", name.trim_start_matches("Nats-")))
            }
            None => parts.push(line.to_owned()),
        }
    }
    parts.join(" ")
}

impl Port for Recorder {
    fn publish(&mut self, message: &Message<'_>) {
        let (subject, payload) = (text(message.subject), text(message.payload));
        if !message.reply.is_empty() {
            self.flow = Some(text(message.reply));
        }
        if let Some(event) = subject.strip_prefix("$JS.EVENT.") {
            let body: serde_json::Value = serde_json::from_str(&payload).unwrap();
            let fields = body.as_object().unwrap().iter();
            let known = [
                "type",
                "id",
                "timestamp",
                "stream",
                "consumer",
                "account",
                "pinned_id",
            ];
            let fields: Vec<String> = fields
                .filter(|(name, _)| !known.contains(&name.as_str()))
                .map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')))
                .collect();
            self.messages.push(format!("{event} {}", fields.join(" ")));
            return;
        }
        let line = format!("{subject} {} {payload}", headers_in_line(message.headers));
        self.messages.push(line.trim_end().to_owned());
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        let reply = text(message.reply);
        let tokens: Vec<&str> = reply.split('.').collect();
        let [_, _, _, consumer, deliveries, sequence, number, _, pending] = tokens[..] else {
            panic!("{reply}");
        };
        let sequence: u64 = sequence.parse().unwrap();
        self.acks
            .insert((consumer.to_owned(), sequence), reply.clone());
        self.deliveries.push((consumer.to_owned(), sequence));
        if let Some(at) = text(message.headers).find("Nats-Pin-Id: ") {
            let pin = text(message.headers)[at + 13..]
                .split("\r\n")
                .next()
                .unwrap()
                .to_owned();
            self.pin = Some(pin);
        }
        let line = format!(
            "{} {}={} x{deliveries} #{number} +{pending} {}",
            text(to),
            text(message.subject),
            text(message.payload),
            headers_in_line(message.headers)
        );
        self.messages.push(line.trim_end().to_owned());
    }

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        let mut plain = self.listening.iter().filter(|f| !f.contains(' '));
        plain.any(|filter| Filter::parse(filter.as_bytes()).unwrap().matches(subject))
    }

    /// In `listening`, a member of a queue group is written as `subject group`.
    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        match group {
            b"" => self.listening.contains(&text(subject)),
            group => self
                .listening
                .contains(&format!("{} {}", text(subject), text(group))),
        }
    }

    fn subscribe(&mut self, _filter: &[u8]) {}

    fn unsubscribe(&mut self, _filter: &[u8]) {}
}

/// A stream with its consumers and simulated clients.
pub(super) struct Simulation {
    pub(super) store: Store,
    pub(super) consumers: Consumers,
    pub(super) port: Recorder,
    pub(super) now: Now,
    pub(super) retention: Retention,
    pub(super) unused: Vec<ConsumerId>,
    /// Saved configurations and states, by name.
    pub(super) saved: BTreeMap<String, (ConsumerConfig, Vec<u8>)>,
}

impl Simulation {
    /// Creates an empty stream. All events have a subscriber.
    pub(super) fn new(retention: Retention) -> Self {
        let mut port = Recorder::default();
        port.listening.insert("$JS.EVENT.>".into());
        Simulation {
            store: Store::memory(&StoreLimits::default()),
            consumers: Consumers::new("S", "$G", retention, 7.into()),
            port,
            now: Now {
                since_start: Duration::from_secs(1000),
                unix_nanos: EPOCH,
            },
            retention,
            unused: Vec::new(),
            saved: BTreeMap::new(),
        }
    }

    /// Creates a stream with these records and a consumer `C`.
    pub(super) fn with(records: &[&str], config: &str) -> Self {
        let mut simulation = Simulation::new(Retention::Limits);
        simulation.append(records);
        simulation.create("C", config);
        simulation
    }

    pub(super) fn call<R>(&mut self, run: impl FnOnce(&mut Consumers, &mut Context<'_>) -> R) -> R {
        let mut context = Context {
            now: self.now,
            store: &mut self.store,
            port: &mut self.port,
        };
        let result = run(&mut self.consumers, &mut context);
        self.settle();
        result
    }

    /// Serves consumers and removes records, as a stream does.
    pub(super) fn settle(&mut self) {
        loop {
            let mut context = Context {
                now: self.now,
                store: &mut self.store,
                port: &mut self.port,
            };
            self.consumers.settle(&mut context);
            let mut unneeded = Vec::new();
            self.consumers.take_unneeded(&mut unneeded);
            for sequence in unneeded {
                self.finish(sequence);
            }
            self.consumers.take_unused(&mut self.unused);
            for (_, reply) in self.consumers.take_confirmations() {
                let subject = &reply;
                self.port.publish(&Message {
                    subject,
                    ..Message::default()
                });
            }
            if self.consumers.next_timeout() != Some(Duration::ZERO) {
                return;
            }
        }
    }

    fn finish(&mut self, sequence: u64) {
        let Some(record) = self.store.read(sequence).unwrap() else {
            return;
        };
        let subject = record.subject.to_vec();
        if self.retention == Retention::WorkQueue || !self.consumers.needs(sequence, &subject) {
            self.remove(sequence);
        }
    }

    pub(super) fn remove(&mut self, sequence: u64) {
        let subject = self
            .store
            .read(sequence)
            .unwrap()
            .map(|record| record.subject.to_vec());
        if let Some(subject) = subject {
            self.store.remove(sequence, false).unwrap();
            self.consumers.handle_removed(sequence, &subject);
        }
    }

    /// Stores records, written as `subject=payload`. The time of a record is its sequence in seconds after
    /// `EPOCH`.
    pub(super) fn append(&mut self, records: &[&str]) {
        for record in records {
            let (subject, payload) = record.split_once('=').unwrap();
            let last = i64::try_from(self.store.last_sequence()).unwrap();
            let record = NewRecord {
                unix_nanos: EPOCH + last * 1_000_000_000,
                subject: subject.as_bytes(),
                payload: payload.as_bytes(),
                ..NewRecord::default()
            };
            let sequence = self.store.append(&record).unwrap();
            self.consumers.handle_append(sequence, subject.as_bytes());
            self.settle();
        }
    }

    /// Creates a consumer from JSON. The default acknowledgement policy is `explicit`.
    pub(super) fn create(&mut self, name: &str, config: &str) -> ConsumerId {
        let mut json: serde_json::Value = serde_json::from_str(config).unwrap();
        let fields = json.as_object_mut().unwrap();
        fields.entry("ack_policy").or_insert("explicit".into());
        fields.entry("durable_name").or_insert(name.into());
        fields.insert("name".into(), name.into());
        let config: ConsumerConfig = serde_json::from_value(json).unwrap();
        let created = self.now.unix_nanos;
        self.call(|consumers, context| consumers.create(config, created, context).unwrap())
    }

    pub(super) fn id(&self, name: &str) -> ConsumerId {
        self.consumers.find(name).unwrap()
    }

    /// Sends a pull request to consumer `C`, with a subscription to `inbox`.
    pub(super) fn pull(&mut self, inbox: &str, body: &str) {
        self.pull_from("C", inbox, body);
    }

    pub(super) fn pull_from(&mut self, name: &str, inbox: &str, body: &str) {
        self.port.listening.insert(inbox.into());
        let id = self.id(name);
        let request = Message {
            reply: inbox.as_bytes(),
            payload: body.as_bytes(),
            ..Message::default()
        };
        self.call(|consumers, context| consumers.handle_pull(id, &request, context));
    }

    /// Acknowledges the last delivery of a record.
    pub(super) fn ack(&mut self, sequence: u64, payload: &str) {
        self.ack_to("C", sequence, payload, "");
    }

    /// Acknowledges a record, and returns whether the consumer expects acknowledgements.
    pub(super) fn takes_ack(&mut self, sequence: u64, payload: &str) -> bool {
        self.handle_ack("C", sequence, payload, "reply")
    }

    pub(super) fn ack_to(&mut self, name: &str, sequence: u64, payload: &str, reply: &str) {
        assert!(self.handle_ack(name, sequence, payload, reply));
    }

    fn handle_ack(&mut self, name: &str, sequence: u64, payload: &str, reply: &str) -> bool {
        let subject = self.port.acks[&(name.to_owned(), sequence)].clone();
        let message = Message {
            subject: subject.as_bytes(),
            reply: reply.as_bytes(),
            payload: payload.as_bytes(),
            ..Message::default()
        };
        self.call(|consumers, context| consumers.handle_ack(&message, context))
    }

    /// Adds or removes a subscriber. A member of a queue group is written as `subject group`.
    pub(super) fn listen(&mut self, filter: &str, present: bool) {
        if present {
            self.port.listening.insert(filter.into());
        } else {
            self.port.listening.remove(filter);
        }
        let subject = filter.split(' ').next().unwrap();
        self.call(|consumers, context| consumers.handle_interest(subject.as_bytes(), context));
    }

    /// Adds subscribers, and returns the records that one call of the consumers' `settle` delivers to them.
    pub(super) fn listen_for_one_round(&mut self, subjects: &[&str]) -> Vec<(String, u64)> {
        let subjects = subjects.iter().copied();
        self.port
            .listening
            .extend(subjects.clone().map(str::to_owned));
        let mut context = Context {
            now: self.now,
            store: &mut self.store,
            port: &mut self.port,
        };
        for subject in subjects {
            self.consumers
                .handle_interest(subject.as_bytes(), &mut context);
        }
        self.consumers.settle(&mut context);
        std::mem::take(&mut self.port.deliveries)
    }

    /// Advances the time, and runs all timers that become due.
    pub(super) fn pass_millis(&mut self, millis: u64) {
        let end = self.now.since_start + Duration::from_millis(millis);
        while let Some(due) = self.consumers.next_timeout().filter(|due| *due <= end) {
            self.move_to(due.max(self.now.since_start));
            self.save(false);
            self.call(Consumers::handle_timeout);
        }
        self.move_to(end);
    }

    /// Saves the states that are due; with `all`, every changed state.
    pub(super) fn save(&mut self, all: bool) {
        let saved = &mut self.saved;
        self.consumers.save(self.now, all, &mut |consumer, state| {
            let state = (consumer.config().clone(), state.to_vec());
            saved.insert(consumer.name().to_owned(), state);
        });
    }

    fn move_to(&mut self, since_start: Duration) {
        let step = since_start - self.now.since_start;
        self.now.since_start = since_start;
        self.now.unix_nanos += i64::try_from(step.as_nanos()).unwrap();
    }

    /// Compares the messages since the last call with the expected ones.
    #[track_caller]
    pub(super) fn expect_messages(&mut self, expected: &[&str]) {
        let messages = std::mem::take(&mut self.port.messages);
        assert_eq!(messages, expected);
    }

    /// Returns the numbers of a consumer: `delivered floor ack_pending redelivered waiting pending`.
    pub(super) fn numbers(&mut self, name: &str) -> String {
        let id = self.id(name);
        let info = self
            .call(|consumers, context| consumers.info(id, context))
            .unwrap();
        format!(
            "{}/{} {}/{} {} {} {} {}",
            info.delivered.consumer_seq,
            info.delivered.stream_seq,
            info.ack_floor.consumer_seq,
            info.ack_floor.stream_seq,
            info.num_ack_pending,
            info.num_redelivered,
            info.num_waiting,
            info.num_pending
        )
    }
}
