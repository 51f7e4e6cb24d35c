//! Work that deliveries to MQTT sessions postpone until the fan-out is complete.

use super::shared_subscriptions::NAK;
use super::state::QueuedMessage;
use super::{MqttSession, names, publish};
use crate::auth::AccountId;
use crate::codec::mqtt::Names;
use crate::exchange::message::Message as Framed;
use crate::exchange::session::SessionId;
use crate::jetstream::Message;
use crate::session::Broker;

/// Postponed work, and buffers for topic names that deliveries share.
#[derive(Default)]
pub(crate) struct DeliveryEvents {
    /// Acknowledgements of stored messages that no client receives.
    acks: Vec<Ack>,
    /// Sessions with messages in their queue.
    woken: Vec<u32>,
    /// Redelivered messages whose PUBREL is stored, by session and packet identifier. They are acknowledged
    /// again.
    redelivered: Vec<(u32, u16)>,
    names: Names,
    /// The last translated subject and its topic name. The name is empty if the subject has none.
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

    /// Acknowledges a message that no client receives.
    pub(super) fn acknowledge(&mut self, account: AccountId, subject: &[u8]) {
        self.refuse(account, subject, b"");
    }

    /// Acknowledges a message that was removed from a session's queue, if a consumer delivered it.
    pub(super) fn discard(&mut self, account: AccountId, message: &QueuedMessage) {
        if !message.ack_subject.is_empty() {
            self.acknowledge(account, &message.ack_subject);
        }
    }

    /// Answers a message's consumer with `word`, for example a negative acknowledgement.
    pub(super) fn refuse(&mut self, account: AccountId, subject: &[u8], word: &'static [u8]) {
        self.acks.push(Ack {
            account,
            subject: subject.into(),
            word,
        });
    }

    /// Requests that a shared subscription's message is redelivered to a member on another shard, because the
    /// last member on this shard has just left. Messages of other queue groups are ignored.
    #[cold]
    pub(crate) fn redeliver_missed(
        &mut self,
        account: AccountId,
        subject: &[u8],
        message: &Framed<'_>,
    ) {
        if subject.starts_with(names::MEMBER_PREFIX.as_bytes()) {
            let ack_subject = &message.args[..message.reply_bytes];
            self.refuse(account, ack_subject, NAK);
        }
    }

    /// Schedules the delivery of a session's queue.
    pub(super) fn wake(&mut self, session: u32) {
        if self.woken.last() != Some(&session) {
            self.woken.push(session);
        }
    }

    /// Schedules another acknowledgement of a message whose PUBREL is stored.
    #[cold]
    pub(super) fn record_redelivered(&mut self, session: u32, packet_id: u16) {
        self.redelivered.push((session, packet_id));
    }

    fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.woken.is_empty() && self.redelivered.is_empty()
    }
}

/// Performs the work that deliveries to MQTT sessions have postponed.
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
