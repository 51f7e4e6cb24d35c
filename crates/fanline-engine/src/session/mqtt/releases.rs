//! QoS 1 and 2 towards the client: acknowledgements of stored messages, and PUBRELs, which are stored before
//! they are sent.

use super::messages::{RequestAction, RequestId};
use super::records::StoredRelease;
use super::shared_subscriptions::is_shared;
use super::state::{Mqtt, RETAINED_TOKEN};
use super::{MqttSession, names};
use crate::codec::mqtt::Reason;

/// A stored PUBREL. Its record is removed when PUBCOMP has arrived and the acknowledgement of its message is
/// durable. Otherwise a power cut could undo the acknowledgement but not the removal, and the message would
/// be sent again.
#[derive(Debug)]
pub(super) struct PendingRelease {
    /// The token of its message.
    pub(super) token: u64,
    /// Subject that acknowledges the message at the consumer of its group; empty if the session has not
    /// claimed the message.
    pub(super) ack_subject: Box<[u8]>,
    pub(super) stage: ReleaseStage,
    /// Whether PUBCOMP has arrived.
    pub(super) is_complete: bool,
}

/// The progress of a stored PUBREL. Each stage begins when the step before it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReleaseStage {
    /// The PUBREL's record is being written.
    Storing,
    /// The record is durable, but the acknowledgement of the message is not.
    Stored,
    /// The record and the acknowledgement of the message are durable.
    Confirmed,
    /// The record is being removed.
    Removing,
}

impl PendingRelease {
    fn new(token: u64, stage: ReleaseStage) -> Self {
        PendingRelease {
            token,
            ack_subject: Box::default(),
            stage,
            is_complete: false,
        }
    }

    /// Returns a PUBREL whose record is durable. A retained message is not acknowledged at a consumer, so its
    /// PUBREL counts as confirmed.
    pub(super) fn stored(token: u64) -> Self {
        let stage = match token & RETAINED_TOKEN != 0 {
            true => ReleaseStage::Confirmed,
            false => ReleaseStage::Stored,
        };
        PendingRelease::new(token, stage)
    }
}

impl Mqtt {
    /// Returns the subject that acknowledges the message of a stored PUBREL, and the id of that request.
    /// Returns `None` before the PUBREL is stored, and after the message is acknowledged.
    fn release_to_confirm(&mut self, packet_id: u16) -> Option<(Box<[u8]>, RequestId)> {
        let release = self.releases.get_mut(&packet_id);
        let release = release.filter(|release| release.stage == ReleaseStage::Stored)?;
        let token = release.token;
        if is_shared(token) {
            if let Some(claimed) = self.claimed.remove(&token) {
                release.ack_subject = claimed.ack_subject;
            }
            // An earlier acknowledgement to the group's consumer may not be durable.
            let request = RequestId::ConfirmClaimed(packet_id);
            return Some((release.ack_subject.clone(), request));
        }
        let subject = self.ack_subjects.remove(&token);
        let subject =
            subject.unwrap_or_else(|| names::ack(&self.id_hash, token).into_bytes().into());
        Some((subject, RequestId::ConfirmRelease(packet_id)))
    }

    /// Records that a PUBREL's message is durably acknowledged. Returns whether to remove the PUBREL's
    /// record.
    fn confirm_release(&mut self, packet_id: u16) -> bool {
        let release = self.releases.get_mut(&packet_id);
        let release = release.filter(|release| release.stage == ReleaseStage::Stored);
        release.is_some_and(|release| {
            release.stage = ReleaseStage::Confirmed;
            release.is_complete
        })
    }

    /// Handles PUBCOMP. Returns whether to remove the PUBREL's record.
    fn complete_release(&mut self, packet_id: u16) -> bool {
        self.releases.get_mut(&packet_id).is_some_and(|release| {
            release.is_complete = true;
            release.stage == ReleaseStage::Confirmed
        })
    }
}

impl MqttSession<'_> {
    /// Handles PUBACK, or a PUBREC with an error: acknowledges the message at its consumer.
    pub(super) fn message_done(&mut self, token: u64) {
        self.acknowledge_message(token);
        self.deliver_queue();
    }

    fn acknowledge_message(&mut self, token: u64) {
        let mqtt = self.state_mut();
        mqtt.unlogged.remove(&token);
        if let Some(claimed) = mqtt.claimed.remove(&token) {
            self.remove_claim(claimed.packet_id, None);
        } else if let Some(subject) = mqtt.ack_subjects.remove(&token) {
            self.acknowledge_stored(&subject, b"", b"");
        }
    }

    /// Handles PUBREC. The PUBREL is stored before it is sent.
    pub(super) fn message_received(&mut self, token: u64, packet_id: u16) {
        let mqtt = self.state_mut();
        // The client has the message, so PUBLISH is not sent again.
        mqtt.unlogged.remove(&token);
        let is_persistent = mqtt.is_persistent();
        if !is_persistent && !is_shared(token) {
            self.send_release(packet_id);
            return self.acknowledge_message(token);
        }
        let release = PendingRelease::new(token, ReleaseStage::Storing);
        mqtt.releases.insert(packet_id, release);
        if !is_persistent {
            return self.release_stored(packet_id, Reason::SUCCESS);
        }
        mqtt.has_records = true;
        let subject = names::release(&mqtt.id_hash, packet_id);
        let record = StoredRelease {
            packet_id,
            token,
            is_complete: false,
        };
        let request = Some(RequestId::StoreRelease(packet_id));
        if !self.publish_record(&subject, request, record.encode().as_bytes()) {
            self.release_stored(packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Handles the result of storing a PUBREL.
    pub(super) fn release_stored(&mut self, packet_id: u16, reason: Reason) {
        if reason.is_failure() {
            // Without PUBREL the client sends PUBREC again on its next connection.
            return self.end_because(reason, "the PUBREL could not be stored");
        }
        if let Some(release) = self.state_mut().releases.get_mut(&packet_id) {
            release.stage = PendingRelease::stored(release.token).stage;
        }
        self.send_release(packet_id);
        self.confirm_release(packet_id);
    }

    fn send_release(&mut self, packet_id: u16) {
        self.write(|mqtt, out| mqtt.connection.release_stored(packet_id, out));
    }

    /// Acknowledges the message of a stored PUBREL. The PUBREL's record stays until the acknowledgement is
    /// durable.
    pub(super) fn confirm_release(&mut self, packet_id: u16) {
        let Some((subject, request)) = self.state_mut().release_to_confirm(packet_id) else {
            return;
        };
        if subject.is_empty() {
            return self.remove_released_claim(packet_id);
        }
        let reply = self.reply_subject(request);
        if !self.acknowledge_stored(&subject, reply.as_bytes(), b"") {
            // The stream was deleted, together with the message.
            self.release_confirmed(packet_id);
        }
    }

    /// Removes the claim of a message whose acknowledgement at the consumer of its group is durable.
    pub(super) fn remove_released_claim(&mut self, packet_id: u16) {
        if self.state().releases.contains_key(&packet_id) {
            self.remove_claim(packet_id, Some(RequestId::ConfirmRelease(packet_id)));
        }
    }

    pub(super) fn release_confirmed(&mut self, packet_id: u16) {
        if self.state_mut().confirm_release(packet_id) {
            self.remove_release(packet_id);
        }
    }

    /// Handles PUBCOMP.
    pub(super) fn complete_release(&mut self, packet_id: u16) {
        if self.state_mut().complete_release(packet_id) {
            self.remove_release(packet_id);
        }
        self.deliver_queue();
    }

    /// Removes the record of a PUBREL that is complete.
    fn remove_release(&mut self, packet_id: u16) {
        let mqtt = self.state_mut();
        if let Some(release) = mqtt.releases.get_mut(&packet_id) {
            release.stage = ReleaseStage::Removing;
        }
        let purge = RequestAction::Purge {
            stream: names::RELEASES,
            filter: names::release(&mqtt.id_hash, packet_id),
        };
        self.request(Some(RequestId::RemoveRelease(packet_id)), purge);
    }

    /// Handles the removal of a PUBREL's record, which frees the packet identifier. If the removal failed,
    /// the record is replaced by that of the next PUBREL with this identifier.
    pub(super) fn release_removed(&mut self, packet_id: u16) {
        let mqtt = self.state_mut();
        let release = mqtt.releases.get(&packet_id);
        if release.is_some_and(|release| release.stage == ReleaseStage::Removing) {
            mqtt.releases.remove(&packet_id);
            self.deliver_queue();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::MqttLimits;

    #[test]
    fn release_is_removed_after_pubcomp_and_confirmation_in_either_order() {
        let mut mqtt = Mqtt::new(MqttLimits::default(), Duration::ZERO);
        mqtt.id_hash = "hash".into();
        mqtt.releases.insert(7, PendingRelease::stored(42));
        mqtt.releases.insert(8, PendingRelease::stored(43));
        let (subject, request) = mqtt.release_to_confirm(7).unwrap();
        assert_eq!(*subject, *b"$JS.ACK.$MQTT_msgs.hash.1.42.0.0.0");
        assert_eq!(request, RequestId::ConfirmRelease(7));
        assert!(!mqtt.confirm_release(7) && mqtt.complete_release(7));
        assert_eq!(mqtt.release_to_confirm(7), None);
        assert!(!mqtt.complete_release(8) && mqtt.confirm_release(8));
        assert!(!mqtt.confirm_release(9) && !mqtt.complete_release(9));
    }

    #[test]
    fn release_of_a_retained_message_needs_no_confirmation() {
        let release = PendingRelease::stored(RETAINED_TOKEN | 1);
        assert_eq!(release.stage, ReleaseStage::Confirmed);
        assert_eq!(PendingRelease::stored(1).stage, ReleaseStage::Stored);
    }
}
