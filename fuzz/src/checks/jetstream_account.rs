//! The environment of one account's JetStream service in a check. Every subject has a subscriber, and every
//! disk request succeeds.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fanline_engine::Filter;
use fanline_engine::jetstream::{Folders, JetStream, Message, Now, Port, Settings};

/// Maximum number of published messages that are passed back to the JetStream service. Each of them may cause
/// further messages.
const ECHOES_MAX: usize = 200;

/// A JetStream service, its environment, and its clock.
pub(super) struct Account {
    pub(super) js: JetStream,
    pub(super) port: TestPort,
    pub(super) now: Now,
    echoes: usize,
}

impl Account {
    pub(super) fn new(folders: Option<Box<dyn Folders>>) -> Self {
        let settings = Settings {
            account: "$G".into(),
            server_id: "SERVER".into(),
            server_name: "heron".into(),
            server_version: "2.15.2".into(),
            ..Settings::default()
        };
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: 1_700_000_000_000_000_000,
        };
        let mut port = TestPort::default();
        let js = JetStream::new(settings, folders, 7, now, &mut port);
        Account {
            js,
            port,
            now,
            echoes: 0,
        }
    }

    /// Advances the clock.
    pub(super) fn wait(&mut self, nanos: u64) {
        self.now.since_start += Duration::from_nanos(nanos);
        self.now.unix_nanos += i64::try_from(nanos).expect("a short time");
        self.js.handle_timeout(self.now, &mut self.port);
        self.settle();
    }

    pub(super) fn handle(&mut self, owned: &Owned) {
        self.js.handle(&owned.message(), self.now, &mut self.port);
        self.settle();
    }

    /// Delivers published messages to the subscriptions of the JetStream service, and drops all other
    /// messages.
    fn settle(&mut self) {
        self.js.settle(self.now, &mut self.port);
        self.sync();
        while self.echoes < ECHOES_MAX
            && let Some(echo) = self.port.published.pop_front()
        {
            if self.port.is_wanted(&echo.subject) {
                self.echoes += 1;
                self.js.handle(&echo.message(), self.now, &mut self.port);
                self.js.settle(self.now, &mut self.port);
                self.sync();
            }
        }
        self.port.published.clear();
    }

    /// Completes all syncs that the service requests.
    fn sync(&mut self) {
        for _ in 0..100 {
            let since_start = self.now.since_start;
            let Some(sync) = self.js.poll_sync(since_start) else {
                return self.js.release_acks(since_start, &mut self.port);
            };
            let (stream, id) = (sync.stream, sync.request.id);
            self.js.handle_synced(stream, id, Ok(()), since_start);
            self.js.settle(self.now, &mut self.port);
        }
    }

    pub(super) fn ask(&mut self, subject: &str, payload: &str) {
        self.handle(&Owned {
            subject: subject.into(),
            reply: b"reply".to_vec(),
            headers: Vec::new(),
            payload: payload.into(),
        });
    }

    /// Sends all kinds of requests about a stream and its given consumers.
    pub(super) fn ask_all(&mut self, stream: &str, consumers: &[&str]) {
        let details = r#"{"deleted_details":true,"subjects_filter":">"}"#;
        self.ask(&format!("$JS.API.STREAM.INFO.{stream}"), details);
        self.ask("$JS.API.STREAM.LIST", "");
        self.ask("$JS.API.INFO", "");
        self.ask(&format!("$JS.API.CONSUMER.LIST.{stream}"), "");
        for body in [
            r#"{"seq":1}"#,
            r#"{"seq":0,"next_by_subj":">"}"#,
            r#"{"last_by_subj":"s.a"}"#,
            r#"{"batch":5,"seq":1,"next_by_subj":"s.*"}"#,
            r#"{"multi_last":["s.*"],"batch":5}"#,
            r#"{"start_time":"2023-01-01T00:00:00Z","batch":3}"#,
        ] {
            self.ask(&format!("$JS.API.STREAM.MSG.GET.{stream}"), body);
            self.ask(&format!("$JS.API.DIRECT.GET.{stream}"), body);
        }
        for consumer in consumers {
            let of = format!("{stream}.{consumer}");
            self.ask(&format!("$JS.API.CONSUMER.INFO.{of}"), "");
            let next = r#"{"batch":10,"expires":1000000000}"#;
            self.ask(&format!("$JS.API.CONSUMER.MSG.NEXT.{of}"), next);
            for sequence in [1, 2, 5] {
                let ack = format!("$JS.ACK.{of}.1.{sequence}.{sequence}.1700000000000000000.0");
                self.ask(&ack, ["+ACK", "-NAK", "+TERM"][sequence % 3]);
            }
        }
        self.ask("s.a", "one more");
        for power in [20, 30, 36, 42] {
            self.wait(1 << power);
        }
        let snapshot = r#"{"deliver_subject":"backup","no_consumers":false}"#;
        self.ask(&format!("$JS.API.STREAM.SNAPSHOT.{stream}"), snapshot);
        self.ask(
            &format!("$JS.API.STREAM.MSG.DELETE.{stream}"),
            r#"{"seq":2}"#,
        );
        let purge = r#"{"filter":"s.b","keep":1}"#;
        self.ask(&format!("$JS.API.STREAM.PURGE.{stream}"), purge);
        for consumer in consumers {
            self.ask(
                &format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
                "10",
            );
        }
    }

    pub(super) fn close(mut self) {
        self.js.close(self.now, &mut self.port);
    }
}

/// A message that owns its bytes.
pub(super) struct Owned {
    pub(super) subject: Vec<u8>,
    pub(super) reply: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Owned {
    pub(super) fn parse(step: &[u8], deliver_subject: &[u8]) -> Self {
        let line_end = step.iter().position(|b| *b == b'\n');
        let (line, rest) = step.split_at(line_end.unwrap_or(step.len()));
        let rest = rest.get(1..).unwrap_or_default();
        let mut words = line.splitn(2, |b| *b == b' ');
        let subject = words.next().unwrap_or_default();
        let is_headers = rest.starts_with(b"NATS/1.0");
        let end = rest.windows(4).position(|end| end == b"\r\n\r\n");
        let headers_end = end.filter(|_| is_headers).map_or(0, |end| end + 4);
        let (headers, payload) = rest.split_at(headers_end);
        Owned {
            subject: if subject == b"@" {
                deliver_subject
            } else {
                subject
            }
            .to_vec(),
            reply: words.next().unwrap_or_default().to_vec(),
            headers: headers.to_vec(),
            payload: payload.to_vec(),
        }
    }

    pub(super) fn of(message: &Message<'_>) -> Self {
        Owned {
            subject: message.subject.to_vec(),
            reply: message.reply.to_vec(),
            headers: message.headers.to_vec(),
            payload: message.payload.to_vec(),
        }
    }

    pub(super) fn message(&self) -> Message<'_> {
        Message {
            subject: &self.subject,
            reply: &self.reply,
            headers: &self.headers,
            payload: &self.payload,
            ..Message::default()
        }
    }
}

/// The environment of the service: every subject has interest and a receiver.
#[derive(Default)]
pub(super) struct TestPort {
    pub(super) published: VecDeque<Owned>,
    /// The subscribed filters, and the number of subscriptions of each.
    wanted: BTreeMap<Vec<u8>, usize>,
    pub(super) deliver_subject: Vec<u8>,
}

impl TestPort {
    pub(super) fn is_wanted(&self, subject: &[u8]) -> bool {
        let mut wanted = self.wanted.keys();
        wanted.any(|filter| Filter::parse(filter).is_ok_and(|filter| filter.matches(subject)))
    }
}

impl Port for TestPort {
    fn publish(&mut self, message: &Message<'_>) {
        let payload = message.payload;
        if message.headers.is_empty() && payload.starts_with(br#"{"type":"#) {
            let answer: serde_json::Value =
                serde_json::from_slice(payload).expect("a response of the API is JSON");
            if let Some(subject) = answer["deliver_subject"].as_str() {
                self.deliver_subject = subject.into();
            }
        }
        self.published.push_back(Owned::of(message));
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        self.published.push_back(Owned {
            subject: to.to_vec(),
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
        let times = times.expect("only subscribed filters are unsubscribed");
        *times -= 1;
        if *times == 0 {
            self.wanted.remove(filter);
        }
    }
}
