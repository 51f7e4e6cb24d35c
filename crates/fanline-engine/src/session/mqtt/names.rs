//! Names of streams, subjects, and consumers of MQTT; the table is in `docs/formats/mqtt.md`.

use crate::codec::mqtt::TEXT_BYTES_MAX;

/// Messages of QoS 1 and 2 that a session still has to receive.
pub(super) const MESSAGES: &str = "$MQTT_msgs";
pub(super) const MESSAGES_PREFIX: &str = "$MQTT.msgs.";
/// The last retained message of each topic.
pub(super) const RETAINED: &str = "$MQTT_rmsgs";
pub(super) const RETAINED_PREFIX: &str = "$MQTT.rmsgs.";
/// Session state.
pub(super) const SESSIONS: &str = "$MQTT_sess";
pub(super) const SESSIONS_PREFIX: &str = "$MQTT.sess.";
/// QoS 2 messages from clients, until the client has sent PUBREL.
pub(super) const RECEIVED: &str = "$MQTT_qos2in";
pub(super) const RECEIVED_PREFIX: &str = "$MQTT.qos2.in.";
/// PUBRELs that are not complete.
pub(super) const RELEASES: &str = "$MQTT_out";
pub(super) const RELEASES_PREFIX: &str = "$MQTT.out.pubrel.";
/// Claimed messages and the names of shared subscriptions.
pub(super) const SHARED: &str = "$MQTT_shared";
pub(super) const SHARED_PREFIX: &str = "$MQTT.shared.";
pub(super) const CLAIMED_PREFIX: &str = "$MQTT.shared.own.";
pub(super) const GROUPS_PREFIX: &str = "$MQTT.shared.group.";
/// Deliver subjects of the consumers of shared subscriptions, by filter hash.
pub(super) const MEMBER_PREFIX: &str = "$MQTT.member.";
/// Deliver subjects of the consumers of sessions, by id hash.
pub(super) const DELIVER_PREFIX: &str = "$MQTT.sub.";
/// Subjects of answers to connections, by cid.
pub(super) const REPLY_PREFIX: &str = "$MQTT.rply.";
/// Prefix of the subjects that MQTT clients may neither publish nor subscribe to.
pub(super) const INTERNAL_PREFIX: &[u8] = b"$MQTT.";

/// Longest subject, in bytes, that the log can store both under `$MQTT.msgs` and under `$MQTT.rmsgs`.
pub(super) const STORED_SUBJECT_BYTES_MAX: usize = TEXT_BYTES_MAX - RETAINED_PREFIX.len();

/// Returns the name of the consumer of a shared subscription.
pub(super) fn group_consumer(hash: &str) -> String {
    format!("share_{hash}")
}

/// Returns the subject that acknowledges a message of a session's consumer. The consumer reads only the
/// sequence.
pub(super) fn ack(id_hash: &str, sequence: u64) -> String {
    format!("$JS.ACK.{MESSAGES}.{id_hash}.1.{sequence}.0.0.0")
}

/// Returns the subject of a session's record.
pub(super) fn session(id_hash: &str) -> String {
    format!("{SESSIONS_PREFIX}{id_hash}")
}

/// Returns the subject of a PUBREL that is not complete.
pub(super) fn release(id_hash: &str, packet_id: u16) -> String {
    format!("{RELEASES_PREFIX}{id_hash}.{packet_id}")
}

/// Returns the subject of a QoS 2 message that is not released.
pub(super) fn received(id_hash: &str, packet_id: u16) -> String {
    format!("{RECEIVED_PREFIX}{id_hash}.{packet_id}")
}

/// Returns the subject of a claimed message.
pub(super) fn claimed(id_hash: &str, packet_id: u16) -> String {
    format!("{CLAIMED_PREFIX}{id_hash}.{packet_id}")
}
