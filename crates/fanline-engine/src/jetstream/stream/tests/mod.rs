//! Tests of streams with a port that records messages. Expected results are those of nats-server, unless a
//! test states otherwise.

mod batches;
mod direct;
mod limits;
mod publish;
mod schedules;
mod sources;

use std::time::Duration;

use super::testing::Recorder;
use super::{Stream, StreamContext};
use crate::jetstream::{Message, Now, StreamConfig};
use crate::store::{Store, StoreLimits};

/// The time at which tests start: 2026-11-21T22:33:09.64Z.
pub(super) const START_UNIX_NANOS: i64 = 1_795_300_389_640_000_000;

/// A stream, its clock, and its port.
pub(super) struct Bench {
    pub(super) stream: Stream,
    pub(super) port: Recorder,
    pub(super) now: Now,
}

impl Bench {
    /// Creates a stream S in memory. `config` is JSON without the outer braces.
    pub(super) fn new(config: &str) -> Self {
        Bench::over(config, Store::memory(&StoreLimits::default()))
    }

    pub(super) fn over(config: &str, store: Store) -> Self {
        let now = Now {
            since_start: Duration::from_secs(1),
            unix_nanos: START_UNIX_NANOS,
        };
        let stream = Stream::new(
            parsed(config),
            store,
            now.unix_nanos,
            &StreamContext::default(),
            now,
        );
        Bench {
            stream: stream.unwrap(),
            port: Recorder::default(),
            now,
        }
    }

    /// Publishes a message, written as `subject |header|header| payload`, and returns the answers as
    /// [`answers`](Self::answers) does.
    pub(super) fn publish(&mut self, text: &str) -> String {
        self.publish_to("r", text)
    }

    /// Publishes a message with another reply subject.
    pub(super) fn publish_to(&mut self, reply: &str, text: &str) -> String {
        let (subject, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (headers, payload) = match rest.strip_prefix('|') {
            None => (String::new(), rest),
            Some(rest) => {
                let (headers, payload) = rest.rsplit_once('|').unwrap();
                let lines = headers.replace('|', "\r\n");
                (format!("NATS/1.0\r\n{lines}\r\n\r\n"), payload.trim_start())
            }
        };
        let message = Message {
            subject: subject.as_bytes(),
            reply: reply.as_bytes(),
            headers: headers.as_bytes(),
            payload: payload.as_bytes(),
            ..Message::default()
        };
        self.stream.publish(&message, self.now, &mut self.port);
        self.answers()
    }

    /// Advances the time and runs all timers that become due.
    pub(super) fn wait(&mut self, millis: u64) -> String {
        let end = self.now.since_start + Duration::from_millis(millis);
        let mut rings = 0;
        while let Some(due) = self.stream.next_timeout().filter(|due| *due <= end) {
            self.advance(due.saturating_sub(self.now.since_start));
            self.stream.handle_timeout(self.now, &mut self.port);
            self.stream.settle(self.now, &mut self.port);
            rings += 1;
            assert!(rings < 1_000, "a timer fires without end");
        }
        self.advance(end - self.now.since_start);
        self.answers()
    }

    fn advance(&mut self, by: Duration) {
        self.now.since_start += by;
        self.now.unix_nanos += i64::try_from(by.as_nanos()).unwrap();
    }

    /// Returns the records, each as `sequence subject |headers| payload`.
    pub(super) fn records(&mut self) -> Vec<String> {
        let last = self.stream.store().last_sequence();
        let mut shown = Vec::new();
        for sequence in 1..=last {
            if let Some(record) = self.stream.store().read(sequence).unwrap() {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "|");
                let headers = text(record.headers)
                    .replace("NATS/1.0", "")
                    .replace("||", "|");
                let parts = [text(record.subject), headers, text(record.payload)];
                let parts = parts.iter().filter(|part| !part.is_empty());
                let parts: Vec<_> = parts.map(String::as_str).collect();
                shown.push(format!("{sequence} {}", parts.join(" ")));
            }
        }
        shown
    }

    /// Returns the messages since the last call, shortened: `=7` for an acknowledgement, `!10071 text` for an
    /// error.
    pub(super) fn answers(&mut self) -> String {
        let lines = self.port.take_published();
        let short: Vec<_> = lines.iter().map(|line| shortened(line)).collect();
        short.join(" / ")
    }
}

pub(super) fn parsed(config: &str) -> StreamConfig {
    let comma = if config.is_empty() { "" } else { "," };
    serde_json::from_str(&format!(r#"{{"name":"S"{comma}{config}}}"#)).unwrap()
}

fn shortened(line: &str) -> String {
    let line = line.strip_prefix("r ").unwrap_or(line);
    if let Some(rest) = line.strip_prefix(r#"{"stream":"S","seq":"#) {
        return format!("={}", rest.trim_end_matches('}'));
    }
    if let Some(error) = line.strip_prefix(r#"{"error":"#) {
        let error = error.strip_suffix(r#","stream":"S","seq":0}"#).unwrap();
        let error: serde_json::Value = serde_json::from_str(error).unwrap();
        return format!(
            "!{} {}",
            error["err_code"],
            error["description"].as_str().unwrap()
        );
    }
    line.to_owned()
}

/// Publishes messages one after the other, and compares the answers with the expected ones.
pub(super) fn check(config: &str, steps: &[(&str, &str)]) {
    let mut bench = Bench::new(config);
    for (nth, (text, expected)) in steps.iter().enumerate() {
        assert_eq!(bench.publish(text), *expected, "{nth}: {text}");
    }
}
