//! Records of messages and PUBRELs, described in `docs/formats/mqtt.md`.

use super::state::QueuedMessage;
use crate::codec::mqtt::Qos;
use crate::jetstream::consumer::AckSubject;

/// The version of the binary records.
const VERSION: u8 = 1;

/// A record of `$MQTT_qos2in`: a QoS 2 message that the client has not released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedMessage {
    /// Sequence of the record; 0 if the message has no record.
    pub(super) sequence: u64,
    pub(super) retain: bool,
    pub(super) subject: Box<[u8]>,
    pub(super) headers: Box<[u8]>,
    pub(super) payload: Box<[u8]>,
}

impl ReceivedMessage {
    /// Encodes the version, RETAIN, the lengths of subject and headers, then subject, headers, and payload.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut record = vec![VERSION, u8::from(self.retain)];
        record.extend_from_slice(&length(&self.subject));
        record.extend_from_slice(&length(&self.headers));
        for part in [&self.subject, &self.headers, &self.payload] {
            record.extend_from_slice(part);
        }
        record
    }

    /// Decodes the record with this sequence.
    pub(super) fn decode(record: &[u8], sequence: u64) -> Option<Self> {
        let (head, rest) = record.split_at_checked(10)?;
        let (subject, rest) = rest.split_at_checked(length_at(head, 2)?)?;
        let (headers, payload) = rest.split_at_checked(length_at(head, 6)?)?;
        (head[0] == VERSION).then(|| ReceivedMessage {
            sequence,
            retain: head[1] & 1 != 0,
            subject: subject.into(),
            headers: headers.into(),
            payload: payload.into(),
        })
    }
}

/// A record of `$MQTT_out`: a PUBREL that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredRelease {
    pub(super) packet_id: u16,
    /// The token of its message.
    pub(super) token: u64,
    /// Whether PUBCOMP has arrived.
    pub(super) is_complete: bool,
}

/// Suffix of the record after PUBCOMP has arrived.
const COMPLETE: &str = " complete";

impl StoredRelease {
    /// Encodes the token in decimal.
    pub(super) fn encode(self) -> String {
        let complete = if self.is_complete { COMPLETE } else { "" };
        format!("{}{complete}", self.token)
    }

    /// Decodes the record of a packet identifier.
    pub(super) fn decode(packet_id: u16, record: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(record).ok()?;
        let token = text.strip_suffix(COMPLETE);
        Some(StoredRelease {
            packet_id,
            token: token.unwrap_or(text).parse().ok()?,
            is_complete: token.is_some(),
        })
    }
}

/// The encoding of a record of `$MQTT.shared.own…`: a message that only one session delivers.
pub(super) struct ClaimedRecord;

impl ClaimedRecord {
    /// Encodes the version, flags for RETAIN and QoS 1, the subscription identifier, and the lengths of
    /// acknowledgement subject, topic, and properties. These three and the payload follow.
    pub(super) fn encode(message: &QueuedMessage) -> Vec<u8> {
        let identifier = message.identifiers.first().copied().unwrap_or(0);
        let flags = u8::from(message.retain) | u8::from(message.qos == Qos::AtLeastOnce) << 1;
        let mut record = vec![VERSION, flags];
        record.extend_from_slice(&identifier.to_le_bytes());
        let parts = [
            &message.ack_subject,
            message.topic.as_bytes(),
            &message.properties,
        ];
        for part in parts {
            record.extend_from_slice(&length(part));
        }
        for part in parts {
            record.extend_from_slice(part);
        }
        record.extend_from_slice(&message.payload);
        record
    }

    /// Decodes a message that must be sent again.
    pub(super) fn decode(record: &[u8], token: u64, packet_id: u16) -> Option<QueuedMessage> {
        let (head, rest) = record.split_at_checked(18)?;
        let (ack_subject, rest) = rest.split_at_checked(length_at(head, 6)?)?;
        let (topic, rest) = rest.split_at_checked(length_at(head, 10)?)?;
        let (properties, payload) = rest.split_at_checked(length_at(head, 14)?)?;
        let identifier = Some(number_at(head, 2)?).filter(|identifier| *identifier != 0);
        (head[0] == VERSION).then_some(QueuedMessage {
            topic: std::str::from_utf8(topic).ok()?.into(),
            qos: match head[1] & 2 != 0 {
                true => Qos::AtLeastOnce,
                false => Qos::ExactlyOnce,
            },
            retain: head[1] & 1 != 0,
            dup: true,
            properties: properties.into(),
            identifiers: identifier.into_iter().collect(),
            payload: payload.into(),
            token,
            packet_id: Some(packet_id),
            ack_subject: ack_subject.into(),
            // A message that was already sent is sent again, even if it has expired (MQTT-4.3.3-7).
            expires_at: None,
            is_claimed: true,
        })
    }

    /// Returns the subject that acknowledges the message at the consumer that delivered it.
    pub(super) fn ack_subject(record: &[u8]) -> Option<&[u8]> {
        let length = length_at(record, 6)?;
        let (_, rest) = record.split_at_checked(18)?;
        let (ack_subject, _) = rest.split_at_checked(length)?;
        (record[0] == VERSION && AckSubject::parse(ack_subject).is_some()).then_some(ack_subject)
    }
}

fn length(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes()
}

fn number_at(head: &[u8], at: usize) -> Option<u32> {
    let bytes = head.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}

fn length_at(head: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number_at(head, at)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::shared_subscriptions::SHARED_TOKEN;
    use super::*;

    const ACK: &[u8] = b"$JS.ACK.$MQTT_msgs.share_a.1.7.3.1700000000000000000.0";

    #[test]
    fn received_message_survives_its_record() {
        let message = ReceivedMessage {
            sequence: 7,
            retain: true,
            subject: (*b"a.b").into(),
            headers: Box::default(),
            payload: (*b"hello").into(),
        };
        let record = message.encode();
        assert_eq!(ReceivedMessage::decode(&record, 7), Some(message));
        for end in 0..13 {
            assert_eq!(ReceivedMessage::decode(&record[..end], 7), None, "{end}");
        }
        let other_version = [&[2], &record[1..]].concat();
        assert_eq!(ReceivedMessage::decode(&other_version, 7), None);
    }

    fn message(dup: bool, ack_subject: &[u8], is_claimed: bool) -> QueuedMessage {
        QueuedMessage {
            topic: "a/b".into(),
            qos: Qos::ExactlyOnce,
            retain: true,
            dup,
            properties: (*b"\x01\x01").into(),
            identifiers: [300].into(),
            payload: (*b"hello").into(),
            token: SHARED_TOKEN | 1,
            packet_id: Some(60_000),
            ack_subject: ack_subject.into(),
            expires_at: None,
            is_claimed,
        }
    }

    #[test]
    fn claimed_message_survives_its_record() {
        let decode = |record: &[u8]| ClaimedRecord::decode(record, SHARED_TOKEN | 1, 60_000);
        let record = ClaimedRecord::encode(&message(false, ACK, false));
        assert_eq!(decode(&record), Some(message(true, ACK, true)));
        assert_eq!(ClaimedRecord::ack_subject(&record), Some(ACK));
        let once = |dup: bool, ack_subject: &'static [u8], is_claimed: bool| QueuedMessage {
            qos: Qos::AtLeastOnce,
            ..message(dup, ack_subject, is_claimed)
        };
        let back = decode(&ClaimedRecord::encode(&once(false, ACK, false)));
        assert_eq!(back, Some(once(true, ACK, true)));
        let head_bytes = 18 + ACK.len() + 3 + 2;
        for end in 0..head_bytes {
            assert_eq!(decode(&record[..end]), None, "{end}");
        }
        assert_eq!(decode(&[&[2], &record[1..]].concat()), None);
    }
}
