//! Publishes: checks, stores, and acknowledges messages.

use super::Stream;
use super::acks::{Ack, AckContent};
use super::append::refused;
use super::batch::FastReply;
use super::check::Edits;
use super::headers::{NO_HEADERS, PublishHeaders};
use crate::headers::Block;
use crate::jetstream::{ApiError, Message, Now, Port, Retention};
use crate::store::NewRecord;

/// Result of an accepted publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// Sequence of the record, or that of the original if the message is a duplicate.
    pub(super) sequence: u64,
    pub(super) is_duplicate: bool,
    /// Whether the record is a counter. If so, the acknowledgement contains its value.
    pub(super) is_counter: bool,
    /// Whether a record was stored. A stream with interest retention stores only records that a consumer or
    /// copy needs.
    pub(super) is_stored: bool,
}

impl Stream {
    /// Handles a message to one of the stream's subjects. The acknowledgement is sent when the record is
    /// durable: in this call, or in [`release_acks`](Stream::release_acks).
    pub fn publish(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        self.clock = now;
        let parsed;
        let asked = if message.headers.is_empty() {
            &NO_HEADERS
        } else {
            parsed = PublishHeaders::parse(message.headers);
            &parsed
        };
        if asked.request_info.is_some() {
            return self.publish_without_info(message, now, port);
        }
        if let Some(reply) = FastReply::parse(message.reply) {
            self.publish_fast(message, asked, reply, port);
        } else if asked.batch_id.is_some() {
            self.publish_atomic(message, asked, port);
        } else {
            let mut edits = std::mem::take(&mut self.edits);
            match self.accept(message, asked, &mut edits, port) {
                Ok(accepted) => self.acknowledge(self.reply_of(message), &accepted, &edits, port),
                Err(error) => self.refuse(message, &error, port),
            }
            self.edits = edits;
        }
    }

    /// Handles the messages of a run like [`publish`](Self::publish), up to the first one that needs more than
    /// its record and an acknowledgement. Returns that message.
    pub fn publish_run<'a>(
        &mut self,
        first: Message<'a>,
        run: &mut dyn Iterator<Item = Message<'a>>,
        now: Now,
        port: &mut dyn Port,
    ) -> Option<Message<'a>> {
        self.clock = now;
        let is_plain = self.stores_unchanged();
        let mut message = first;
        while is_plain && message.headers.is_empty() && !FastReply::may_be(message.reply) {
            self.publish_plain(&message, port);
            message = run.next()?;
        }
        Some(message)
    }

    /// Returns whether a message without headers becomes a record as it is, without any other effect.
    fn stores_unchanged(&self) -> bool {
        let config = &self.config;
        let is_changed = config.sealed || config.allow_msg_counter || config.allow_msg_schedules;
        let has_effects = self.republish.is_some() || config.retention == Retention::Interest;
        !is_changed && !has_effects && self.transform.is_none()
    }

    /// Stores a message without headers, and acknowledges it.
    fn publish_plain(&mut self, message: &Message<'_>, port: &mut dyn Port) {
        let record = NewRecord {
            subject: message.subject,
            payload: message.payload,
            unix_nanos: self.clock.unix_nanos,
            ..NewRecord::default()
        };
        let is_fit = self.check_size(message);
        let sequence = match is_fit.and_then(|()| self.store.append(&record).map_err(refused)) {
            Ok(sequence) => sequence,
            Err(error) => return self.refuse(message, &error, port),
        };
        self.consumers.handle_append(sequence, message.subject);
        if self.store.has_unreported() {
            self.settle_removed(port);
        }
        let content = AckContent::Stored {
            sequence,
            extra: b"",
        };
        let ack = Ack {
            reply: self.reply_of(message),
            until: sequence,
            content,
        };
        self.send_ack(ack, port);
    }

    /// Handles a message from another account, after removing the header with information on its publisher.
    fn publish_without_info(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        let mut headers = Vec::new();
        let is_stored = |name: &[u8]| name != b"Nats-Request-Info";
        let headers = Block::filtered(&mut headers, message.headers, is_stored).end_or_empty();
        self.publish(
            &Message {
                headers,
                ..*message
            },
            now,
            port,
        );
    }

    /// Checks and stores one message.
    pub(super) fn accept(
        &mut self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        edits: &mut Edits,
        port: &mut dyn Port,
    ) -> Result<Accepted, ApiError> {
        let checked = self.check(message, asked, edits, None)?;
        if let Some(sequence) = checked.duplicate_of {
            return Ok(Accepted {
                sequence,
                is_duplicate: true,
                is_counter: false,
                is_stored: true,
            });
        }
        let (sequence, is_stored) = self.append(&checked.admitted(message, asked, edits), port)?;
        Ok(Accepted {
            sequence,
            is_duplicate: false,
            is_counter: checked.is_counter,
            is_stored,
        })
    }

    fn acknowledge(
        &mut self,
        reply: &[u8],
        accepted: &Accepted,
        edits: &Edits,
        port: &mut dyn Port,
    ) {
        let mut with_value = Vec::new();
        let extra = if accepted.is_duplicate {
            &br#","duplicate": true"#[..]
        } else if accepted.is_counter {
            with_value.push(b',');
            with_value.extend_from_slice(value_member(&edits.payload));
            &with_value[..]
        } else {
            b""
        };
        let ack = Ack {
            reply,
            until: if accepted.is_stored {
                accepted.sequence
            } else {
                0
            },
            content: AckContent::Stored {
                sequence: accepted.sequence,
                extra,
            },
        };
        self.send_ack(ack, port);
    }

    /// Answers a publish with an error.
    pub fn refuse(&mut self, message: &Message<'_>, error: &ApiError, port: &mut dyn Port) {
        let reply = self.reply_of(message);
        self.acks.refuse(reply, error, port);
    }

    /// Returns the reply subject for the acknowledgement; empty if the stream sends none.
    pub(super) fn reply_of<'a>(&self, message: &Message<'a>) -> &'a [u8] {
        if self.config.no_ack {
            b""
        } else {
            message.reply
        }
    }
}

/// Returns `"val":"5"` of `{"val":"5"}`.
fn value_member(payload: &[u8]) -> &[u8] {
    payload
        .get(1..payload.len().saturating_sub(1))
        .unwrap_or_default()
}
