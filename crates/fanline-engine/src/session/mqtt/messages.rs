//! Messages between shards and the session registry, which runs next to the JetStream service.

use std::time::Duration;

use super::acks::AckKind;
use super::records::StoredRelease;
use super::registry::sessions::SessionKey;
use super::session_record::SessionRecord;
use super::{MqttSession, names, publish};
use crate::auth::AccountId;
use crate::codec::mqtt::{Reason, Will};
use crate::exchange::batch::Notification;
use crate::session::Broker;

/// A connection on any shard. Its cid differs from that of a later connection with the same session index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    pub(super) shard: u16,
    pub(super) session: u32,
    pub(super) cid: u64,
}

/// A message between a shard and the session registry.
#[derive(Clone, Debug)]
pub(crate) enum RegistryMessage {
    /// To the registry: a client that may connect requests its session.
    Open {
        key: SessionKey,
        connection: ConnectionId,
        clean_start: bool,
    },
    /// To the registry: a connection is closed.
    Close(Box<Close>),
    /// To the registry: a subscription requests retained messages.
    RequestRetained(RetainedRequest),
    /// To the registry: a session has become a member of a shared subscription above QoS 0, or has left it.
    Member {
        key: SessionKey,
        filter: Box<str>,
        is_member: bool,
    },
    /// To the registry: a request to the JetStream service.
    Request(Box<Request>),
    /// To a shard: the JetStream service's answer. If a record was stored, the result is its sequence,
    /// otherwise 0.
    Answer {
        to: ConnectionId,
        request: RequestId,
        result: Result<u64, Reason>,
    },
    /// To all shards: a shared subscription now has a member above QoS 0, connected or not; or it has lost
    /// its last such member.
    Group {
        account: AccountId,
        filter: Box<str>,
        has_members: bool,
    },
    /// To a shard: the stored state of a session, whose client can now be admitted.
    Opened(Box<Opened>),
    /// To a shard: another connection has the client id.
    TakenOver(ConnectionId),
    /// To a shard: publish a will.
    Will {
        account: AccountId,
        will: Box<Will>,
        /// The id hash of the will's client.
        client: Box<str>,
    },
    /// To a shard: a batch of the requested retained messages.
    Retained(Box<RetainedBatch>),
}

impl Notification for RegistryMessage {
    fn bytes(&self) -> usize {
        let more = match self {
            RegistryMessage::Retained(batch) => (batch.messages.iter())
                .map(|message| message.payload.len() + message.headers.len())
                .sum(),
            _ => 0,
        };
        size_of::<RegistryMessage>() + more
    }
}

/// See [`RegistryMessage::Close`].
#[derive(Clone, Debug)]
pub(crate) struct Close {
    pub(super) key: SessionKey,
    pub(super) connection: ConnectionId,
    /// Session expiry in seconds; `u32::MAX` means never.
    pub(super) expiry: u32,
    pub(super) will: Option<Box<Will>>,
    /// Whether records exist under the client id.
    pub(super) has_records: bool,
}

/// A request of a session to the JetStream service.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) account: AccountId,
    pub(super) cid: u64,
    /// The answer's id; `None` when the session does not wait for one.
    pub(super) id: Option<RequestId>,
    pub(super) action: RequestAction,
}

/// The operation that the JetStream service performs for a request.
#[derive(Clone, Debug)]
pub(super) enum RequestAction {
    /// Remove the records of a stream whose subjects match a filter. The answer follows when this removal and
    /// all earlier ones are on the disk.
    Purge {
        stream: &'static str,
        filter: String,
    },
    /// Create or change a consumer of `$MQTT_msgs`.
    PutConsumer(ConsumerSettings),
    /// Remove a consumer of `$MQTT_msgs`.
    DeleteConsumer { name: String },
}

/// The settings of a consumer that differ between sessions and shared subscriptions.
#[derive(Clone, Debug)]
pub(super) struct ConsumerSettings {
    pub(super) name: String,
    pub(super) filters: Vec<String>,
    pub(super) deliver_subject: String,
    pub(super) deliver_group: Option<&'static str>,
    pub(super) ack_wait: Duration,
    pub(super) ack_pending_max: u16,
    pub(super) in_memory: bool,
    /// Whether records are delivered only after they are on the disk.
    pub(super) durable_only: bool,
}

/// A request of a session that waits for an answer. A record is published as a message whose reply subject
/// contains this id; any other request is sent as [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    /// Store a message. The number is the client's packet identifier.
    Store(AckKind, u16),
    /// Remove a published QoS 2 message of the client.
    RemoveReceived(u16),
    /// Claim a message of a shared subscription. Here and below, the number is the packet identifier to the
    /// client.
    Claim(u16),
    /// Store a PUBREL.
    StoreRelease(u16),
    /// Acknowledge the message of a stored PUBREL, the last step before the PUBREL may be removed.
    ConfirmRelease(u16),
    /// Acknowledge a claimed message at the consumer of its group. The claim is removed next.
    ConfirmClaimed(u16),
    /// Remove a PUBREL.
    RemoveRelease(u16),
    /// Store the session's record, or remove records. The number is that of the operation.
    Record(u32),
    /// Change the session's consumer, or that of a shared subscription. The number is that of the operation.
    Consumer(u32),
}

impl RequestId {
    /// Returns the subject of the answer: `$MQTT.rply.<cid>.<letter><number>`.
    pub(super) fn reply_subject(self, cid: u64) -> String {
        let (letter, number) = self.parts();
        format!("{}{cid}.{letter}{number}", names::REPLY_PREFIX)
    }

    /// Parses the subject of an answer into the cid and the id.
    pub(super) fn parse_reply_subject(subject: &[u8]) -> Option<(u64, Self)> {
        let rest = subject.strip_prefix(names::REPLY_PREFIX.as_bytes())?;
        let (cid, token) = std::str::from_utf8(rest).ok()?.split_once('.')?;
        let letter = token.chars().next()?;
        let number: u32 = token.get(1..)?.parse().ok()?;
        let packet_id = u16::try_from(number);
        let request = match letter {
            's' => RequestId::Record(number),
            'k' => RequestId::Consumer(number),
            'a' => RequestId::Store(AckKind::Publish, packet_id.ok()?),
            'h' => RequestId::Store(AckKind::Receive, packet_id.ok()?),
            'r' => RequestId::Store(AckKind::Release, packet_id.ok()?),
            'p' => RequestId::RemoveReceived(packet_id.ok()?),
            'o' => RequestId::Claim(packet_id.ok()?),
            'n' => RequestId::StoreRelease(packet_id.ok()?),
            'c' => RequestId::ConfirmRelease(packet_id.ok()?),
            'w' => RequestId::ConfirmClaimed(packet_id.ok()?),
            'f' => RequestId::RemoveRelease(packet_id.ok()?),
            _ => return None,
        };
        Some((cid.parse().ok()?, request))
    }

    fn parts(self) -> (char, u32) {
        match self {
            RequestId::Store(AckKind::Publish, id) => ('a', id.into()),
            RequestId::Store(AckKind::Receive, id) => ('h', id.into()),
            RequestId::Store(AckKind::Release, id) => ('r', id.into()),
            RequestId::RemoveReceived(id) => ('p', id.into()),
            RequestId::Claim(id) => ('o', id.into()),
            RequestId::StoreRelease(id) => ('n', id.into()),
            RequestId::ConfirmRelease(id) => ('c', id.into()),
            RequestId::ConfirmClaimed(id) => ('w', id.into()),
            RequestId::RemoveRelease(id) => ('f', id.into()),
            RequestId::Record(operation) => ('s', operation),
            RequestId::Consumer(operation) => ('k', operation),
        }
    }
}

/// See [`RegistryMessage::RequestRetained`].
#[derive(Clone, Debug)]
pub(crate) struct RetainedRequest {
    pub(super) account: AccountId,
    pub(super) connection: ConnectionId,
    /// The index of the subscription.
    pub(super) sub: u32,
    /// Filters of `$MQTT_rmsgs`.
    pub(super) filters: Vec<Box<[u8]>>,
    /// The sequence to continue at.
    pub(super) from: u64,
}

impl RetainedRequest {
    /// Returns whether the request belongs to a subscription to this subject.
    pub(super) fn is_for(&self, subject: &[u8]) -> bool {
        let first = self.filters.first();
        let stored =
            first.and_then(|filter| filter.strip_prefix(names::RETAINED_PREFIX.as_bytes()));
        stored == Some(subject)
    }
}

/// See [`RegistryMessage::Opened`].
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(super) connection: ConnectionId,
    pub(super) record: Option<SessionRecord>,
    /// QoS 2 messages that the client has not released: packet identifier, sequence, and record.
    pub(super) received: Vec<(u16, u64, Box<[u8]>)>,
    /// PUBRELs that are not complete.
    pub(super) releases: Vec<StoredRelease>,
    /// Claimed messages, and copies of messages in flight: packet identifier and record.
    pub(super) claimed: Vec<(u16, Box<[u8]>)>,
    /// Time at which the server started, in nanoseconds since 1970 UTC.
    pub(super) started_unix_nanos: i64,
}

/// See [`RegistryMessage::Retained`].
#[derive(Clone, Debug)]
pub(crate) struct RetainedBatch {
    /// The request. Its `from` is set to the sequence at which the next batch begins.
    pub(super) request: RetainedRequest,
    pub(super) messages: Vec<RetainedMessage>,
    pub(super) has_more: bool,
}

/// A retained message.
#[derive(Clone, Debug)]
pub(crate) struct RetainedMessage {
    pub(super) subject: Box<[u8]>,
    pub(super) headers: Box<[u8]>,
    pub(super) payload: Box<[u8]>,
    pub(super) sequence: u64,
    pub(super) unix_nanos: i64,
}

/// Handles a message from the registry on a shard.
pub(crate) fn handle_message(broker: &mut Broker, message: &RegistryMessage) {
    match message {
        RegistryMessage::Opened(opened) => {
            if let Some(mut session) = MqttSession::connected(broker, opened.connection) {
                session.begin(opened);
            }
        }
        RegistryMessage::Answer {
            to,
            request,
            result,
        } => {
            if let Some(mut session) = MqttSession::connected(broker, *to) {
                session.handle_answer(*request, *result);
            }
        }
        RegistryMessage::TakenOver(connection) => {
            if let Some(mut session) = MqttSession::connected(broker, *connection) {
                let why = "another connection has the client id now";
                session.end_because(Reason::SESSION_TAKEN_OVER, why);
            }
        }
        RegistryMessage::Will {
            account,
            will,
            client,
        } => publish::publish_will(broker, *account, will, client),
        RegistryMessage::Group {
            account,
            filter,
            has_members,
        } => broker
            .exchange
            .shared
            .mqtt
            .groups
            .change(*account, filter, *has_members),
        RegistryMessage::Retained(batch) => {
            if let Some(mut session) = MqttSession::connected(broker, batch.request.connection) {
                session.queue_retained(batch);
            }
        }
        // The registry handles these messages.
        RegistryMessage::Open { .. }
        | RegistryMessage::Close(_)
        | RegistryMessage::Request(_)
        | RegistryMessage::RequestRetained(_)
        | RegistryMessage::Member { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_subjects_are_parsed_back() {
        let all = [
            (RequestId::Store(AckKind::Publish, 1), "$MQTT.rply.7.a1"),
            (RequestId::Store(AckKind::Receive, 2), "$MQTT.rply.7.h2"),
            (RequestId::Store(AckKind::Release, 3), "$MQTT.rply.7.r3"),
            (RequestId::RemoveReceived(4), "$MQTT.rply.7.p4"),
            (RequestId::Claim(5), "$MQTT.rply.7.o5"),
            (RequestId::StoreRelease(6), "$MQTT.rply.7.n6"),
            (RequestId::ConfirmRelease(7), "$MQTT.rply.7.c7"),
            (RequestId::ConfirmClaimed(8), "$MQTT.rply.7.w8"),
            (RequestId::RemoveRelease(65_535), "$MQTT.rply.7.f65535"),
            (RequestId::Record(0), "$MQTT.rply.7.s0"),
            (RequestId::Consumer(u32::MAX), "$MQTT.rply.7.k4294967295"),
        ];
        for (request, subject) in all {
            assert_eq!(request.reply_subject(7), subject);
            let parsed = RequestId::parse_reply_subject(subject.as_bytes());
            assert_eq!(parsed, Some((7, request)));
        }
        for bad in [
            "",
            "$MQTT.rply.",
            "$MQTT.rply.7",
            "$MQTT.rply.7.",
            "$MQTT.rply.x.a1",
        ] {
            assert_eq!(
                RequestId::parse_reply_subject(bad.as_bytes()),
                None,
                "{bad}"
            );
        }
        for bad in ["$MQTT.rply.7.a65536", "$MQTT.rply.7.z1", "_INBOX.7.a1"] {
            assert_eq!(
                RequestId::parse_reply_subject(bad.as_bytes()),
                None,
                "{bad}"
            );
        }
    }
}
