//! The configuration of a consumer.

use serde::{Deserialize, Serialize};

use super::level::Metadata;
use super::stream::{is_default, is_false, is_zero_i64, is_zero_u64};
use crate::time::{Nanos, Timestamp};

/// Where in the stream a consumer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverPolicy {
    /// At the first record.
    #[default]
    #[serde(alias = "undefined")]
    All,
    /// At the last matching record.
    Last,
    /// After the last record.
    New,
    /// At `opt_start_seq`.
    ByStartSequence,
    /// At `opt_start_time`.
    ByStartTime,
    /// At the last record of each matching subject.
    LastPerSubject,
}

/// Which records an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// No acknowledgements: a record counts as acknowledged once it is delivered.
    #[default]
    None,
    /// All records up to the acknowledged one.
    All,
    /// Only the acknowledged record.
    Explicit,
    /// All records up to the last delivered one, by the answer to a flow control request.
    FlowControl,
}

/// Pace of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPolicy {
    /// As fast as possible.
    #[default]
    Instant,
    /// At the intervals at which the records were stored.
    Original,
}

/// Which of several waiting pull requests is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityPolicy {
    /// The one that has waited longest.
    #[default]
    None,
    /// The one that has waited longest; a request may require a minimum backlog.
    Overflow,
    /// Requests of one client, until it disconnects or stops to request.
    PinnedClient,
    /// The one with the lowest priority number.
    Prioritized,
}

/// A consumer's configuration. Names, order, and defaults of the fields are nats-server's.
///
/// A configuration from a request may hold any values. That of an existing consumer was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerConfig {
    /// Name of a durable consumer, equal to `name`; empty for an ephemeral one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_name: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Description for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where it begins.
    pub deliver_policy: DeliverPolicy,
    /// First sequence to deliver; 0 is unset.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub opt_start_seq: u64,
    /// Time of the first record to deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Which records an acknowledgement covers.
    pub ack_policy: AckPolicy,
    /// Time after which an unacknowledged record is redelivered.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub ack_wait: Nanos,
    /// Maximum deliveries of a record; -1 is unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_deliver: i64,
    /// Delays before each redelivery, instead of `ack_wait`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Nanos>,
    /// Filter of the subjects to deliver; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Several filters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// Pace of deliveries.
    pub replay_policy: ReplayPolicy,
    /// Maximum bits per second; 0 is unlimited.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub rate_limit_bps: u64,
    /// Percentage of acknowledgements for which a metric is published: `30` or `30%`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sample_freq: String,
    /// Maximum number of waiting pull requests.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_waiting: i64,
    /// Maximum number of unacknowledged records; -1 is unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending: i64,
    /// Whether the subscriber confirms by flow control that it keeps up.
    #[serde(skip_serializing_if = "is_false")]
    pub flow_control: bool,
    /// Whether records are delivered without their payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
    /// Maximum records of one pull request; 0 is unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_batch: i64,
    /// Maximum waiting time of a pull request; 0 is unlimited.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub max_expires: Nanos,
    /// Maximum bytes of one pull request; 0 is unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_bytes: i64,
    /// Subject to push to; empty for a pull consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
    /// Queue group to push to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_group: String,
    /// Time without a message after which it sends a heartbeat.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// Time without use after which it is deleted; 0 never.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Number of servers that store it; 0 means as many as its stream.
    pub num_replicas: i64,
    /// Whether its state is stored only in memory.
    #[serde(skip_serializing_if = "is_false")]
    pub mem_storage: bool,
    /// Whether it serves a mirror or source, and is neither counted nor listed.
    #[serde(skip_serializing_if = "is_false")]
    pub direct: bool,
    /// Whether it was created in advance for a mirror or source.
    #[serde(skip_serializing_if = "is_false")]
    pub sourcing: bool,
    /// Labels. Those beginning with `_nats.` are the server's.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Time until which it delivers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// Group that pull requests name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<String>,
    /// Which pull request is served.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_policy: PriorityPolicy,
    /// Time without a request after which the pinned client is unpinned.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub priority_timeout: Nanos,
    /// Maximum number of unacknowledged records of one subject; 0 is unlimited. A Fanline option: with 1,
    /// each subject is processed in order, and subjects in parallel.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending_per_subject: i64,
    /// Whether subjects take turns, so that a busy one does not starve others. A Fanline option.
    #[serde(skip_serializing_if = "is_false")]
    pub fair_subjects: bool,
}

impl ConsumerConfig {
    /// Whether it is a push consumer.
    pub fn is_push(&self) -> bool {
        !self.deliver_subject.is_empty()
    }

    /// Whether it is durable.
    pub fn is_durable(&self) -> bool {
        !self.durable_name.is_empty()
    }

    /// Returns its filters, from whichever field.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.filter_subject.as_str()).filter(|filter| !filter.is_empty());
        single
            .into_iter()
            .chain(self.filter_subjects.iter().map(String::as_str))
    }
}
