//! The input is a script for an account's JetStream, with streams in memory. Lines of `--` part its steps:
//!
//! - `t` and a byte `b`: 2^(b mod 50) nanoseconds pass;
//! - anything else is a message: its topic and, after a space, where an answer goes; the next line begins its
//!   headers if it is `NATS/1.0`, which end with an empty line; the rest is its payload. The topic `@` stands for
//!   the `deliver_subject` that was answered last, to which what is restored is sent.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fanline_engine::Filter;
use fanline_engine::jetstream::{JetStream, Message, Now, Port, Settings};

const STEPS_MAX: usize = 100;
/// Messages that come back to a stream, each of which may bring about others.
const ECHOES_MAX: usize = 200;
const PART: &[u8] = b"\n--\n";

/// Whatever is asked, what is answered as JSON is JSON, what is subscribed to is given back once at most, and
/// nothing else happens.
pub fn check(data: &[u8]) {
    let mut world = World::default();
    let settings = Settings {
        account: "$G".into(),
        server_id: "SERVER".into(),
        server_name: "heron".into(),
        server_version: "2.15.2".into(),
        ..Settings::default()
    };
    let mut now = Now {
        since_start: Duration::ZERO,
        unix_nanos: 1_700_000_000_000_000_000,
    };
    let mut js = JetStream::new(settings, None, 7, now, &mut world);
    let mut echoes = 0;
    for step in steps(data).take(STEPS_MAX) {
        match step {
            [b't', b, ..] if step.len() <= 3 => {
                let nanos = 1 << (b % 50);
                now.since_start += Duration::from_nanos(nanos);
                now.unix_nanos += i64::try_from(nanos).expect("less than 2^50");
                js.handle_timeout(now, &mut world);
            }
            _ => {
                let owned = Owned::parse(step, &world.deliver_subject);
                js.handle(&owned.message(), now, &mut world);
            }
        }
        js.settle(now, &mut world);
        while echoes < ECHOES_MAX
            && let Some(echo) = world.published.pop_front()
        {
            if world.is_wanted(&echo.topic) {
                echoes += 1;
                js.handle(&echo.message(), now, &mut world);
                js.settle(now, &mut world);
            }
        }
        world.published.clear();
    }
    js.close(now, &mut world);
}

fn steps(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let here = rest?;
        let end = here.windows(PART.len()).position(|part| part == PART);
        rest = end.map(|end| &here[end + PART.len()..]);
        Some(&here[..end.unwrap_or(here.len())])
    })
}

/// A message that nobody else holds.
struct Owned {
    topic: Vec<u8>,
    reply: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
}

impl Owned {
    fn parse(step: &[u8], deliver_subject: &[u8]) -> Self {
        let line_end = step.iter().position(|b| *b == b'\n');
        let (line, rest) = step.split_at(line_end.unwrap_or(step.len()));
        let rest = rest.get(1..).unwrap_or_default();
        let mut words = line.splitn(2, |b| *b == b' ');
        let topic = words.next().unwrap_or_default();
        let is_headers = rest.starts_with(b"NATS/1.0");
        let end = rest.windows(4).position(|end| end == b"\r\n\r\n");
        let headers_end = end.filter(|_| is_headers).map_or(0, |end| end + 4);
        let (headers, payload) = rest.split_at(headers_end);
        Owned {
            topic: if topic == b"@" {
                deliver_subject
            } else {
                topic
            }
            .to_vec(),
            reply: words.next().unwrap_or_default().to_vec(),
            headers: headers.to_vec(),
            payload: payload.to_vec(),
        }
    }

    fn of(message: &Message<'_>) -> Self {
        Owned {
            topic: message.topic.to_vec(),
            reply: message.reply.to_vec(),
            headers: message.headers.to_vec(),
            payload: message.payload.to_vec(),
        }
    }

    fn message(&self) -> Message<'_> {
        Message {
            topic: &self.topic,
            reply: &self.reply,
            headers: &self.headers,
            payload: &self.payload,
            ..Message::default()
        }
    }
}

/// Everybody is there and listens.
#[derive(Default)]
struct World {
    published: VecDeque<Owned>,
    /// What was asked for, and how often.
    wanted: BTreeMap<Vec<u8>, usize>,
    deliver_subject: Vec<u8>,
}

impl World {
    fn is_wanted(&self, topic: &[u8]) -> bool {
        let mut wanted = self.wanted.keys();
        wanted.any(|filter| Filter::parse(filter).is_ok_and(|filter| filter.matches(topic)))
    }
}

impl Port for World {
    fn publish(&mut self, message: &Message<'_>) {
        let payload = message.payload;
        if message.headers.is_empty() && payload.starts_with(br#"{"type":"#) {
            let answer: serde_json::Value =
                serde_json::from_slice(payload).expect("an answer of the API is JSON");
            if let Some(subject) = answer["deliver_subject"].as_str() {
                self.deliver_subject = subject.into();
            }
        }
        self.published.push_back(Owned::of(message));
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        self.published.push_back(Owned {
            topic: to.to_vec(),
            ..Owned::of(message)
        });
    }

    fn has_interest(&mut self, _: &[u8]) -> bool {
        true
    }

    fn has_receiver(&mut self, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn subscribe(&mut self, filter: &[u8]) {
        *self.wanted.entry(filter.to_vec()).or_default() += 1;
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        let times = self.wanted.get_mut(filter);
        let times = times.expect("only what was asked for is given back");
        *times -= 1;
        if *times == 0 {
            self.wanted.remove(filter);
        }
    }
}
