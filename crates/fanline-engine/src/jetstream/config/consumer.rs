//! What a consumer is asked to be.

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
    /// At the last record that it wants.
    Last,
    /// After the last record.
    New,
    /// At `opt_start_seq`.
    ByStartSequence,
    /// At `opt_start_time`.
    ByStartTime,
    /// At the last record of each subject that it wants.
    LastPerSubject,
}

/// What an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// There is none: a record counts as acknowledged once it is delivered.
    #[default]
    None,
    /// All records up to that one.
    All,
    /// That one.
    Explicit,
    /// All up to that one, by the answer to a flow control request.
    FlowControl,
}

/// At which pace records are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPolicy {
    /// As fast as possible.
    #[default]
    Instant,
    /// As they came in.
    Original,
}

/// Which of several waiting pull requests is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityPolicy {
    /// The one that has waited longest.
    #[default]
    None,
    /// One that asked for a backlog is served only while there is one.
    Overflow,
    /// One client is served until it goes away.
    PinnedClient,
    /// The one with the lowest priority number.
    Prioritized,
}

/// A consumer's configuration. Fields are nats-server's by name, order and default.
///
/// As read from a request it holds whatever was asked for. What a consumer runs on has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerConfig {
    /// Its name, if it outlives its users; equal to `name` then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_name: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where it begins.
    pub deliver_policy: DeliverPolicy,
    /// The sequence to begin at; 0 is none.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub opt_start_seq: u64,
    /// The time to begin at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// What an acknowledgement covers.
    pub ack_policy: AckPolicy,
    /// After which time without one a record is delivered again.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub ack_wait: Nanos,
    /// How often a record is delivered at most; -1 without end.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_deliver: i64,
    /// The waits before each further delivery, in the place of `ack_wait`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Nanos>,
    /// Which subjects it wants; empty: all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// The same when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// At which pace.
    pub replay_policy: ReplayPolicy,
    /// Most bits per second; 0 as many as go.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub rate_limit_bps: u64,
    /// Of how many acknowledgements in a hundred a metric is published: `30` or `30%`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sample_freq: String,
    /// Most pull requests that wait.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_waiting: i64,
    /// Most records that wait for an acknowledgement; -1 without limit.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending: i64,
    /// The receiver is asked whether it keeps up.
    #[serde(skip_serializing_if = "is_false")]
    pub flow_control: bool,
    /// Records are delivered without their payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
    /// Most records of one pull request; 0 without limit.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_batch: i64,
    /// Longest time that a pull request waits; 0 without limit.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub max_expires: Nanos,
    /// Most bytes of one pull request; 0 without limit.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_bytes: i64,
    /// Where it pushes to; a consumer without one is pulled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
    /// The queue group that it pushes to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_group: String,
    /// After which time of silence it says that it is there.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// After which time without use it goes; 0 never.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// How many servers keep it; 0 as many as its stream.
    pub num_replicas: i64,
    /// Its state is kept in memory.
    #[serde(skip_serializing_if = "is_false")]
    pub mem_storage: bool,
    /// It serves a mirror or source and is not counted or listed.
    #[serde(skip_serializing_if = "is_false")]
    pub direct: bool,
    /// It serves a mirror or source, and was made for it beforehand.
    #[serde(skip_serializing_if = "is_false")]
    pub sourcing: bool,
    /// Free labels. Those that begin with `_nats.` are the server's.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// It delivers nothing until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// The group that pull requests name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<String>,
    /// Which pull request is served.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_policy: PriorityPolicy,
    /// After which time without a request the pinned client loses its place.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub priority_timeout: Nanos,
    /// Most records of one subject that wait for an acknowledgement; 0 without limit. Fanline's own:
    /// with 1, each key is handled in order, and the keys side by side.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending_per_subject: i64,
    /// Subjects take turns, so that a busy one does not starve the others. Fanline's own.
    #[serde(skip_serializing_if = "is_false")]
    pub fair_subjects: bool,
}

impl ConsumerConfig {
    /// Whether it pushes.
    pub fn is_push(&self) -> bool {
        !self.deliver_subject.is_empty()
    }

    /// Whether it outlives its users.
    pub fn is_durable(&self) -> bool {
        !self.durable_name.is_empty()
    }

    /// The filters that it was given, whichever field they came in.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.filter_subject.as_str()).filter(|filter| !filter.is_empty());
        single
            .into_iter()
            .chain(self.filter_subjects.iter().map(String::as_str))
    }
}
