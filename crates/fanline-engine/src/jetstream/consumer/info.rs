//! Description of a consumer.

use serde::Serialize;

use super::machine::{Consumer, Position};
use super::shared::CallWithStore;
use crate::jetstream::{ClusterInfo, ConsumerConfig, Timestamp};

/// Description of a consumer in wire format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsumerInfo {
    /// Name of the stream.
    pub stream_name: String,
    /// Name of the consumer.
    pub name: String,
    /// Time of its creation.
    pub created: Timestamp,
    /// Configuration; omitted if it was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConsumerConfig>,
    /// Position of the last delivery.
    pub delivered: SequenceInfo,
    /// Position up to which all records are acknowledged.
    pub ack_floor: SequenceInfo,
    /// Number of unacknowledged records.
    pub num_ack_pending: u64,
    /// Number of unacknowledged records that were delivered more than once.
    pub num_redelivered: u64,
    /// Number of pull requests that wait for records.
    pub num_waiting: u64,
    /// Number of records that are not delivered yet.
    pub num_pending: u64,
    /// Whether its deliver subject has a subscriber.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub push_bound: bool,
    /// Whether it is paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Remaining time of the pause in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_remaining: Option<i64>,
    /// Server of the consumer, in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// Time of this description.
    pub ts: Timestamp,
    /// Priority group, with its pinned client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<PriorityGroupInfo>,
}

/// A position of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SequenceInfo {
    /// Number of deliveries.
    pub consumer_seq: u64,
    /// Sequence in the stream.
    pub stream_seq: u64,
    /// Time of its last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Timestamp>,
}

/// A priority group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityGroupInfo {
    /// Name.
    pub group: String,
    /// Id of the pinned client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pinned_client_id: String,
    /// Time at which it was pinned.
    pub pinned_ts: Timestamp,
}

impl From<Position> for SequenceInfo {
    fn from(position: Position) -> Self {
        SequenceInfo {
            consumer_seq: position.consumer_sequence,
            stream_seq: position.stream_sequence,
            last_active: position.last_active.map(Timestamp::from_unix_nanos),
        }
    }
}

impl Consumer {
    /// Returns the current description.
    pub(super) fn info(&mut self, call: &mut CallWithStore<'_>) -> ConsumerInfo {
        self.catch_up(call);
        self.drop_disconnected(&mut call.context);
        let now = call.context.now.unix_nanos;
        let paused_until = self.paused_until.filter(|until| *until > now);
        let group = |name: &String| PriorityGroupInfo {
            group: name.clone(),
            pinned_client_id: self.pin.id().unwrap_or_default().to_owned(),
            pinned_ts: self
                .pin
                .since_unix_nanos()
                .map_or(Timestamp::ZERO, Timestamp::from_unix_nanos),
        };
        ConsumerInfo {
            stream_name: call.context.shared.stream.clone(),
            name: self.config.name.clone(),
            created: Timestamp::from_unix_nanos(self.created),
            config: Some(self.config.clone()),
            delivered: self.delivered.into(),
            ack_floor: self.ack_floor.into(),
            num_ack_pending: self.pending.len() as u64,
            num_redelivered: self.pending.redelivered() as u64,
            num_waiting: self.requests.len() as u64,
            num_pending: self.backlog.count(),
            push_bound: self.is_bound(),
            paused: paused_until.is_some(),
            pause_remaining: paused_until.map(|until| until - now),
            cluster: None,
            ts: Timestamp::from_unix_nanos(now),
            priority_groups: self.config.priority_groups.iter().map(group).collect(),
        }
    }
}
