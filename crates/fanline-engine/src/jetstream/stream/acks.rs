//! Acknowledgements of publishes. They are formatted without serde, and sent when their record is durable.

use std::collections::VecDeque;

use crate::jetstream::{ApiError, Message, Port};

/// Acknowledgements that wait until their record is durable, in order of publishes.
///
/// Their bytes are in one ring buffer, which grows to the maximum of pending bytes and then allocates
/// nothing.
pub(super) struct Acks {
    /// Beginning of each acknowledgement: `{"stream":"S","seq":`.
    head: Vec<u8>,
    /// End of each error answer: `,"stream":"S","seq":0}`.
    error_tail: Vec<u8>,
    waiting: VecDeque<PendingAck>,
    /// Reply subject and additional fields of each pending acknowledgement.
    bytes: VecDeque<u8>,
    scratch: Vec<u8>,
    reply: Vec<u8>,
}

/// Answer to a publish.
pub(super) struct Ack<'a> {
    /// Reply subject; empty if no answer is requested.
    pub(super) reply: &'a [u8],
    /// Sequence up to which the log must be durable before the answer is sent.
    pub(super) until: u64,
    pub(super) content: AckContent<'a>,
}

/// Content of an answer.
#[derive(Clone, Copy)]
pub(super) enum AckContent<'a> {
    /// The message is stored under this sequence. `extra` contains additional JSON fields, beginning with a
    /// comma.
    Stored { sequence: u64, extra: &'a [u8] },
    /// This payload is sent as it is.
    Payload(&'a [u8]),
}

/// A pending answer, whose bytes are in the ring buffer.
struct PendingAck {
    until: u64,
    /// Sequence of the record; `None` if the extra bytes are the whole payload.
    sequence: Option<u64>,
    reply_bytes: usize,
    extra_bytes: usize,
}

impl Acks {
    pub(super) fn new(stream: &str, domain: Option<&str>) -> Self {
        let name = serde_json::Value::from(stream);
        let domain = domain.map_or_else(String::new, |domain| {
            format!(r#""domain":{},"#, serde_json::Value::from(domain))
        });
        Acks {
            head: format!(r#"{{"stream":{name},{domain}"seq":"#).into_bytes(),
            error_tail: format!(r#","stream":{name},{domain}"seq":0}}"#).into_bytes(),
            waiting: VecDeque::new(),
            bytes: VecDeque::new(),
            scratch: Vec::new(),
            reply: Vec::new(),
        }
    }

    /// Sends an answer: immediately if its record is durable and no earlier answer is pending, otherwise
    /// later.
    pub(super) fn send(&mut self, ack: &Ack<'_>, durable: u64, port: &mut dyn Port) {
        if ack.reply.is_empty() {
            return;
        }
        if ack.until <= durable && self.waiting.is_empty() {
            return publish(&self.head, &mut self.scratch, ack, port);
        }
        let (sequence, extra) = match ack.content {
            AckContent::Stored { sequence, extra } => (Some(sequence), extra),
            AckContent::Payload(body) => (None, body),
        };
        self.bytes.extend(ack.reply);
        self.bytes.extend(extra);
        self.waiting.push_back(PendingAck {
            until: ack.until,
            sequence,
            reply_bytes: ack.reply.len(),
            extra_bytes: extra.len(),
        });
    }

    /// Sends the answers whose records are durable now.
    pub(super) fn release(&mut self, durable: u64, port: &mut dyn Port) {
        while let Some(first) = self.waiting.front()
            && first.until <= durable
        {
            let PendingAck {
                until,
                sequence,
                reply_bytes,
                extra_bytes,
            } = *first;
            take(&mut self.bytes, reply_bytes + extra_bytes, &mut self.reply);
            self.waiting.pop_front();
            let (reply, extra) = self.reply.split_at(reply_bytes);
            let content = match sequence {
                Some(sequence) => AckContent::Stored { sequence, extra },
                None => AckContent::Payload(extra),
            };
            publish(
                &self.head,
                &mut self.scratch,
                &Ack {
                    reply,
                    until,
                    content,
                },
                port,
            );
        }
    }

    /// Answers all pending publishes with an error, because the disk has failed and its content is unknown.
    pub(super) fn fail(&mut self, error: &ApiError, port: &mut dyn Port) {
        while let Some(first) = self.waiting.pop_front() {
            let all = first.reply_bytes + first.extra_bytes;
            let mut reply = std::mem::take(&mut self.reply);
            take(&mut self.bytes, all, &mut reply);
            self.refuse(&reply[..first.reply_bytes], error, port);
            self.reply = reply;
        }
    }

    /// Immediately answers a publish with an error.
    pub(super) fn refuse(&mut self, reply: &[u8], error: &ApiError, port: &mut dyn Port) {
        if reply.is_empty() {
            return;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(br#"{"error":"#);
        write_error(error, &mut self.scratch);
        self.scratch.extend_from_slice(&self.error_tail);
        let message = Message {
            subject: reply,
            payload: &self.scratch,
            ..Message::default()
        };
        port.answer(&message, Err(error));
    }
}

/// Writes an error as JSON.
pub(super) fn write_error(error: &ApiError, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, error);
}

fn publish(head: &[u8], scratch: &mut Vec<u8>, ack: &Ack<'_>, port: &mut dyn Port) {
    let (payload, sequence) = match ack.content {
        AckContent::Payload(body) => (body, 0),
        AckContent::Stored { sequence, extra } => {
            scratch.clear();
            scratch.extend_from_slice(head);
            scratch.extend_from_slice(itoa::Buffer::new().format(sequence).as_bytes());
            scratch.extend_from_slice(extra);
            scratch.push(b'}');
            (&**scratch, sequence)
        }
    };
    let message = Message {
        subject: ack.reply,
        payload,
        ..Message::default()
    };
    port.answer(&message, Ok(sequence));
}

/// Moves the first bytes of the ring buffer into a buffer.
fn take(ring: &mut VecDeque<u8>, count: usize, out: &mut Vec<u8>) {
    out.clear();
    let (front, back) = ring.as_slices();
    let from_front = count.min(front.len());
    out.extend_from_slice(&front[..from_front]);
    out.extend_from_slice(&back[..count - from_front]);
    ring.drain(..count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::stream::testing::Recorder;

    fn stored<'a>(reply: &'a [u8], sequence: u64, extra: &'a [u8]) -> Ack<'a> {
        let content = AckContent::Stored { sequence, extra };
        Ack {
            reply,
            until: sequence,
            content,
        }
    }

    fn whole<'a>(reply: &'a [u8], until: u64, body: &'a [u8]) -> Ack<'a> {
        Ack {
            reply,
            until,
            content: AckContent::Payload(body),
        }
    }

    #[test]
    fn acknowledgements_wait_for_durability_in_order() {
        let (mut acks, mut port) = (Acks::new("S", None), Recorder::default());
        acks.send(&stored(b"r1", 1, b""), 0, &mut port);
        acks.send(&stored(b"r2", 2, br#","duplicate": true"#), 0, &mut port);
        acks.send(&whole(b"r3", 2, b"hello"), 0, &mut port);
        acks.send(&stored(b"r4", 3, b""), 0, &mut port);
        acks.send(&stored(b"", 3, b""), 0, &mut port);
        assert_eq!(port.take_published(), Vec::<String>::new());
        acks.release(2, &mut port);
        assert_eq!(
            port.take_published(),
            [
                r#"r1 {"stream":"S","seq":1}"#,
                r#"r2 {"stream":"S","seq":2,"duplicate": true}"#,
                "r3 hello"
            ]
        );
        acks.fail(&ApiError::INSUFFICIENT_RESOURCES, &mut port);
        let error = r#"{"code":503,"err_code":10023,"description":"insufficient resources"}"#;
        assert_eq!(
            port.take_published(),
            [format!(r#"r4 {{"error":{error},"stream":"S","seq":0}}"#)]
        );
        acks.send(&stored(b"r5", 3, b""), 3, &mut port);
        assert_eq!(port.take_published(), [r#"r5 {"stream":"S","seq":3}"#]);
    }

    #[test]
    fn acknowledgement_contains_domain() {
        let (mut acks, mut port) = (Acks::new("S", Some("hub")), Recorder::default());
        acks.send(&stored(b"r", 1, b""), 1, &mut port);
        assert_eq!(
            port.take_published(),
            [r#"r {"stream":"S","domain":"hub","seq":1}"#]
        );
    }

    #[test]
    fn ring_buffer_wraps() {
        let (mut acks, mut port) = (Acks::new("S", None), Recorder::default());
        for sequence in 1..2_000_u64 {
            let reply = format!("reply.{sequence}");
            let body = sequence.to_string();
            acks.send(
                &whole(reply.as_bytes(), sequence, body.as_bytes()),
                0,
                &mut port,
            );
            acks.release(sequence.saturating_sub(7), &mut port);
            if sequence > 7 {
                let expected = format!("reply.{} {}", sequence - 7, sequence - 7);
                assert_eq!(port.take_published(), [expected]);
            }
        }
        assert!(acks.bytes.capacity() < 1_024);
    }
}
