//! What a consumer tells of itself.

use serde::Serialize;

use super::machine::{Consumer, Position};
use super::shared::Work;
use crate::jetstream::{ConsumerConfig, Timestamp};

/// A consumer's state, in the shape in which it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsumerInfo {
    /// Its stream.
    pub stream_name: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// What it was asked to be; left out where many are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConsumerConfig>,
    /// How far it has delivered.
    pub delivered: SequenceInfo,
    /// Up to where everything is acknowledged.
    pub ack_floor: SequenceInfo,
    /// Records that wait for an acknowledgement.
    pub num_ack_pending: u64,
    /// Those of them that were delivered more than once.
    pub num_redelivered: u64,
    /// Pull requests that wait.
    pub num_waiting: u64,
    /// Records that are still to be delivered.
    pub num_pending: u64,
    /// Whether somebody listens where it pushes to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub push_bound: bool,
    /// Whether it is paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// For how many nanoseconds more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_remaining: Option<i64>,
    /// The time of this.
    pub ts: Timestamp,
    /// Its group and who is pinned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<PriorityGroupInfo>,
}

/// How far something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SequenceInfo {
    /// Deliveries.
    pub consumer_seq: u64,
    /// The stream's sequence.
    pub stream_seq: u64,
    /// When it last moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Timestamp>,
}

/// A group of pull requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityGroupInfo {
    /// Its name.
    pub group: String,
    /// Who is pinned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pinned_client_id: String,
    /// Since when.
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
    /// What it tells of itself now.
    pub(super) fn info(&mut self, work: &mut Work<'_>) -> ConsumerInfo {
        self.catch_up(work);
        self.drop_gone(&mut work.round);
        let now = work.round.now.unix_nanos;
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
            stream_name: work.round.shared.stream.clone(),
            name: self.config.name.clone(),
            created: Timestamp::from_unix_nanos(self.created),
            config: Some(self.config.clone()),
            delivered: self.delivered.into(),
            ack_floor: self.floor.into(),
            num_ack_pending: self.pending.len() as u64,
            num_redelivered: self.pending.redelivered() as u64,
            num_waiting: self.requests.len() as u64,
            num_pending: self.backlog.count(),
            push_bound: self.is_bound(),
            paused: paused_until.is_some(),
            pause_remaining: paused_until.map(|until| until - now),
            ts: Timestamp::from_unix_nanos(now),
            priority_groups: self.config.priority_groups.iter().map(group).collect(),
        }
    }
}
