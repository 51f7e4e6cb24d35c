//! Responses of JetStream, and deliveries of consumers.

use serde_json::Value;

use super::requests::{Pending, Request, Unacknowledged};
use super::{Invariant, Outcome, World, violation};
use crate::client::Received;
use crate::model::ConsumerKind;

/// `wrong last sequence`, which a condition may cause.
const WRONG_LAST_SEQUENCE: u64 = 10071;

/// Returns the sequence and the message of a record that was read directly; `None` if the response is a status.
fn newest(message: &Received) -> Option<(u64, u64)> {
    let sequence = message.header("Nats-Sequence")?.parse().ok()?;
    Some((sequence, message_id(&message.payload)?))
}

/// Returns the number of a message, with which its payload begins.
fn message_id(payload: &[u8]) -> Option<u64> {
    let text = str::from_utf8(payload).ok()?;
    text.split(' ').next()?.parse().ok()
}

impl World {
    /// Handles a message to a client's inbox.
    pub(super) fn take_answer(&mut self, at: usize, message: &Received) -> Outcome {
        if message.reply.starts_with("$JS.ACK.") {
            return self.take_delivery(at, message);
        }
        let key = self.clients[at].key;
        self.note(|| {
            let text = String::from_utf8_lossy(&message.payload);
            format!(
                "{key:?} has the answer {} {:?} {text}",
                message.subject,
                message.status()
            )
        });
        let Some(pending) = self.requests.remove(&message.subject) else {
            let text = format!("{key:?} received a second answer to {}", message.subject);
            return violation(Invariant::Visibility, text);
        };
        if pending.request == Request::Pull {
            // Further messages and a status may follow.
            self.requests.insert(message.subject.clone(), pending);
            return Ok(());
        }
        if let Request::Read { subject, floor } = &pending.request {
            self.covered.reads += 1;
            return self.streams[pending.stream].read(subject, *floor, newest(message));
        }
        let answer: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
        let error = answer["error"]["err_code"].as_u64();
        let is_unavailable = message.status() == Some("503");
        self.apply_answer(&pending, &answer, error, is_unavailable)
    }

    fn apply_answer(
        &mut self,
        pending: &Pending,
        answer: &Value,
        error: Option<u64>,
        is_unavailable: bool,
    ) -> Outcome {
        let step = self.step;
        let stream = &mut self.streams[pending.stream];
        let is_success = error.is_none() && !is_unavailable;
        match &pending.request {
            Request::Create if is_success => stream.created(),
            Request::CreateConsumer(kind) if is_success => stream.consumer_created(*kind, step),
            Request::Create => {
                return violation(Invariant::Correctness, format!("{}: {answer}", stream.name));
            }
            Request::Publish {
                message,
                is_expected,
                is_conditional,
            } => {
                if let Some(sequence) = answer["seq"].as_u64().filter(|_| is_success) {
                    self.covered.records += 1;
                    let is_duplicate = answer["duplicate"] == true;
                    return stream.acknowledge(*message, sequence, is_duplicate);
                }
                let may_fail =
                    !is_expected || *is_conditional && error == Some(WRONG_LAST_SEQUENCE);
                if !may_fail {
                    let text = format!("{}: message {message} was refused: {answer}", stream.name);
                    return violation(Invariant::Visibility, text);
                }
            }
            Request::Delete(sequence) if is_success => stream.deleted(*sequence),
            Request::Purge(purge) if is_success => stream.purged(*purge, step),
            Request::Ack(kind, sequence) if !is_unavailable => stream.confirm_ack(*kind, *sequence),
            // The stream, the message, or the consumer may not exist.
            Request::CreateConsumer(_)
            | Request::Delete(_)
            | Request::Purge(_)
            | Request::Pull
            | Request::Read { .. }
            | Request::Ack(..) => {}
        }
        Ok(())
    }

    /// Handles a delivery of a consumer: its reply subject is
    /// `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>`.
    fn take_delivery(&mut self, at: usize, message: &Received) -> Outcome {
        let key = self.clients[at].key;
        let tokens: Vec<&str> = message.reply.split('.').collect();
        let sequence = tokens.get(5).and_then(|token| token.parse::<u64>().ok());
        let account = self.clients[at].account;
        let of = |name: &str| {
            let mut streams = self.streams.iter();
            streams.position(|stream| stream.name == name && stream.account == account)
        };
        let stream = tokens.get(2).and_then(|name| of(name));
        let consumer = match tokens.get(3) {
            Some(&"P") => ConsumerKind::Push,
            _ => ConsumerKind::Pull,
        };
        let id = message_id(&message.payload);
        let (Some(sequence), Some(stream), Some(id)) = (sequence, stream, id) else {
            let text = format!("{key:?} received {message:?}");
            return violation(Invariant::Correctness, text);
        };
        self.note(|| format!("{key:?} has the delivery {} of message {id}", message.reply));
        self.covered.deliveries += 1;
        self.clients[at].unacknowledged.push(Unacknowledged {
            stream,
            consumer,
            sequence,
            reply: message.reply.clone(),
        });
        self.streams[stream].deliver(consumer, sequence, &message.subject, id)
    }
}
