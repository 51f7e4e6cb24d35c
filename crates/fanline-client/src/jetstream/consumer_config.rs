//! The configuration of a consumer.

use serde::{Deserialize, Serialize};

use super::stream_config::is_default;
use super::values::{Metadata, Nanos, Timestamp};

/// Position in the stream at which a consumer starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverPolicy {
    /// The first message of the stream.
    #[default]
    #[serde(alias = "undefined")]
    All,
    /// The last message that matches the consumer's filters.
    Last,
    /// The first message that is stored after the consumer was created.
    New,
    /// The message at `opt_start_seq`.
    ByStartSequence,
    /// The first message at or after `opt_start_time`.
    ByStartTime,
    /// The last message of each subject that matches the consumer's filters.
    LastPerSubject,
}

/// The messages that an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// No acknowledgement: a delivered message counts as acknowledged.
    #[default]
    None,
    /// All messages up to the acknowledged one.
    All,
    /// The acknowledged message only.
    Explicit,
    /// All messages up to the last flow control request that the receiver answered.
    FlowControl,
}

/// Speed at which a consumer delivers stored messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPolicy {
    /// As fast as possible.
    #[default]
    Instant,
    /// At the speed at which they were published.
    Original,
}

/// The rule by which a consumer chooses among several waiting pull requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityPolicy {
    /// The request that has waited longest.
    #[default]
    None,
    /// Any request. A request that sets a minimum backlog is served only while the backlog is at least that
    /// large.
    Overflow,
    /// The requests of one client (the pinned client), until that client stops.
    PinnedClient,
    /// The request with the lowest priority number.
    Prioritized,
}

/// The configuration of a consumer, with nats-server's field names and defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerConfig {
    /// Name of a durable consumer, equal to `name`; empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_name: String,
    /// Name of the consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Description for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Position in the stream at which the consumer starts.
    pub deliver_policy: DeliverPolicy,
    /// Sequence of the first message, for `ByStartSequence`; 0 means not set.
    #[serde(skip_serializing_if = "is_default")]
    pub opt_start_seq: u64,
    /// Time of the first message, for `ByStartTime`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Messages that an acknowledgement covers.
    pub ack_policy: AckPolicy,
    /// Time without an acknowledgement after which a message is delivered again.
    #[serde(skip_serializing_if = "is_default")]
    pub ack_wait: Nanos,
    /// Maximum number of deliveries of a message; -1 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_deliver: i64,
    /// Delays before each further delivery; they replace `ack_wait`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Nanos>,
    /// Filter of the subjects that the consumer delivers; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the subjects that the consumer delivers, if there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// Speed at which the consumer delivers stored messages.
    pub replay_policy: ReplayPolicy,
    /// Maximum number of bits that are delivered per second; 0 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub rate_limit_bps: u64,
    /// Percentage of acknowledgements for which the server publishes a metric: `30` or `30%`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sample_freq: String,
    /// Maximum number of waiting pull requests.
    #[serde(skip_serializing_if = "is_default")]
    pub max_waiting: i64,
    /// Maximum number of unacknowledged messages; -1 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_ack_pending: i64,
    /// Whether the server requests confirmations that the receiver keeps up with deliveries.
    #[serde(skip_serializing_if = "is_default")]
    pub flow_control: bool,
    /// Whether messages are delivered without their payload.
    #[serde(skip_serializing_if = "is_default")]
    pub headers_only: bool,
    /// Maximum number of messages of a pull request; 0 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_batch: i64,
    /// Maximum time for which a pull request waits; 0 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_expires: Nanos,
    /// Maximum number of bytes of a pull request; 0 means no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_bytes: i64,
    /// Subject to which a push consumer delivers; empty for a pull consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
    /// Queue group to which a push consumer delivers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_group: String,
    /// Time without a delivery after which the consumer sends a heartbeat.
    #[serde(skip_serializing_if = "is_default")]
    pub idle_heartbeat: Nanos,
    /// Time without use after which the consumer is removed; 0 means never.
    #[serde(skip_serializing_if = "is_default")]
    pub inactive_threshold: Nanos,
    /// Number of servers that store the consumer; 0 means as many as for its stream.
    pub num_replicas: i64,
    /// Whether the consumer's state is stored in memory.
    #[serde(skip_serializing_if = "is_default")]
    pub mem_storage: bool,
    /// Whether the consumer serves a mirror or source. Such a consumer is neither counted nor listed.
    #[serde(skip_serializing_if = "is_default")]
    pub direct: bool,
    /// Whether the consumer was created in advance to serve a mirror or source.
    #[serde(skip_serializing_if = "is_default")]
    pub sourcing: bool,
    /// Labels. Those that start with `_nats.` belong to the server.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Time until which the consumer delivers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// Names of the priority groups that pull requests can use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<String>,
    /// Rule that chooses the pull request that is served.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_policy: PriorityPolicy,
    /// Time without a request after which the pinned client is replaced.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_timeout: Nanos,
    /// Maximum number of unacknowledged messages with the same subject; 0 means no limit. With 1, the
    /// messages of each subject are handled in order, and subjects in parallel. Specific to Fanline.
    #[serde(skip_serializing_if = "is_default")]
    pub max_ack_pending_per_subject: i64,
    /// Whether subjects take turns, so that a subject with many messages does not delay the others. Specific
    /// to Fanline.
    #[serde(skip_serializing_if = "is_default")]
    pub fair_subjects: bool,
}

impl ConsumerConfig {
    /// Returns whether this is a push consumer.
    pub fn is_push(&self) -> bool {
        !self.deliver_subject.is_empty()
    }

    /// Returns whether this is a durable consumer.
    pub fn is_durable(&self) -> bool {
        !self.durable_name.is_empty()
    }

    /// Returns the subject filters, which are in one of two fields.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.filter_subject.as_str()).filter(|filter| !filter.is_empty());
        single
            .into_iter()
            .chain(self.filter_subjects.iter().map(String::as_str))
    }
}
