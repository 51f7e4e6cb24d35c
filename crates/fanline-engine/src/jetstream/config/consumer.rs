//! The configuration of a consumer.

use serde::{Deserialize, Serialize};

use super::level::Metadata;
use super::stream::{is_default, is_false, is_zero_i64, is_zero_u64};
use crate::time::{Nanos, Timestamp};

/// Position in the stream at which a consumer begins.
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

/// Records that an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// There are no acknowledgements: a record counts as acknowledged when it is delivered.
    #[default]
    None,
    /// All records up to the acknowledged one.
    All,
    /// Only the acknowledged record.
    Explicit,
    /// All records up to the last delivered one. The acknowledgement is the answer to a flow control request.
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

/// Order in which waiting pull requests are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityPolicy {
    /// The request that has waited longest is served first.
    #[default]
    None,
    /// The request that has waited longest is served first. A request may require a minimum number of
    /// undelivered or unacknowledged records.
    Overflow,
    /// Only requests of one client are served, until the client disconnects or stops sending requests.
    PinnedClient,
    /// The request with the lowest priority number is served first.
    Prioritized,
}

/// A consumer's configuration. Names, order, and defaults of the fields are nats-server's.
///
/// A configuration from a request may contain any values. That of an existing consumer was checked.
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
    /// Position in the stream at which the consumer begins.
    pub deliver_policy: DeliverPolicy,
    /// First sequence to deliver; 0 means unset.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub opt_start_seq: u64,
    /// Time of the first record to deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Records that an acknowledgement covers.
    pub ack_policy: AckPolicy,
    /// Time after which an unacknowledged record is redelivered.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub ack_wait: Nanos,
    /// Maximum number of deliveries of a record; -1 means unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_deliver: i64,
    /// Delays before the redeliveries of a record, used instead of `ack_wait`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Nanos>,
    /// Filter of the subjects to deliver; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the subjects to deliver, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// Pace of deliveries.
    pub replay_policy: ReplayPolicy,
    /// Maximum number of bits to deliver per second; 0 means unlimited.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub rate_limit_bps: u64,
    /// Percentage of acknowledgements for which an event is published: `30` or `30%`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sample_freq: String,
    /// Maximum number of waiting pull requests.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_waiting: i64,
    /// Maximum number of unacknowledged records; -1 is unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending: i64,
    /// Whether the consumer requests confirmations from its subscriber, and waits for them before it sends
    /// too much.
    #[serde(skip_serializing_if = "is_false")]
    pub flow_control: bool,
    /// Whether records are delivered without their payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
    /// Maximum number of records of one pull request; 0 means unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_batch: i64,
    /// Maximum waiting time of a pull request; 0 is unlimited.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub max_expires: Nanos,
    /// Maximum number of bytes of one pull request; 0 means unlimited.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_bytes: i64,
    /// Subject to which records are pushed; empty for a pull consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
    /// Queue group to which records are pushed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_group: String,
    /// Time without a message after which it sends a heartbeat.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// Time without use after which it is deleted; 0 means never.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Number of servers that store its state; 0 means as many servers as store the stream.
    pub num_replicas: i64,
    /// Whether its state is stored only in memory.
    #[serde(skip_serializing_if = "is_false")]
    pub mem_storage: bool,
    /// Whether it was created for a mirror or source, and is neither counted nor listed.
    #[serde(skip_serializing_if = "is_false")]
    pub direct: bool,
    /// Whether it was created in advance for a mirror or source.
    #[serde(skip_serializing_if = "is_false")]
    pub sourcing: bool,
    /// Labels. The server sets those that begin with `_nats.`.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Time until which no records are delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// Priority group, which pull requests must name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<String>,
    /// Order in which waiting pull requests are served.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_policy: PriorityPolicy,
    /// Time without a request after which the pinned client is unpinned.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub priority_timeout: Nanos,
    /// Maximum number of unacknowledged records of one subject; 0 is unlimited. A Fanline option. With 1, the
    /// records of each subject are processed in order, while different subjects are processed in parallel.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending_per_subject: i64,
    /// Whether subjects take turns, so that a busy one does not starve others. A Fanline option.
    #[serde(skip_serializing_if = "is_false")]
    pub fair_subjects: bool,
}

impl ConsumerConfig {
    /// Returns whether it is a push consumer.
    pub fn is_push(&self) -> bool {
        !self.deliver_subject.is_empty()
    }

    /// Returns whether it is durable.
    pub fn is_durable(&self) -> bool {
        !self.durable_name.is_empty()
    }

    /// Returns its filters, from `filter_subject` or `filter_subjects`.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.filter_subject.as_str()).filter(|filter| !filter.is_empty());
        single
            .into_iter()
            .chain(self.filter_subjects.iter().map(String::as_str))
    }
}
