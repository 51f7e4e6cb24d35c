//! JetStream of an account, with a stream and a consumer. Clients repeat what was not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanline_engine::jetstream::{Folders, JetStream, Message, Now, Port, Settings, StreamId};
use fanline_engine::store::{Disk, DiskError, SyncId};

use super::Dice;
use super::app::{App, Clients, LaneFolders};
use super::node::FOLDER;

/// Time after which clients repeat a request.
const PATIENCE_MILLIS: u64 = 700;

/// A message in either direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    subject: String,
    reply: String,
    headers: String,
    payload: String,
}

#[derive(Default)]
struct Outputs(Vec<Sent>);

impl Outputs {
    fn push(&mut self, to: &[u8], message: &Message<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push(Sent {
            subject: text(to),
            reply: text(message.reply),
            headers: text(message.headers),
            payload: text(message.payload),
        });
    }
}

impl Port for Outputs {
    fn publish(&mut self, message: &Message<'_>) {
        self.push(message.subject, message);
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        self.push(to, message);
    }

    fn has_interest(&mut self, _: &[u8]) -> bool {
        true
    }

    fn has_receiver(&mut self, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn subscribe(&mut self, _: &[u8]) {}

    fn unsubscribe(&mut self, _: &[u8]) {}
}

impl Folders for LaneFolders {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let names = self.names.get(FOLDER);
        let is_there = names.is_some_and(|names| names.iter().next().is_some());
        Ok(is_there.then(|| FOLDER.to_owned()).into_iter().collect())
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(LaneFolders::open(self)?))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        self.journal.remove_folder(stream)
    }
}

pub(super) struct JetStreamApp {
    jetstream: JetStream,
    outputs: Outputs,
}

fn at(now: u64) -> Now {
    let since_start = Duration::from_millis(now);
    let unix_nanos = 1_700_000_000_000_000_000 + i64::try_from(now).unwrap_or(0) * 1_000_000;
    Now {
        since_start,
        unix_nanos,
    }
}

impl App for JetStreamApp {
    type Request = Sent;
    type Reply = Sent;
    type Sync = (StreamId, SyncId);

    fn open(folders: LaneFolders, number: u64, now: u64) -> Result<Self, String> {
        let mut outputs = Outputs::default();
        let folders = Box::new(folders);
        let mut jetstream = JetStream::new(
            Settings::default(),
            Some(folders),
            number,
            at(now),
            &mut outputs,
        );
        match &jetstream.take_problems()[..] {
            [] => Ok(JetStreamApp { jetstream, outputs }),
            problems => Err(problems.join("; ")),
        }
    }

    fn handle(&mut self, request: &Sent, now: u64) {
        let message = Message {
            subject: request.subject.as_bytes(),
            reply: request.reply.as_bytes(),
            headers: request.headers.as_bytes(),
            payload: request.payload.as_bytes(),
            ..Message::default()
        };
        self.jetstream.handle(&message, at(now), &mut self.outputs);
    }

    fn poll(&mut self, now: u64) -> Vec<(StreamId, SyncId)> {
        let now = at(now);
        if self
            .jetstream
            .next_timeout()
            .is_some_and(|due| due <= now.since_start)
        {
            self.jetstream.handle_timeout(now, &mut self.outputs);
        }
        self.jetstream.settle(now, &mut self.outputs);
        let mut syncs = Vec::new();
        while let Some(sync) = self.jetstream.poll_sync(now.since_start) {
            syncs.push((sync.stream, sync.request.id));
        }
        self.jetstream
            .release_acks(now.since_start, &mut self.outputs);
        syncs
    }

    fn handle_synced(&mut self, (stream, id): (StreamId, SyncId), now: u64) {
        self.jetstream
            .handle_synced(stream, id, Ok(()), at(now).since_start);
    }

    fn replies(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.outputs.0)
    }
}

/// A publisher whose messages have ids, and a consumer that confirms each message.
#[derive(Default)]
pub(super) struct Users {
    /// Whether stream and consumer were confirmed.
    has_stream: bool,
    has_consumer: bool,
    asked_at: u64,
    published: u64,
    /// Messages without an acknowledgement, and the time of the last attempt.
    open: BTreeMap<u64, u64>,
    /// Acknowledged messages: number to sequence.
    acknowledged: BTreeMap<u64, u64>,
    fetched_at: u64,
    fetches: u64,
    /// Messages to confirm: sequence to the subject for the acknowledgement.
    received: BTreeMap<u64, (String, u64)>,
    confirmed: BTreeSet<u64>,
}

impl Users {
    fn create(&mut self, now: u64) -> Vec<Sent> {
        if now < self.asked_at + PATIENCE_MILLIS {
            return Vec::new();
        }
        self.asked_at = now;
        let (operation, payload) = match self.has_stream {
            false => (
                format!("STREAM.CREATE.{FOLDER}"),
                format!(
                    r#"{{"name":"{FOLDER}","subjects":["orders"],"allow_direct":true,"duplicate_window":100000000000}}"#
                ),
            ),
            true => (
                format!("CONSUMER.DURABLE.CREATE.{FOLDER}.c"),
                format!(
                    r#"{{"stream_name":"{FOLDER}","config":{{"durable_name":"c","ack_policy":"explicit","ack_wait":1000000000}}}}"#
                ),
            ),
        };
        vec![Sent {
            subject: format!("$JS.API.{operation}"),
            reply: if self.has_stream {
                "consumer"
            } else {
                "stream"
            }
            .to_owned(),
            payload,
            ..Sent::default()
        }]
    }
}

impl Clients<JetStreamApp> for Users {
    fn requests(&mut self, now: u64, is_quiet: bool, dice: &mut Dice) -> Vec<Sent> {
        if !self.has_stream || !self.has_consumer {
            return self.create(now);
        }
        let mut requests = Vec::new();
        let count = if !is_quiet && dice.one_in(4) {
            dice.below(5)
        } else {
            0
        };
        for _ in 0..count {
            self.published += 1;
            self.open.insert(self.published, 0);
        }
        for (number, tried_at) in &mut self.open {
            if *tried_at == 0 || now >= *tried_at + PATIENCE_MILLIS {
                *tried_at = now;
                requests.push(Sent {
                    subject: "orders".to_owned(),
                    reply: format!("published.{number}"),
                    headers: format!("NATS/1.0\r\nNats-Msg-Id: {number}\r\n\r\n"),
                    payload: number.to_string(),
                });
            }
        }
        if now >= self.fetched_at + PATIENCE_MILLIS / 2 {
            self.fetched_at = now;
            self.fetches += 1;
            requests.push(Sent {
                subject: format!("$JS.API.CONSUMER.MSG.NEXT.{FOLDER}.c"),
                reply: format!("fetched.{}", self.fetches),
                payload: r#"{"batch":100,"expires":300000000}"#.to_owned(),
                ..Sent::default()
            });
        }
        for (sequence, (subject, tried_at)) in &mut self.received {
            if *tried_at == 0 || now >= *tried_at + PATIENCE_MILLIS {
                *tried_at = now;
                requests.push(Sent {
                    subject: subject.clone(),
                    reply: format!("confirmed.{sequence}"),
                    payload: "+ACK".to_owned(),
                    ..Sent::default()
                });
            }
        }
        requests
    }

    fn receive(&mut self, reply: Sent) -> Result<(), String> {
        let Some((kind, number)) = reply.subject.split_once('.') else {
            let is_error = reply.payload.contains(r#""error""#);
            match &*reply.subject {
                "stream" if !is_error => self.has_stream = true,
                "consumer" if !is_error => self.has_consumer = true,
                "stream" | "consumer" => return Err(reply.payload),
                _ => {}
            }
            return Ok(());
        };
        let number: u64 = number.parse().unwrap_or(0);
        match kind {
            "published" => {
                let sequence = number_after(&reply.payload, r#""seq":"#);
                let sequence = sequence.ok_or_else(|| reply.payload.clone())?;
                self.open.remove(&number);
                let before = *self.acknowledged.entry(number).or_insert(sequence);
                if before != sequence {
                    return Err(format!("message {number} has {before} and {sequence}"));
                }
            }
            "fetched" if reply.reply.starts_with("$JS.ACK.") => {
                // $JS.ACK.stream.consumer.delivered.sequence.…
                let sequence = reply.reply.split('.').nth(5).and_then(|it| it.parse().ok());
                let sequence = sequence.ok_or("no sequence")?;
                if self.confirmed.contains(&sequence) {
                    return Err(format!(
                        "message {sequence} was delivered after it was confirmed"
                    ));
                }
                self.received.insert(sequence, (reply.reply, 0));
            }
            "confirmed" if reply.headers.is_empty() => {
                self.received.remove(&number);
                self.confirmed.insert(number);
            }
            _ => {}
        }
        Ok(())
    }

    /// Every acknowledged message is in its place, and every message was confirmed.
    fn check(&mut self, mut app: JetStreamApp, now: u64) -> Result<u64, String> {
        app.replies();
        for (number, sequence) in &self.acknowledged {
            let request = Sent {
                subject: format!("$JS.API.DIRECT.GET.{FOLDER}"),
                reply: "read".to_owned(),
                payload: format!(r#"{{"seq":{sequence}}}"#),
                ..Sent::default()
            };
            app.handle(&request, now);
            let replies = app.replies();
            let answer = replies.iter().find(|reply| reply.subject == "read");
            let headers = &answer.ok_or("no answer to a read")?.headers;
            if !headers.contains(&format!("Nats-Msg-Id: {number}\r\n")) {
                return Err(format!("message {number} is not at {sequence}: {headers}"));
            }
        }
        if let Some(number) = self.open.keys().next() {
            return Err(format!("message {number} was never acknowledged"));
        }
        let missing = self
            .acknowledged
            .values()
            .find(|it| !self.confirmed.contains(it));
        match missing {
            Some(sequence) => Err(format!(
                "message {sequence} was never delivered and confirmed"
            )),
            None => Ok(self.acknowledged.len() as u64),
        }
    }
}

fn number_after(text: &str, before: &str) -> Option<u64> {
    let rest = &text[text.find(before)? + before.len()..];
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}
