//! Reads a remote origin through a consumer that is created there and pushes its records to this stream.
//!
//! Every failure, such as a gap, silence, or a refusal, has the same effect: the consumer is deleted, and
//! after a delay another one is requested, which begins after the last stored record.

use std::collections::VecDeque;
use std::time::Duration;

use super::request::{OriginRequest, Started, read_answer, status};
use crate::headers::{Block, find};
use crate::jetstream::consumer::AckSubject;
use crate::jetstream::{ApiError, External, Message, Port, StreamSource};
use crate::random::Random;

/// API prefix of a remote origin whose configuration has none.
const OWN_API: &str = "$JS.API";

/// Maximum time to wait for the answer to a request.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum time without a message. The consumer sends a heartbeat every second.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// Delay after the first failure. Each further failure doubles it, until a record is stored.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(250);
/// Maximum delay, so that copying resumes soon after a long loss of connection.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(10);
/// Delay before the next check whether the origin's API has a responder.
const RESPONDER_CHECK_DELAY: Duration = Duration::from_secs(1);

/// Lowest status code that means the end of the consumer.
const STATUS_OVER: u16 = 400;

/// State of reading a remote origin.
pub(super) struct Reader {
    /// Name of the origin.
    origin: String,
    /// API prefix of the origin.
    api: String,
    /// Prefix of deliver subjects; empty to use generated ones.
    deliver: String,
    state: State,
    /// Number of failures since the last record.
    failures: u32,
    error: Option<ApiError>,
    /// Whether the inboxes have changed since the last call of [`take_changed`](Self::take_changed).
    has_changed: bool,
}

enum State {
    /// Waits until a time before the next request.
    BackingOff { until: Duration },
    /// A request was sent, or records are being delivered.
    Reading(Box<Reading>),
}

struct Reading {
    names: Names,
    /// Number of the last delivery. The next field is the sequence of its record at the origin.
    delivered: u64,
    sequence: u64,
    is_answered: bool,
    /// Time of the last message.
    last_message: Duration,
    /// Time at which to check for silence.
    check_at: Duration,
    /// Answers to flow control requests, which wait until the records delivered before are durable here.
    flow_answers: VecDeque<FlowAnswer>,
}

struct FlowAnswer {
    /// Sequence up to which this stream's log must be durable.
    until: u64,
    reply: Vec<u8>,
    delivered: u64,
    last_copied: u64,
}

/// Names of a consumer at the origin, and of its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) consumer: String,
    /// Deliver subject of the consumer.
    pub(super) deliver: String,
    /// Reply subject of the request for the consumer.
    reply: String,
    /// Whether an administrator created the consumer in advance. Such a consumer is never deleted, and flow
    /// control tells it which records are durable here.
    is_preconfigured: bool,
}

/// Meaning of a message from the origin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OriginEvent<'a> {
    /// The message is from an earlier consumer, and is ignored.
    Nothing,
    /// The message shows that the origin is alive.
    Alive,
    /// The request succeeded, and records will follow.
    Started(Started),
    /// A record.
    Record(AckSubject<'a>),
    /// A flow control request.
    FlowControl(&'a [u8]),
    /// A message was lost, or the consumer no longer exists.
    Broken,
    /// The origin has refused the request with an error, or there is no responder (`None`).
    Refused(Option<ApiError>),
}

impl Reader {
    /// Creates a reader whose first request is due immediately.
    pub(super) fn new(origin: &str, external: &External) -> Self {
        let api = match external.api.as_str() {
            "" => OWN_API,
            api => api,
        };
        Reader {
            origin: origin.to_owned(),
            api: api.to_owned(),
            deliver: external.deliver.clone(),
            state: State::BackingOff {
                until: Duration::ZERO,
            },
            failures: 0,
            error: None,
            has_changed: false,
        }
    }

    /// Returns the prefix of the origin's API.
    pub(super) fn api(&self) -> &str {
        &self.api
    }

    /// Returns the error of the last attempt, if any.
    pub(super) fn error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }

    /// Returns the subjects on which the reader receives messages.
    pub(super) fn inboxes(&self) -> impl Iterator<Item = &[u8]> {
        let names = match &self.state {
            State::Reading(reading) => Some(&reading.names),
            State::BackingOff { .. } => None,
        };
        names
            .into_iter()
            .flat_map(|names| [names.reply.as_bytes(), names.deliver.as_bytes()])
    }

    /// Returns whether the inboxes have changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Returns the time at which to call [`is_request_due`](Self::is_request_due) next.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        match &self.state {
            State::BackingOff { until } => Some(*until).filter(|until| *until < Duration::MAX),
            State::Reading(reading) => Some(reading.check_at),
        }
    }

    /// Returns whether to send a request now. If the origin was silent for too long, deletes the consumer and
    /// backs off.
    pub(super) fn is_request_due(&mut self, now: Duration, port: &mut dyn Port) -> bool {
        if let State::Reading(reading) = &mut self.state
            && reading.check_at <= now
        {
            reading.check_at = reading.silent_until();
            if reading.check_at <= now {
                self.back_off(now, port);
            }
        }
        matches!(&self.state, State::BackingOff { until } if *until <= now)
    }

    /// Returns the names for a consumer at a stream's origin. Generated names cannot be guessed.
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
                is_preconfigured: true,
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
            is_preconfigured: false,
        }
    }

    /// Sends the request if it has a responder. Otherwise waits before the next check.
    pub(super) fn send_request(
        &mut self,
        origin_request: &OriginRequest,
        names: Names,
        now: Duration,
        port: &mut dyn Port,
    ) {
        let subject = origin_request.subject.as_bytes();
        if !port.has_interest(subject) {
            let until = now.saturating_add(RESPONDER_CHECK_DELAY);
            self.state = State::BackingOff { until };
            return;
        }
        port.subscribe(names.reply.as_bytes());
        port.subscribe(names.deliver.as_bytes());
        port.publish(&Message {
            subject,
            reply: names.reply.as_bytes(),
            payload: &origin_request.body,
            ..Message::default()
        });
        self.has_changed = true;
        self.state = State::Reading(Box::new(Reading {
            names,
            delivered: 0,
            sequence: 0,
            is_answered: false,
            last_message: now,
            check_at: now.saturating_add(ANSWER_WAIT_MAX),
            flow_answers: VecDeque::new(),
        }));
    }

    /// Returns the meaning of a message to one of the inboxes. After `Broken` and `Refused`, the caller must
    /// call [`back_off`](Self::back_off).
    pub(super) fn handle<'a>(&mut self, message: &Message<'a>, now: Duration) -> OriginEvent<'a> {
        let State::Reading(reading) = &mut self.state else {
            return OriginEvent::Nothing;
        };
        if message.subject == reading.names.reply.as_bytes() {
            let event = reading.handle_answer(message, now);
            self.error = match &event {
                OriginEvent::Refused(error) => error.clone(),
                _ => None,
            };
            return event;
        }
        if message.subject != reading.names.deliver.as_bytes() {
            return OriginEvent::Nothing;
        }
        reading.last_message = now;
        reading.handle_delivery(message)
    }

    /// Registers a stored record, which ends a series of failures.
    pub(super) fn note_stored(&mut self) {
        self.failures = 0;
        self.error = None;
    }

    /// Registers that a record could not be stored.
    pub(super) fn note_failed(&mut self, error: ApiError) {
        self.error = Some(error);
    }

    /// Answers a flow control request. A preconfigured consumer gets the answer only when all delivered
    /// records are durable here, because the answer permits the origin to remove them. `until` is the
    /// sequence of the last of these records in this stream.
    pub(super) fn answer(
        &mut self,
        reply: &[u8],
        last_copied: u64,
        until: u64,
        port: &mut dyn Port,
    ) {
        let State::Reading(reading) = &mut self.state else {
            return;
        };
        if reading.names.is_preconfigured {
            reading.flow_answers.push_back(FlowAnswer {
                until,
                reply: reply.to_vec(),
                delivered: reading.delivered,
                last_copied,
            });
            return;
        }
        port.publish(&Message {
            subject: reply,
            ..Message::default()
        });
    }

    /// Sends the answers to flow control requests whose records are durable now.
    pub(super) fn send_flow_answers(&mut self, durable: u64, port: &mut dyn Port) {
        let State::Reading(reading) = &mut self.state else {
            return;
        };
        while let Some(answer) = reading
            .flow_answers
            .pop_front_if(|answer| answer.until <= durable)
        {
            let mut headers = Vec::new();
            let headers = Block::new(&mut headers)
                .add_number("Nats-Last-Consumer", answer.delivered)
                .add_number("Nats-Last-Stream", answer.last_copied)
                .end();
            port.publish(&Message {
                subject: &answer.reply,
                headers,
                ..Message::default()
            });
        }
    }

    /// Deletes the consumer and backs off. The delay grows with the number of failures since the last stored
    /// record.
    pub(super) fn back_off(&mut self, now: Duration, port: &mut dyn Port) {
        self.delete_consumer(port);
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let delay = RETRY_DELAY_MIN.saturating_mul(factor).min(RETRY_DELAY_MAX);
        self.failures = self.failures.saturating_add(1);
        self.state = State::BackingOff {
            until: now.saturating_add(delay),
        };
    }

    /// Ends the subscriptions. No request is due afterward. Returns the names of the consumer, if there is one.
    pub(super) fn stop(&mut self, port: &mut dyn Port) -> Option<Names> {
        let gone = State::BackingOff {
            until: Duration::MAX,
        };
        let State::Reading(reading) = std::mem::replace(&mut self.state, gone) else {
            return None;
        };
        self.has_changed = true;
        let names = reading.names;
        port.unsubscribe(names.reply.as_bytes());
        port.unsubscribe(names.deliver.as_bytes());
        Some(names)
    }

    /// Deletes the consumer, unless it was created in advance. No request is due afterward.
    pub(super) fn delete_consumer(&mut self, port: &mut dyn Port) {
        let Some(names) = self.stop(port) else {
            return;
        };
        let Reader { api, origin, .. } = self;
        let subject = format!("{api}.CONSUMER.DELETE.{origin}.{}", names.consumer);
        if !names.is_preconfigured && port.has_interest(subject.as_bytes()) {
            port.publish(&Message {
                subject: subject.as_bytes(),
                ..Message::default()
            });
        }
    }
}

impl Reading {
    /// Returns the time at which the reader abandons the consumer if no message arrives.
    fn silent_until(&self) -> Duration {
        let wait_max = match self.is_answered {
            true => SILENCE_MAX,
            false => ANSWER_WAIT_MAX,
        };
        self.last_message.saturating_add(wait_max)
    }

    fn handle_answer<'a>(&mut self, message: &Message<'a>, now: Duration) -> OriginEvent<'a> {
        match read_answer(message) {
            Ok(started) => {
                self.last_message = now;
                self.is_answered = true;
                if self.names.is_preconfigured {
                    self.delivered = self.delivered.max(started.confirmed);
                }
                OriginEvent::Started(started)
            }
            Err(error) => OriginEvent::Refused(error),
        }
    }

    fn handle_delivery<'a>(&mut self, message: &Message<'a>) -> OriginEvent<'a> {
        // A preconfigured consumer may still deliver for an earlier request. Its deliveries are ignored until
        // the answer arrives, or until a delivery has the number that directly follows that of the last
        // delivery.
        let counts_anew = self.is_answered || !self.names.is_preconfigured;
        self.is_answered = counts_anew;
        // Records are recognized first, because their publishers' headers may look like a status.
        let Some(subject) = AckSubject::parse(message.reply) else {
            return match status(message) {
                Some(STATUS_OVER..) => OriginEvent::Broken,
                Some(_) if counts_anew => self.handle_status(message),
                _ => OriginEvent::Alive,
            };
        };
        if !counts_anew && subject.consumer_sequence != self.delivered.saturating_add(1) {
            return OriginEvent::Alive;
        }
        if subject.consumer_sequence <= self.delivered {
            // The message is a duplicate if the record was received before. Otherwise the consumer has
            // restarted its count.
            return match subject.stream_sequence <= self.sequence {
                true => OriginEvent::Alive,
                false => OriginEvent::Broken,
            };
        }
        if subject.consumer_sequence - self.delivered > 1 {
            return OriginEvent::Broken;
        }
        self.delivered = subject.consumer_sequence;
        self.sequence = subject.stream_sequence;
        OriginEvent::Record(subject)
    }

    fn handle_status<'a>(&self, message: &Message<'a>) -> OriginEvent<'a> {
        let number = |name: &[u8]| {
            let text = std::str::from_utf8(find(message.headers, name)?).ok()?;
            text.trim_end().parse::<u64>().ok()
        };
        if number(b"Nats-Last-Consumer").is_some_and(|last| last > self.delivered) {
            return OriginEvent::Broken;
        }
        if !message.reply.is_empty() {
            return OriginEvent::FlowControl(message.reply);
        }
        match find(message.headers, b"Nats-Consumer-Stalled") {
            Some(stalled) => OriginEvent::FlowControl(stalled.trim_ascii_end()),
            None => OriginEvent::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::stream::testing::Recorder;

    const AT: Duration = Duration::from_secs(100);

    fn requested() -> (Reader, Recorder) {
        let external = External {
            api: "$JS.hub.API".to_owned(),
            deliver: "to.me".to_owned(),
        };
        let mut reader = Reader::new("O", &external);
        let mut port = Recorder::default();
        send_request(&mut reader, AT, &mut port);
        assert_eq!(reader.next_timeout(), Some(AT + RESPONDER_CHECK_DELAY));
        port.interest.insert(b"$JS.hub.API.>".to_vec());
        send_request(&mut reader, AT, &mut port);
        (reader, port)
    }

    fn send_request(reader: &mut Reader, now: Duration, port: &mut Recorder) {
        let names = Names {
            consumer: "C".to_owned(),
            deliver: "d".to_owned(),
            reply: "r".to_owned(),
            is_preconfigured: false,
        };
        let origin_request = OriginRequest {
            subject: "$JS.hub.API.CONSUMER.CREATE.O.C".to_owned(),
            body: b"{}".to_vec(),
        };
        reader.send_request(&origin_request, names, now, port);
    }

    fn event(
        reader: &mut Reader,
        subject: &str,
        reply: &str,
        headers: &str,
        payload: &str,
    ) -> String {
        let headers = match headers {
            "" => String::new(),
            lines => format!("NATS/1.0{}\r\n\r\n", lines.replace('|', "\r\n")),
        };
        let message = Message {
            subject: subject.as_bytes(),
            reply: reply.as_bytes(),
            headers: headers.as_bytes(),
            payload: payload.as_bytes(),
            ..Message::default()
        };
        match reader.handle(&message, AT) {
            OriginEvent::Record(subject) => format!("record {}", subject.stream_sequence),
            OriginEvent::FlowControl(reply) => format!("asks {}", String::from_utf8_lossy(reply)),
            OriginEvent::Started(started) => {
                format!("begun {} {:?}", started.pending, started.identity)
            }
            OriginEvent::Refused(error) => {
                format!("refused {:?}", error.map(|error| error.err_code))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn answers_are_classified() {
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
            let (mut reader, _) = requested();
            let found = event(&mut reader, "r", "", headers, payload);
            assert_eq!(found, expected, "{headers} {payload}");
            let is_error = expected.starts_with("refused Some");
            assert_eq!(reader.error().is_some(), is_error);
        }
    }

    #[test]
    fn deliveries_are_classified() {
        let (mut reader, _) = requested();
        let record = |stream: u64, consumer: u64| format!("$JS.ACK.O.C.1.{stream}.{consumer}.1.0");
        let beat = " 100 Idle Heartbeat|Nats-Last-Consumer: ";
        for (subject, reply, headers, expected) in [
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
            let found = event(&mut reader, subject, reply, headers, "");
            assert_eq!(found, expected, "{subject} {reply} {headers}");
        }
    }

    #[test]
    fn retry_delay_doubles_until_a_record_is_stored() {
        let (mut reader, mut port) = requested();
        let mut rests = Vec::new();
        let mut now = AT;
        for _ in 0..8 {
            assert!(!reader.is_request_due(now, &mut port));
            // The request gets no answer.
            let until = reader.next_timeout().unwrap();
            assert_eq!(until, now + ANSWER_WAIT_MAX);
            assert!(!reader.is_request_due(until, &mut port));
            let next = reader.next_timeout().unwrap();
            rests.push((next - until).as_millis());
            assert!(reader.is_request_due(next, &mut port));
            now = next;
            send_request(&mut reader, now, &mut port);
        }
        assert_eq!(
            rests,
            [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
        );
        reader.note_stored();
        reader.back_off(now, &mut port);
        assert_eq!(reader.next_timeout(), Some(now + RETRY_DELAY_MIN));
        reader.delete_consumer(&mut port);
        assert_eq!(reader.next_timeout(), None);
        assert_eq!(reader.inboxes().count(), 0);
        assert!(!port.interest.contains(&b"d"[..]));
    }
}
