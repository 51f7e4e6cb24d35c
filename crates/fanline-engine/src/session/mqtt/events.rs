//! What deliveries to MQTT sessions leave to do. It is done once the fan-out is over.

use super::shared_subscriptions::NAK;
use super::state::QueuedMessage;
use super::{MqttSession, names, publish};
use crate::auth::AccountId;
use crate::codec::mqtt::Names;
use crate::exchange::message::Message as Framed;
use crate::exchange::session::SessionId;
use crate::jetstream::Message;
use crate::session::Broker;

/// Work that deliveries leave, and the topic names that they share.
#[derive(Default)]
pub(crate) struct DeliveryEvents {
    /// Acknowledgements of stored messages that no client is sent.
    acks: Vec<Ack>,
    /// Sessions with messages in their queue.
    woken: Vec<u32>,
    /// Messages that were delivered again although their PUBREL is stored, by session and packet identifier. They are
    /// acknowledged again.
    redelivered: Vec<(u32, u16)>,
    names: Names,
    /// The subject that was translated last, and its topic name; empty when it has none.
    subject: Vec<u8>,
    topic: String,
}

/// An acknowledgement of a stored message.
struct Ack {
    account: AccountId,
    subject: Box<[u8]>,
    word: &'static [u8],
}

impl DeliveryEvents {
    /// Returns the topic name of a subject.
    #[inline]
    pub(super) fn topic(&mut self, subject: &[u8]) -> Option<&str> {
        if self.subject != subject {
            self.subject.clear();
            self.topic.clear();
            if let Ok(topic) = self.names.topic(subject) {
                self.topic.push_str(topic);
            }
            self.subject.extend_from_slice(subject);
        }
        (!self.topic.is_empty()).then_some(&self.topic)
    }

    /// Acknowledges a message that no client is sent.
    pub(super) fn acknowledge(&mut self, account: AccountId, subject: &[u8]) {
        self.refuse(account, subject, b"");
    }

    /// Acknowledges a message that was in a session's queue, if a consumer delivered it.
    pub(super) fn discard(&mut self, account: AccountId, message: &QueuedMessage) {
        if !message.ack_subject.is_empty() {
            self.acknowledge(account, &message.ack_subject);
        }
    }

    /// Answers a message's consumer with another word than an acknowledgement.
    pub(super) fn refuse(&mut self, account: AccountId, subject: &[u8], word: &'static [u8]) {
        self.acks.push(Ack {
            account,
            subject: subject.into(),
            word,
        });
    }

    /// Has a message redelivered to another shard's member of a shared subscription, since the last one on this shard
    /// has just left. Messages of other queue groups are passed over.
    #[cold]
    pub(crate) fn note_missed(&mut self, account: AccountId, subject: &[u8], message: &Framed<'_>) {
        if subject.starts_with(names::MEMBER_PREFIX.as_bytes()) {
            let ack_subject = &message.args[..message.reply_bytes];
            self.refuse(account, ack_subject, NAK);
        }
    }

    /// Has a session's queue delivered.
    pub(super) fn wake(&mut self, session: u32) {
        if self.woken.last() != Some(&session) {
            self.woken.push(session);
        }
    }

    /// Has a message acknowledged again whose PUBREL is stored.
    #[cold]
    pub(super) fn note_redelivered(&mut self, session: u32, packet_id: u16) {
        self.redelivered.push((session, packet_id));
    }

    fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.woken.is_empty() && self.redelivered.is_empty()
    }
}

/// Does what deliveries to MQTT sessions have left.
#[inline]
pub(crate) fn handle_events(broker: &mut Broker) {
    while !broker.exchange.shared.mqtt.events.is_empty() {
        handle_some_events(broker);
    }
}

#[inline(never)]
fn handle_some_events(broker: &mut Broker) {
    for ack in std::mem::take(&mut broker.exchange.shared.mqtt.events.acks) {
        let message = Message {
            subject: &ack.subject,
            payload: ack.word,
            ..Message::default()
        };
        publish::publish_internal(broker, ack.account, &message);
    }
    for session in std::mem::take(&mut broker.exchange.shared.mqtt.events.woken) {
        if let Some(mut session) = MqttSession::of(broker, SessionId(session)) {
            session.deliver_queue();
        }
    }
    for (session, packet_id) in std::mem::take(&mut broker.exchange.shared.mqtt.events.redelivered)
    {
        if let Some(mut session) = MqttSession::of(broker, SessionId(session)) {
            session.confirm_release(packet_id);
        }
    }
}
