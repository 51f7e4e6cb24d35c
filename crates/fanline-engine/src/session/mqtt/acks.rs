//! Acknowledgements to publishers, which are sent when the message is on the disk, and QoS 2 messages from
//! clients.

use super::messages::{RequestAction, RequestId};
use super::state::Mqtt;
use super::{MqttSession, names};
use crate::codec::mqtt::Reason;

/// The packet that answers a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AckKind {
    /// PUBACK.
    Publish,
    /// PUBREC.
    Receive,
    /// PUBCOMP.
    Release,
}

/// An acknowledgement that is sent when its message is stored.
#[derive(Clone, Copy, Default)]
pub(super) struct PendingAck {
    /// Number of streams that have not stored the message yet.
    left: u8,
    /// Number of times that the client has sent the message.
    times: u16,
    failure: Option<Reason>,
}

impl Mqtt {
    /// Records that a message is about to be stored in this many streams.
    pub(super) fn await_stored(&mut self, kind: AckKind, packet_id: u16, streams: u8) {
        let pending = self.pending_acks.entry((kind, packet_id)).or_default();
        pending.left = pending.left.saturating_add(streams);
        pending.times = pending.times.saturating_add(1);
    }

    /// Counts a stream that has stored a message, or failed to. After the last stream, returns how often to
    /// acknowledge the message, and with which reason.
    fn count_stored(
        &mut self,
        kind: AckKind,
        packet_id: u16,
        reason: Reason,
    ) -> Option<(u16, Reason)> {
        let pending = self.pending_acks.remove(&(kind, packet_id));
        let mut pending = pending.unwrap_or(PendingAck {
            left: 1,
            times: 1,
            failure: None,
        });
        pending.left = pending.left.saturating_sub(1);
        let failure = Some(reason).filter(|reason| reason.is_failure());
        pending.failure = pending.failure.or(failure);
        if pending.left > 0 {
            self.pending_acks.insert((kind, packet_id), pending);
            return None;
        }
        Some((pending.times, pending.failure.unwrap_or(Reason::SUCCESS)))
    }
}

impl MqttSession<'_> {
    /// Handles the JetStream service's answer to a request of the session.
    pub(super) fn handle_answer(&mut self, request: RequestId, result: Result<u64, Reason>) {
        let reason = result.err().unwrap_or(Reason::SUCCESS);
        match request {
            RequestId::Store(kind, packet_id) => {
                if kind == AckKind::Receive
                    && let Some(received) = self.state_mut().received.get_mut(&packet_id)
                {
                    received.sequence = result.unwrap_or(0);
                }
                self.stored(kind, packet_id, reason);
            }
            RequestId::RemoveReceived(packet_id) => self.complete_received(packet_id, reason),
            RequestId::Claim(packet_id) => self.deliver_claimed(packet_id, reason),
            RequestId::StoreRelease(packet_id) => self.release_stored(packet_id, reason),
            // Without confirmation, the acknowledgement is repeated on the next connection.
            RequestId::ConfirmRelease(_) if reason.is_failure() => {}
            RequestId::ConfirmRelease(packet_id) => self.release_confirmed(packet_id),
            RequestId::ConfirmClaimed(packet_id) => self.remove_released_claim(packet_id),
            RequestId::RemoveRelease(packet_id) => self.release_removed(packet_id),
            RequestId::Record(operation) | RequestId::Consumer(operation) => {
                match reason.is_failure() && !self.state().may_fail(request, operation, reason) {
                    true => self.fail_operation(operation, reason),
                    false => self.end_part(operation),
                }
            }
        }
    }

    /// Handles that a stream has stored a message, or failed to.
    pub(super) fn stored(&mut self, kind: AckKind, packet_id: u16, reason: Reason) {
        let due = self.state_mut().count_stored(kind, packet_id, reason);
        if let Some((times, reason)) = due {
            for _ in 0..times {
                self.acknowledge_publish(kind, packet_id, reason);
            }
        }
    }

    fn acknowledge_publish(&mut self, kind: AckKind, packet_id: u16, reason: Reason) {
        match kind {
            AckKind::Publish => {
                self.write_or_end(|mqtt, out| mqtt.connection.acknowledge(packet_id, reason, out));
            }
            AckKind::Receive => {
                if reason.is_failure() {
                    self.state_mut().received.remove(&packet_id);
                }
                self.write_or_end(|mqtt, out| mqtt.connection.held(packet_id, reason, out));
            }
            AckKind::Release if reason.is_failure() => {
                // PUBCOMP has no reason code for this failure. Without PUBCOMP, the client sends PUBREL again
                // on its next connection, and a persistent session still has the message.
                self.end_because(reason, "a message could not be kept");
            }
            AckKind::Release => self.remove_received(packet_id),
        }
    }

    /// Removes a published QoS 2 message. PUBCOMP is sent when the removal is on the disk, because PUBCOMP
    /// frees the packet identifier. If a power cut restored the record, it would be taken for the next
    /// message with that identifier.
    fn remove_received(&mut self, packet_id: u16) {
        let mqtt = self.state_mut();
        let received = mqtt.received.remove(&packet_id);
        if received.is_none_or(|received| received.sequence == 0) {
            return self.complete_received(packet_id, Reason::SUCCESS);
        }
        let purge = RequestAction::Purge {
            stream: names::RECEIVED,
            filter: names::received(&mqtt.id_hash, packet_id),
        };
        self.request(Some(RequestId::RemoveReceived(packet_id)), purge);
    }

    /// Sends PUBCOMP.
    fn complete_received(&mut self, packet_id: u16, reason: Reason) {
        if reason.is_failure() {
            // The client sends PUBREL again on its next connection.
            return self.end_because(reason, "a message of QoS 2 could not be removed");
        }
        self.write(|mqtt, out| mqtt.connection.released(packet_id, out));
    }
}
