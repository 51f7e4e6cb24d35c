//! How an origin elsewhere is read: by a consumer that is made there and pushes its records here.
//!
//! Whatever goes wrong, a number that is missing, silence, a refusal, ends in the same way: the consumer is
//! left, and after a rest another one is asked for, which begins behind the last record that was kept.

use std::collections::VecDeque;
use std::time::Duration;

use super::ask::{Begun, Question, read_answer, status};
use crate::headers::{Block, find};
use crate::jetstream::consumer::AckTopic;
use crate::jetstream::{ApiError, External, Message, Port, StreamSource};
use crate::random::Random;

/// The prefix of an API, when an origin elsewhere does not say which.
const OWN_API: &str = "$JS.API";

/// How long an answer may take.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long an origin may be silent that promised to speak every second.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// The rest after the first failure in a row. Each further one doubles it.
const REST_MIN: Duration = Duration::from_millis(250);
/// It is never longer than this, so that a copy goes on soon after hours without a link.
const REST_MAX: Duration = Duration::from_secs(10);
/// How soon it is looked again whether anybody answers for the origin.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Statuses from here on are the last word of a consumer.
const STATUS_OVER: u16 = 400;

/// The state of reading an origin elsewhere.
pub(super) struct Reader {
    /// The origin's name.
    origin: String,
    /// What stands in the place of `$JS.API`.
    api: String,
    /// What the topics begin with on which records come; empty for the server's own.
    deliver: String,
    state: State,
    /// How often it was given up since a record came.
    failures: u32,
    error: Option<ApiError>,
    /// Whether the inlets are others than when they were last looked at.
    has_moved: bool,
}

enum State {
    /// It is not read until then.
    Resting { until: Duration },
    /// It was asked, or delivers.
    Reading(Box<Reading>),
}

struct Reading {
    names: Names,
    /// The number of the last delivery, and its record's at the origin.
    delivered: u64,
    sequence: u64,
    is_answered: bool,
    /// When it was last heard of.
    heard: Duration,
    /// When it is looked whether it has been silent for too long.
    check_at: Duration,
    /// Answers to flow control that wait until what came before them is durable here.
    owed: VecDeque<Owed>,
}

struct Owed {
    /// The own log must be durable up to here.
    until: u64,
    reply: Vec<u8>,
    delivered: u64,
    taken: u64,
}

/// What everything about one consumer is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) consumer: String,
    /// Where its records come in.
    pub(super) deliver: String,
    /// Where it is answered that there is one.
    reply: String,
    /// It was made at the origin beforehand: it stays, and is told what is durable here.
    is_lasting: bool,
}

/// What a message means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// It is from a consumer that was left.
    Nothing,
    /// The origin is there.
    Alive,
    /// Its records are about to come.
    Begun(Begun),
    /// A record.
    Record(AckTopic<'a>),
    /// It wants to be told whether this side keeps up.
    Asks(&'a [u8]),
    /// Something got lost, or the consumer is gone.
    Broken,
    /// It delivers nothing, and says why; or nobody is there to ask.
    Refused(Option<ApiError>),
}

impl Reader {
    /// An origin that is to be asked at once.
    pub(super) fn new(origin: &str, external: &External) -> Self {
        let api = match external.api.as_str() {
            "" => OWN_API,
            api => api,
        };
        Reader {
            origin: origin.to_owned(),
            api: api.to_owned(),
            deliver: external.deliver.clone(),
            state: State::Resting {
                until: Duration::ZERO,
            },
            failures: 0,
            error: None,
            has_moved: false,
        }
    }

    /// The prefix of the origin's API.
    pub(super) fn api(&self) -> &str {
        &self.api
    }

    /// Why nothing comes, if the origin said so.
    pub(super) fn error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }

    /// The topics on which it is spoken to.
    pub(super) fn inlets(&self) -> impl Iterator<Item = &[u8]> {
        let names = match &self.state {
            State::Reading(reading) => Some(&reading.names),
            State::Resting { .. } => None,
        };
        names
            .into_iter()
            .flat_map(|names| [names.reply.as_bytes(), names.deliver.as_bytes()])
    }

    /// Whether those are others than when this was asked last.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// When [`is_to_ask`](Self::is_to_ask) is to be called next.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        match &self.state {
            State::Resting { until } => Some(*until).filter(|until| *until < Duration::MAX),
            State::Reading(reading) => Some(reading.check_at),
        }
    }

    /// Whether it is time to ask for the records that come next. An origin that was silent for too long is
    /// given up here.
    pub(super) fn is_to_ask(&mut self, now: Duration, port: &mut dyn Port) -> bool {
        if let State::Reading(reading) = &mut self.state
            && reading.check_at <= now
        {
            reading.check_at = reading.silent_until();
            if reading.check_at <= now {
                self.rest(now, port);
            }
        }
        matches!(&self.state, State::Resting { until } if *until <= now)
    }

    /// Names for a consumer of a stream's origin. Nobody can guess those that were not given.
    pub(super) fn names(
        &self,
        stream: &str,
        source: &StreamSource,
        is_mirror: bool,
        random: &mut Random,
    ) -> Names {
        let reply = format!("$JSC.R.{}", random.id());
        if let Some(made) = &source.consumer {
            return Names {
                consumer: made.name.clone(),
                deliver: made.deliver_subject.clone(),
                reply,
                is_lasting: true,
            };
        }
        let (kind, letter) = match is_mirror {
            true => ("MIRROR", "M"),
            false => ("SRC", "S"),
        };
        let deliver = match self.deliver.as_str() {
            "" => format!("$JS.{letter}.{}", random.id()),
            prefix => format!("{prefix}.{stream}.{}", random.id()),
        };
        Names {
            consumer: format!("JS_{kind}_{}", random.consumer_name()),
            deliver,
            reply,
            is_lasting: false,
        }
    }

    /// Asks, if anybody is there to answer.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        names: Names,
        now: Duration,
        port: &mut dyn Port,
    ) {
        let topic = question.topic.as_bytes();
        if !port.has_interest(topic) {
            let until = now.saturating_add(LOOK_AGAIN_AFTER);
            self.state = State::Resting { until };
            return;
        }
        port.subscribe(names.reply.as_bytes());
        port.subscribe(names.deliver.as_bytes());
        port.publish(&Message {
            topic,
            reply: names.reply.as_bytes(),
            payload: &question.body,
            ..Message::default()
        });
        self.has_moved = true;
        self.state = State::Reading(Box::new(Reading {
            names,
            delivered: 0,
            sequence: 0,
            is_answered: false,
            heard: now,
            check_at: now.saturating_add(ANSWER_WAIT_MAX),
            owed: VecDeque::new(),
        }));
    }

    /// Says what a message means that came in on one of the inlets. What is broken or refused is to be
    /// followed by a [`rest`](Self::rest).
    pub(super) fn handle<'a>(&mut self, message: &Message<'a>, now: Duration) -> Heard<'a> {
        let State::Reading(reading) = &mut self.state else {
            return Heard::Nothing;
        };
        if message.topic == reading.names.reply.as_bytes() {
            let heard = reading.handle_answer(message, now);
            self.error = match &heard {
                Heard::Refused(error) => error.clone(),
                _ => None,
            };
            return heard;
        }
        if message.topic != reading.names.deliver.as_bytes() {
            return Heard::Nothing;
        }
        reading.heard = now;
        reading.handle_delivery(message)
    }

    /// A record has been kept: what was wrong is right again.
    pub(super) fn note_kept(&mut self) {
        self.failures = 0;
        self.error = None;
    }

    /// A record could not be kept.
    pub(super) fn note_failed(&mut self, error: ApiError) {
        self.error = Some(error);
    }

    /// Tells the origin that this side keeps up: a consumer that lasts, once all that it has delivered is
    /// durable here, so that it may give that up. `until` is the last of it.
    pub(super) fn answer(&mut self, reply: &[u8], taken: u64, until: u64, port: &mut dyn Port) {
        let State::Reading(reading) = &mut self.state else {
            return;
        };
        if reading.names.is_lasting {
            reading.owed.push_back(Owed {
                until,
                reply: reply.to_vec(),
                delivered: reading.delivered,
                taken,
            });
            return;
        }
        port.publish(&Message {
            topic: reply,
            ..Message::default()
        });
    }

    /// Gives the answers that were held back until the own log was durable up to here.
    pub(super) fn pay(&mut self, durable: u64, port: &mut dyn Port) {
        let State::Reading(reading) = &mut self.state else {
            return;
        };
        while let Some(owed) = reading.owed.pop_front_if(|owed| owed.until <= durable) {
            let mut headers = Vec::new();
            let headers = Block::new(&mut headers)
                .add_number("Nats-Last-Consumer", owed.delivered)
                .add_number("Nats-Last-Stream", owed.taken)
                .end();
            port.publish(&Message {
                topic: &owed.reply,
                headers,
                ..Message::default()
            });
        }
    }

    /// Leaves the consumer; another one is asked for after a while, the longer the oftener this has happened
    /// without a record in between.
    pub(super) fn rest(&mut self, now: Duration, port: &mut dyn Port) {
        self.leave(port);
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let rest = REST_MIN.saturating_mul(factor).min(REST_MAX);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Resting {
            until: now.saturating_add(rest),
        };
    }

    /// Leaves the consumer for good. One that was made for this is not left to find out by itself.
    pub(super) fn leave(&mut self, port: &mut dyn Port) {
        let gone = State::Resting {
            until: Duration::MAX,
        };
        let State::Reading(reading) = std::mem::replace(&mut self.state, gone) else {
            return;
        };
        self.has_moved = true;
        let names = &reading.names;
        port.unsubscribe(names.reply.as_bytes());
        port.unsubscribe(names.deliver.as_bytes());
        let Reader { api, origin, .. } = self;
        let topic = format!("{api}.CONSUMER.DELETE.{origin}.{}", names.consumer);
        if !names.is_lasting && port.has_interest(topic.as_bytes()) {
            port.publish(&Message {
                topic: topic.as_bytes(),
                ..Message::default()
            });
        }
    }
}

impl Reading {
    /// If nothing comes until then, it is given up.
    fn silent_until(&self) -> Duration {
        let patience = match self.is_answered {
            true => SILENCE_MAX,
            false => ANSWER_WAIT_MAX,
        };
        self.heard.saturating_add(patience)
    }

    fn handle_answer<'a>(&mut self, message: &Message<'a>, now: Duration) -> Heard<'a> {
        match read_answer(message) {
            Ok(begun) => {
                self.heard = now;
                self.is_answered = true;
                if self.names.is_lasting {
                    self.delivered = self.delivered.max(begun.confirmed);
                }
                Heard::Begun(begun)
            }
            Err(error) => Heard::Refused(error),
        }
    }

    fn handle_delivery<'a>(&mut self, message: &Message<'a>) -> Heard<'a> {
        // A consumer that lasts may still count as it did before; records of others may overtake the answer.
        let counts_anew = self.is_answered || !self.names.is_lasting;
        self.is_answered = counts_anew;
        // A record has its publisher's headers, which may look like a status.
        let Some(topic) = AckTopic::parse(message.reply) else {
            return match status(message) {
                Some(STATUS_OVER..) => Heard::Broken,
                Some(_) if counts_anew => self.handle_status(message),
                _ => Heard::Alive,
            };
        };
        if !counts_anew && topic.consumer_sequence != self.delivered.saturating_add(1) {
            return Heard::Alive;
        }
        if topic.consumer_sequence <= self.delivered {
            // It has come before, unless another count has begun that nobody told of.
            return match topic.stream_sequence <= self.sequence {
                true => Heard::Alive,
                false => Heard::Broken,
            };
        }
        if topic.consumer_sequence - self.delivered > 1 {
            return Heard::Broken;
        }
        self.delivered = topic.consumer_sequence;
        self.sequence = topic.stream_sequence;
        Heard::Record(topic)
    }

    fn handle_status<'a>(&self, message: &Message<'a>) -> Heard<'a> {
        let number = |name: &[u8]| {
            let text = std::str::from_utf8(find(message.headers, name)?).ok()?;
            text.trim_end().parse::<u64>().ok()
        };
        if number(b"Nats-Last-Consumer").is_some_and(|last| last > self.delivered) {
            return Heard::Broken;
        }
        if !message.reply.is_empty() {
            return Heard::Asks(message.reply);
        }
        match find(message.headers, b"Nats-Consumer-Stalled") {
            Some(stalled) => Heard::Asks(stalled.trim_ascii_end()),
            None => Heard::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::stream::testing::Recorder;

    const AT: Duration = Duration::from_secs(100);

    fn asked() -> (Reader, Recorder) {
        let external = External {
            api: "$JS.hub.API".to_owned(),
            deliver: "to.me".to_owned(),
        };
        let mut reader = Reader::new("O", &external);
        let mut port = Recorder::default();
        ask(&mut reader, AT, &mut port);
        assert_eq!(reader.next_timeout(), Some(AT + LOOK_AGAIN_AFTER));
        port.interest.insert(b"$JS.hub.API.>".to_vec());
        ask(&mut reader, AT, &mut port);
        (reader, port)
    }

    fn ask(reader: &mut Reader, now: Duration, port: &mut Recorder) {
        let names = Names {
            consumer: "C".to_owned(),
            deliver: "d".to_owned(),
            reply: "r".to_owned(),
            is_lasting: false,
        };
        let question = Question {
            topic: "$JS.hub.API.CONSUMER.CREATE.O.C".to_owned(),
            body: b"{}".to_vec(),
        };
        reader.ask(&question, names, now, port);
    }

    fn heard(
        reader: &mut Reader,
        topic: &str,
        reply: &str,
        headers: &str,
        payload: &str,
    ) -> String {
        let headers = match headers {
            "" => String::new(),
            lines => format!("NATS/1.0{}\r\n\r\n", lines.replace('|', "\r\n")),
        };
        let message = Message {
            topic: topic.as_bytes(),
            reply: reply.as_bytes(),
            headers: headers.as_bytes(),
            payload: payload.as_bytes(),
            ..Message::default()
        };
        match reader.handle(&message, AT) {
            Heard::Record(topic) => format!("record {}", topic.stream_sequence),
            Heard::Asks(reply) => format!("asks {}", String::from_utf8_lossy(reply)),
            Heard::Begun(begun) => format!("begun {} {:?}", begun.pending, begun.identity),
            Heard::Refused(error) => format!("refused {:?}", error.map(|error| error.err_code)),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_an_answer_means() {
        for (headers, payload, expected) in [
            ("", r#"{"num_pending":7}"#, "begun 7 None"),
            (
                "|Nats-Stream-Identity: SYOweM6y",
                "{}",
                r#"begun 0 Some("SYOweM6y")"#,
            ),
            ("|Nats-Stream-Identity: a b", "{}", "begun 0 None"),
            (
                "",
                r#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#,
                "refused Some(10059)",
            ),
            ("", "no JSON", "refused Some(10025)"),
            (" 503", "", "refused None"),
        ] {
            let (mut reader, _) = asked();
            let found = heard(&mut reader, "r", "", headers, payload);
            assert_eq!(found, expected, "{headers} {payload}");
            let is_error = expected.starts_with("refused Some");
            assert_eq!(reader.error().is_some(), is_error);
        }
    }

    #[test]
    fn what_a_delivery_means() {
        let (mut reader, _) = asked();
        let record = |stream: u64, consumer: u64| format!("$JS.ACK.O.C.1.{stream}.{consumer}.1.0");
        let beat = " 100 Idle Heartbeat|Nats-Last-Consumer: ";
        for (topic, reply, headers, expected) in [
            ("d", &record(4, 1)[..], "", "record 4"),
            ("d", &record(9, 2), " 409 Mine", "record 9"),
            ("d", &record(9, 2), "", "Alive"),
            ("d", &record(10, 2), "", "Broken"),
            ("d", &record(11, 4), "", "Broken"),
            ("elsewhere", &record(10, 3), "", "Nothing"),
            ("d", "", &format!("{beat}2"), "Alive"),
            ("d", "", &format!("{beat}3"), "Broken"),
            (
                "d",
                "",
                &format!("{beat}2|Nats-Consumer-Stalled: $JS.FC.x"),
                "asks $JS.FC.x",
            ),
            ("d", "$JS.FC.y", " 100 FlowControl Request", "asks $JS.FC.y"),
            ("d", "", " 409 Consumer Deleted", "Broken"),
            ("d", "", "", "Alive"),
            ("d", "x", " abc", "Alive"),
        ] {
            let found = heard(&mut reader, topic, reply, headers, "");
            assert_eq!(found, expected, "{topic} {reply} {headers}");
        }
    }

    #[test]
    fn it_rests_longer_each_time_until_something_comes() {
        let (mut reader, mut port) = asked();
        let mut rests = Vec::new();
        let mut now = AT;
        for _ in 0..8 {
            assert!(!reader.is_to_ask(now, &mut port));
            // Nobody answers.
            let until = reader.next_timeout().unwrap();
            assert_eq!(until, now + ANSWER_WAIT_MAX);
            assert!(!reader.is_to_ask(until, &mut port));
            let next = reader.next_timeout().unwrap();
            rests.push((next - until).as_millis());
            assert!(reader.is_to_ask(next, &mut port));
            now = next;
            ask(&mut reader, now, &mut port);
        }
        assert_eq!(
            rests,
            [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
        );
        reader.note_kept();
        reader.rest(now, &mut port);
        assert_eq!(reader.next_timeout(), Some(now + REST_MIN));
        reader.leave(&mut port);
        assert_eq!(reader.next_timeout(), None);
        assert_eq!(reader.inlets().count(), 0);
        assert!(!port.interest.contains(&b"d"[..]));
    }
}
