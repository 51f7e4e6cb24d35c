//! The state of one MQTT session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hashbrown::HashMap;

use super::acks::{AckKind, PendingAck};
use super::consumer::ConsumerFilters;
use super::messages::RetainedRequest;
use super::operations::Operation;
use super::records::{ClaimedRecord, ReceivedMessage, StoredRelease};
use super::releases::{PendingRelease, ReleaseStage};
use super::shared_subscriptions::{SHARED_TOKEN, member_index};
use crate::codec::mqtt::{Connection, Delivery, Properties, Qos, Subscription, Subscriptions};
use crate::limits::MqttLimits;
use crate::session::MqttStatus;
use crate::subject::Filter;

/// The sid of the subscription to the deliver subject of the session's consumer.
pub(super) const DELIVER_SID: &[u8] = b"d";
/// Suffix of the sid of a subscription to a filter's parent level, because `a/#` also matches `a`.
pub(super) const PARENT: &str = "p";
/// Bit in the token of a retained message, which no consumer delivers.
pub(super) const RETAINED_TOKEN: u64 = 1 << 63;

/// One MQTT connection and its session.
pub(crate) struct Mqtt {
    pub(super) connection: Connection,
    pub(super) client_id: Box<str>,
    /// The client id as a token of subjects.
    pub(super) id_hash: Box<str>,
    /// Whether the server assigned the client id, and returns it in CONNACK.
    pub(super) is_id_assigned: bool,
    pub(super) clean_start: bool,
    /// Whether the registry knows the connection, and must be notified when it is closed.
    pub(super) is_registered: bool,
    /// Whether records exist under the client id.
    pub(super) has_records: bool,
    /// Input that arrived before CONNACK.
    pub(super) early_input: Vec<u8>,
    /// Subscriptions as the client sent them.
    pub(super) subscriptions: Subscriptions,
    /// The subscriptions by index. The index is also their sid.
    pub(super) subs: Vec<Option<Sub>>,
    /// Indices in `subs` by filter.
    pub(super) sub_indices: HashMap<Box<str>, u32>,
    /// The filters of the session's consumer. Without filters, there is no consumer.
    pub(super) consumer: ConsumerFilters,
    /// Whether the consumer's state is in memory only.
    pub(super) is_consumer_in_memory: bool,
    /// Messages from the client whose acknowledgement waits for the disk, by packet identifier.
    pub(super) pending_acks: HashMap<(AckKind, u16), PendingAck>,
    /// QoS 2 messages that the client has not released.
    pub(super) received: HashMap<u16, ReceivedMessage>,
    /// Acknowledgement subjects of the messages in flight to the client, by token.
    pub(super) ack_subjects: HashMap<u64, Box<[u8]>>,
    /// Copies of messages in flight that may be missing in the log when the client resumes the session, by
    /// token: retained messages, and messages that expire.
    pub(super) unlogged: BTreeMap<u64, QueuedMessage>,
    /// PUBRELs with a record on the disk, by packet identifier. No message is sent with such an identifier
    /// until the record is durably removed.
    pub(super) releases: HashMap<u16, PendingRelease>,
    /// Messages above QoS 0 that wait for room in the client's receive window. The consumer's limit of
    /// unacknowledged messages bounds their number.
    pub(super) queue: VecDeque<QueuedMessage>,
    /// The number of messages that arrived through shared subscriptions.
    pub(super) shared_token: u64,
    /// Shared subscriptions above QoS 0, as `$share/<group>/<filter>`.
    pub(super) groups: BTreeSet<Box<str>>,
    /// QoS 2 messages of shared subscriptions whose claim is being stored, by packet identifier.
    pub(super) claiming: HashMap<u16, QueuedMessage>,
    /// Messages that this session has claimed, by token.
    pub(super) claimed: HashMap<u64, ClaimedMessage>,
    /// Whether the session existed before this connection.
    pub(super) is_resumed: bool,
    /// Requests that wait for the JetStream service.
    pub(super) operations: HashMap<u32, Operation>,
    pub(super) next_operation: u32,
    /// Requests for retained messages that are still to be sent.
    pub(super) retained_requests: VecDeque<RetainedRequest>,
    pub(super) awaits_retained: bool,
    /// Time at which the server started, in nanoseconds since 1970 UTC.
    pub(super) started_unix_nanos: i64,
    /// Reused buffer: subscription identifiers of a message that is being delivered.
    pub(super) identifiers: Vec<u32>,
    /// Reused buffer: properties of a message that is being delivered.
    pub(super) properties: Vec<u8>,
}

/// One subscription, with the fields that deliveries need.
pub(super) struct Sub {
    pub(super) filter: Box<str>,
    /// The filter as a subject filter.
    pub(super) subject: Box<[u8]>,
    pub(super) is_shared: bool,
    /// The granted QoS.
    pub(super) qos: Qos,
    pub(super) subscription: Subscription,
    /// Whether the filter begins with a wildcard. Such a filter does not match topics that begin with `$`.
    pub(super) starts_with_wildcard: bool,
}

impl Sub {
    /// Returns whether the filter or its parent matches a subject.
    pub(super) fn matches(&self, subject: &[u8]) -> bool {
        if self.hides(subject) {
            return false;
        }
        let matches = Filter::parse(&self.subject).is_ok_and(|filter| filter.matches(subject));
        matches || crate::codec::mqtt::parent_subject(&self.subject) == Some(subject)
    }

    /// Returns whether the filter does not match a subject because the filter begins with a wildcard and the
    /// subject with `$`.
    #[inline]
    pub(super) fn hides(&self, subject: &[u8]) -> bool {
        self.starts_with_wildcard && subject.first() == Some(&b'$')
    }
}

/// A message of a shared subscription that only this session delivers.
#[derive(Debug)]
pub(super) struct ClaimedMessage {
    pub(super) packet_id: u16,
    /// Subject that acknowledges the message at the group's consumer; empty if there is none.
    pub(super) ack_subject: Box<[u8]>,
}

/// A message for the client that waits for room in its receive window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuedMessage {
    pub(super) topic: Box<str>,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) dup: bool,
    pub(super) properties: Box<[u8]>,
    pub(super) identifiers: Box<[u32]>,
    pub(super) payload: Box<[u8]>,
    pub(super) token: u64,
    pub(super) packet_id: Option<u16>,
    /// Subject that acknowledges the message at its consumer; empty if there is none.
    pub(super) ack_subject: Box<[u8]>,
    /// Time at which the message expires, in nanoseconds since 1970 UTC.
    pub(super) expires_at: Option<i64>,
    /// Whether a record states that only this session delivers the message.
    pub(super) is_claimed: bool,
}

impl QueuedMessage {
    /// Returns the message in the form that is written as a packet.
    pub(super) fn delivery(&self) -> Delivery<'_> {
        Delivery {
            topic: &self.topic,
            qos: self.qos,
            retain: self.retain,
            properties: Properties::written(&self.properties),
            identifiers: &self.identifiers,
            payload_bytes: self.payload.len(),
            token: self.token,
            packet_id: self.packet_id,
            dup: self.dup,
        }
    }
}

impl Mqtt {
    pub(crate) fn new(settings: MqttLimits, now: Duration) -> Self {
        Mqtt {
            connection: Connection::new(settings, now),
            client_id: Box::default(),
            id_hash: Box::default(),
            is_id_assigned: false,
            clean_start: true,
            is_registered: false,
            has_records: false,
            early_input: Vec::new(),
            subscriptions: Subscriptions::default(),
            subs: Vec::new(),
            sub_indices: HashMap::new(),
            consumer: ConsumerFilters::default(),
            is_consumer_in_memory: false,
            pending_acks: HashMap::new(),
            received: HashMap::new(),
            ack_subjects: HashMap::new(),
            unlogged: BTreeMap::new(),
            releases: HashMap::new(),
            queue: VecDeque::new(),
            shared_token: 0,
            groups: BTreeSet::new(),
            claiming: HashMap::new(),
            claimed: HashMap::new(),
            is_resumed: false,
            operations: HashMap::new(),
            next_operation: 0,
            retained_requests: VecDeque::new(),
            awaits_retained: false,
            started_unix_nanos: 0,
            identifiers: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// Returns the client id of CONNECT, or the one that was assigned.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Returns the number of messages above QoS 0 that the client has not acknowledged.
    pub(crate) fn in_flight(&self) -> usize {
        self.connection.in_flight()
    }

    /// Returns the session's status for monitoring.
    pub(crate) fn status(&self) -> MqttStatus {
        MqttStatus {
            level: self.connection.version().level(),
            keep_alive: self.connection.keep_alive(),
            expiry: self.connection.session_expiry(),
            in_flight: self.in_flight(),
            waiting: self.queue.len(),
        }
    }

    /// Returns whether the session outlives its connection.
    pub(super) fn is_persistent(&self) -> bool {
        self.connection.session_expiry() > 0
    }

    /// Returns whether a subscription has the No Local option.
    pub(super) fn has_no_local(&self) -> bool {
        let mut all = self.subs.iter().flatten();
        all.any(|sub| sub.subscription.options.no_local)
    }

    /// Returns the PUBRELs for which PUBCOMP arrived before the acknowledgement of their message was durable.
    pub(super) fn complete_releases(&self) -> Vec<StoredRelease> {
        let is_unconfirmed = |release: &PendingRelease| release.stage == ReleaseStage::Stored;
        let all = self.releases.iter();
        all.filter(|(_, release)| release.is_complete && is_unconfirmed(release))
            .map(|(packet_id, release)| StoredRelease {
                packet_id: *packet_id,
                token: release.token,
                is_complete: true,
            })
            .collect()
    }

    /// Restores the PUBRELs and the claimed messages of a session that is resumed.
    pub(super) fn restore(&mut self, releases: &[StoredRelease], claimed: &[(u16, Box<[u8]>)]) {
        for stored in releases {
            let release = PendingRelease {
                is_complete: stored.is_complete,
                ..PendingRelease::stored(stored.token)
            };
            self.releases.insert(stored.packet_id, release);
            if !stored.is_complete {
                self.connection
                    .restore(stored.packet_id, stored.token, Qos::ExactlyOnce, true);
            }
        }
        for (packet_id, record) in claimed {
            if let Some(release) = self.releases.get_mut(packet_id) {
                // The client already has this message.
                release.ack_subject = ClaimedRecord::ack_subject(record)
                    .unwrap_or_default()
                    .into();
                continue;
            }
            let token = self.next_shared_token();
            self.queue
                .extend(ClaimedRecord::decode(record, token, *packet_id));
        }
    }

    pub(super) fn next_shared_token(&mut self) -> u64 {
        self.shared_token = self.shared_token.wrapping_add(1);
        SHARED_TOKEN | self.shared_token
    }

    pub(super) fn sub(&self, index: u32) -> Option<&Sub> {
        let index = usize::try_from(index).ok()?;
        self.subs.get(index)?.as_ref()
    }

    pub(super) fn add_operation(&mut self, operation: Operation) -> u32 {
        self.next_operation = self.next_operation.wrapping_add(1);
        self.operations.insert(self.next_operation, operation);
        self.next_operation
    }
}

/// Returns whether a sid belongs to an internal subscription of an MQTT session, not to one that the client
/// made.
pub(crate) fn is_internal_sid(sid: &[u8]) -> bool {
    sid == DELIVER_SID || member_index(sid).is_some()
}

/// Returns the index of the client's subscription with this sid.
#[inline]
pub(super) fn sub_index(sid: &[u8]) -> Option<u32> {
    let mut index = 0_u32;
    for byte in sid {
        match byte {
            b'0'..=b'9' => index = index.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')),
            b'p' => break,
            _ => return None,
        }
    }
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids() {
        for (sid, index) in [
            (&b"0"[..], Some(0)),
            (b"12", Some(12)),
            (b"12p", Some(12)),
            (DELIVER_SID, None),
        ] {
            assert_eq!(sub_index(sid), index, "{sid:?}");
            assert_eq!(is_internal_sid(sid), index.is_none());
        }
    }
}
