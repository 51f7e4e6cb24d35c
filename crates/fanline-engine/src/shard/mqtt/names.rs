//! Under which names the state of sessions is kept; the table is in `docs/formats/mqtt.md`.

use crate::codec::mqtt::TEXT_BYTES_MAX;

/// Messages of QoS 1 and 2, for as long as a session wants them.
pub(super) const MESSAGES: &str = "$MQTT_msgs";
pub(super) const MESSAGES_PREFIX: &str = "$MQTT.msgs.";
/// The last retained message of each topic.
pub(super) const RETAINED: &str = "$MQTT_rmsgs";
pub(super) const RETAINED_PREFIX: &str = "$MQTT.rmsgs.";
/// Sessions.
pub(super) const SESSIONS: &str = "$MQTT_sess";
pub(super) const SESSIONS_PREFIX: &str = "$MQTT.sess.";
/// What came with QoS 2 and was not released.
pub(super) const HELD: &str = "$MQTT_qos2in";
pub(super) const HELD_PREFIX: &str = "$MQTT.qos2.in.";
/// PUBRELs that are not complete.
pub(super) const RELEASES: &str = "$MQTT_out";
pub(super) const RELEASES_PREFIX: &str = "$MQTT.out.pubrel.";
/// What members of groups have for themselves alone, and which groups there are.
pub(super) const SHARED: &str = "$MQTT_shared";
pub(super) const SHARED_PREFIX: &str = "$MQTT.shared.";
pub(super) const OWNED_PREFIX: &str = "$MQTT.shared.own.";
pub(super) const GROUPS_PREFIX: &str = "$MQTT.shared.group.";
/// Where consumers of groups deliver, by the hash of their filters.
pub(super) const MEMBER_PREFIX: &str = "$MQTT.member.";
/// Where consumers deliver, by id hash.
pub(super) const DELIVER_PREFIX: &str = "$MQTT.sub.";
/// Where answers to connections go, by cid.
pub(super) const REPLY_PREFIX: &str = "$MQTT.rply.";
/// What MQTT clients may neither publish nor subscribe to.
pub(super) const OWN_PREFIX: &[u8] = b"$MQTT.";

/// The longest subject of which the log can keep a message under both of its names.
pub(super) const KEPT_SUBJECT_BYTES_MAX: usize = TEXT_BYTES_MAX - RETAINED_PREFIX.len();

/// The request that removes a consumer of messages.
pub(super) fn delete_consumer(hash: &str) -> String {
    format!("$JS.API.CONSUMER.DELETE.{MESSAGES}.{hash}")
}

/// The request that makes or changes one.
pub(super) fn create_consumer(hash: &str) -> String {
    format!("$JS.API.CONSUMER.CREATE.{MESSAGES}.{hash}")
}

/// The consumer of a group.
pub(super) fn group_consumer(hash: &str) -> String {
    format!("share_{hash}")
}

/// The subject that acknowledges a message of a session's consumer. The parts besides the sequence are not looked at.
pub(super) fn ack(hash: &str, sequence: u64) -> String {
    format!("$JS.ACK.{MESSAGES}.{hash}.1.{sequence}.0.0.0")
}

/// The subject of a PUBREL that is not complete.
pub(super) fn release(hash: &str, packet_id: u16) -> String {
    format!("{RELEASES_PREFIX}{hash}.{packet_id}")
}

/// The subject of a message of QoS 2 that was not released.
pub(super) fn held(hash: &str, packet_id: u16) -> String {
    format!("{HELD_PREFIX}{hash}.{packet_id}")
}

/// The subject of a message that is one member's own.
pub(super) fn owned(hash: &str, packet_id: u16) -> String {
    format!("{OWNED_PREFIX}{hash}.{packet_id}")
}

/// The request that removes records of a stream by subject, and what it says.
pub(super) fn purge(stream: &str, filter: &str) -> (String, String) {
    let body = serde_json::json!({ "filter": filter });
    (format!("$JS.API.STREAM.PURGE.{stream}"), body.to_string())
}
