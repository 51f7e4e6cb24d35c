//! The queue of a client's messages above QoS 0, and of retained messages.

use super::state::{ClaimedMessage, Mqtt, QueuedMessage};
use super::{MqttSession, parts};
use crate::codec::mqtt::{Qos, Refused};
use crate::outbox::Outbox;
use crate::session::Session;

/// A message at the head of the queue that cannot be sent directly.
enum Next {
    /// The message must be claimed, and the claim must be stored before the message is sent.
    Claim(u16, QueuedMessage),
    /// The message is claimed, but too large for its client.
    Unclaim(u16),
}

impl Mqtt {
    /// Sends a message above QoS 0, or a retained one.
    pub(super) fn send(
        &mut self,
        message: &QueuedMessage,
        out: &mut Outbox,
    ) -> Result<(), Refused> {
        if self.is_releasing(message.packet_id) {
            return Err(Refused::NoRoom);
        }
        let packet_id = self.connection.deliver(&message.delivery(), out)?;
        out.append(&message.payload);
        if message.is_claimed {
            let ack_subject = message.ack_subject.clone();
            let claimed = ClaimedMessage {
                packet_id,
                ack_subject,
            };
            self.claimed.insert(message.token, claimed);
        } else if packet_id != 0 {
            if !message.ack_subject.is_empty() {
                self.ack_subjects
                    .insert(message.token, message.ack_subject.clone());
            }
            if message.may_be_unlogged() && self.is_persistent() {
                let copy = QueuedMessage {
                    packet_id: Some(packet_id),
                    ..message.clone()
                };
                self.unlogged.insert(message.token, copy);
            }
        }
        Ok(())
    }

    /// Sends a message whose packet identifier is reserved. Returns false if its client does not accept the
    /// packet.
    pub(super) fn send_reserved(
        &mut self,
        packet_id: u16,
        message: &QueuedMessage,
        out: &mut Outbox,
    ) -> bool {
        let is_sent = self
            .connection
            .deliver_reserved(packet_id, &message.delivery(), out);
        if is_sent {
            out.append(&message.payload);
        }
        is_sent
    }

    /// Returns whether the PUBREL of an earlier message with this identifier is stored. After a power cut,
    /// the stored PUBREL would be taken for the PUBREL of the next message.
    fn is_releasing(&self, packet_id: Option<u16>) -> bool {
        packet_id.is_some_and(|packet_id| self.releases.contains_key(&packet_id))
    }
}

/// Counts a message that was written for a client outside of a fan-out.
pub(super) fn count_sent(session: &mut Session, message: &QueuedMessage) {
    session.out_msgs += 1;
    session.out_bytes += message.payload.len() as u64;
}

impl MqttSession<'_> {
    /// Sends queued messages as long as the client's receive window has room.
    pub(super) fn deliver_queue(&mut self) {
        let now = i64::try_from(self.broker.exchange.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let before = self.begin_write();
        while let Some(next) = self.deliver_next(now) {
            match next {
                Next::Claim(packet_id, message) => self.claim(packet_id, message),
                Next::Unclaim(packet_id) => self.remove_claim(packet_id, None),
            }
        }
        self.count_written(before);
        // If nothing was written, no later event would request more retained messages.
        self.request_retained();
    }

    /// Sends messages until one cannot be sent directly.
    fn deliver_next(&mut self, now: i64) -> Option<Next> {
        let exchange = &mut self.broker.exchange;
        let session = &mut exchange.sessions[self.id.index()];
        let events = &mut exchange.shared.mqtt.events;
        let account = session.account;
        let (mqtt, _) = parts(session);
        if !mqtt.connection.is_open() {
            return None;
        }
        let now = mqtt.started_unix_nanos.saturating_add(now);
        loop {
            let (mqtt, out) = parts(session);
            let mut message = mqtt.queue.pop_front()?;
            if !message.age(now) {
                events.discard(account, &message);
                continue;
            }
            if let Some(packet_id) = message.packet_id.filter(|id| mqtt.is_releasing(Some(*id))) {
                // The confirmation that the earlier message was acknowledged may be lost.
                events.record_redelivered(self.id.0, packet_id);
                mqtt.queue.push_front(message);
                return None;
            }
            if let Some(packet_id) = message.packet_id.filter(|_| message.needs_claim()) {
                if mqtt.connection.reserve(message.token, packet_id) {
                    return Some(Next::Claim(packet_id, message));
                }
                mqtt.queue.push_front(message);
                return None;
            }
            match mqtt.send(&message, out) {
                Ok(()) => {
                    count_sent(session, &message);
                    if message.qos == Qos::AtMostOnce {
                        events.discard(account, &message);
                    }
                }
                Err(Refused::NoRoom) => {
                    mqtt.queue.push_front(message);
                    return None;
                }
                Err(Refused::UnderWay) => {}
                Err(Refused::TooLarge) if message.is_claimed => {
                    return Some(Next::Unclaim(message.packet_id?));
                }
                Err(Refused::TooLarge) => events.discard(account, &message),
            }
        }
    }
}
