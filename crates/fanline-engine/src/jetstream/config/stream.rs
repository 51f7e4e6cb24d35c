//! The configuration of a stream.

use super::decode::{object_or_default, optional_object};
use serde::{Deserialize, Serialize};

use super::level::Metadata;
use crate::time::{Nanos, Timestamp};

/// Condition under which records are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// A limit is exceeded.
    #[default]
    Limits,
    /// A limit is exceeded, or no consumer with a matching filter still needs the record.
    Interest,
    /// A limit is exceeded, or the consumer with a matching filter has acknowledged the record.
    WorkQueue,
}

/// Action when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// The oldest record is removed.
    #[default]
    Old,
    /// The new record is refused.
    New,
}

/// Where records are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// On disk.
    #[default]
    File,
    /// In memory, until the server stops.
    Memory,
}

/// Compression of records on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Compression of each record. nats-server defines the name; the store chooses the algorithm.
    S2,
}

/// Whether an acknowledgement may be sent before its record is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersistMode {
    /// The acknowledgement is sent after the sync.
    #[default]
    #[serde(alias = "")]
    Default,
    /// The acknowledgement may be sent before the sync.
    Async,
}

/// Time at which records are synced to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Each record is synced before it is acknowledged. Records that wait at the same time share one sync.
    #[default]
    Commit,
    /// At regular intervals.
    Interval,
    /// When the operating system decides.
    None,
}

/// Servers of a cluster that may store a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// Name of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Tags that the server must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Preferred leader. It is not stored with the configuration.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred: String,
}

/// A subject transform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectTransform {
    /// Filter of the subjects to transform; empty means `>`.
    pub src: String,
    /// Destination of the transform.
    pub dest: String,
}

/// Location of an origin in another account or domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct External {
    /// API prefix of the origin, used instead of `$JS.API`.
    pub api: String,
    /// Prefix of the deliver subjects for the origin's records.
    pub deliver: String,
}

/// A consumer created in advance at the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceConsumer {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Deliver subject.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
}

/// The origin of a mirror or source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSource {
    /// Name of the origin.
    pub name: String,
    /// First sequence to copy; 0 means unset.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub opt_start_seq: u64,
    /// Time of the first record to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Filter of the subjects to copy; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the subjects to copy, with their transforms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
    /// Location of the origin, if it is in another account or domain.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub external: Option<External>,
    /// Consumer of the origin that was created in advance, if there is one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub consumer: Option<SourceConsumer>,
}

/// Republishing of stored records under another subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Republish {
    /// Filter of the records to republish; empty means `>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub src: String,
    /// Destination of the transform from `src` to the subject of the republished message.
    pub dest: String,
    /// Whether to omit the payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
}

/// Limits and defaults for the consumers of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerLimits {
    /// Maximum time without use before a consumer is deleted.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Maximum number of unacknowledged records.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending: i64,
}

/// A stream's configuration. Names, order, and defaults of the fields are nats-server's. A limit of -1 is
/// unlimited.
///
/// A configuration from a request may contain any values. That of an existing stream was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamConfig {
    /// Name.
    pub name: String,
    /// Description for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Filters of the subjects to store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Condition under which records are removed.
    pub retention: Retention,
    /// Maximum number of consumers.
    pub max_consumers: i64,
    /// Maximum number of records.
    pub max_msgs: i64,
    /// Maximum size of all records together in bytes.
    pub max_bytes: i64,
    /// Maximum age of a record; 0 is unlimited.
    pub max_age: Nanos,
    /// Maximum number of records of one subject.
    pub max_msgs_per_subject: i64,
    /// Maximum size of one record's headers and payload in bytes.
    pub max_msg_size: i32,
    /// Action when a limit is reached.
    pub discard: Discard,
    /// Where records are stored.
    pub storage: Storage,
    /// Number of servers that store the stream.
    pub num_replicas: i64,
    /// Whether publishes are not acknowledged.
    #[serde(skip_serializing_if = "is_false")]
    pub no_ack: bool,
    /// Time for which message ids (`Nats-Msg-Id`) are stored.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub duplicate_window: Nanos,
    /// Servers of a cluster that may store the stream.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub placement: Option<Placement>,
    /// Origin of the stream, if the stream is a mirror.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub mirror: Option<StreamSource>,
    /// Origins whose records are stored in addition to published ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<StreamSource>,
    /// Compression of records on disk.
    pub compression: Compression,
    /// Sequence of the first record; 0 means 1.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub first_seq: u64,
    /// Transform that is applied to subjects before records are stored.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub subject_transform: Option<SubjectTransform>,
    /// Republishing of stored records.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub republish: Option<Republish>,
    /// Whether records can be read with `DIRECT.GET`.
    pub allow_direct: bool,
    /// Whether a mirror answers `DIRECT.GET` for its origin.
    pub mirror_direct: bool,
    /// Whether, with `discard: new`, a record that exceeds the limit of its subject is also refused.
    #[serde(skip_serializing_if = "is_false")]
    pub discard_new_per_subject: bool,
    /// Whether records can neither be added nor removed.
    pub sealed: bool,
    /// Whether single records cannot be deleted.
    pub deny_delete: bool,
    /// Whether the stream cannot be purged.
    pub deny_purge: bool,
    /// Whether a publish may replace earlier records.
    pub allow_rollup_hdrs: bool,
    /// Limits and defaults for its consumers.
    #[serde(deserialize_with = "object_or_default")]
    pub consumer_limits: ConsumerLimits,
    /// Whether records may have their own time to live.
    pub allow_msg_ttl: bool,
    /// Time to live of the marker that is stored when a subject's last record expires; 0 disables markers.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub subject_delete_marker_ttl: Nanos,
    /// Whether records are counters: publishes contain increments, and the sum of each subject is stored.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_counter: bool,
    /// Whether publishes can be stored in atomic batches.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_atomic: bool,
    /// Whether publishes can be scheduled for later, once or repeatedly.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_schedules: bool,
    /// Whether an acknowledgement may be sent before its record is synced.
    #[serde(skip_serializing_if = "is_default")]
    pub persist_mode: PersistMode,
    /// Whether publishes can be sent in fast batches, which share acknowledgements.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_batched: bool,
    /// Time at which records are synced; the server's default if unset. A Fanline option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncMode>,
    /// Labels. The server sets those that begin with `_nats.`.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

pub(super) fn is_false(value: &bool) -> bool {
    !*value
}

pub(super) fn is_zero_u64(value: &u64) -> bool {
    *value == 0
}

pub(super) fn is_zero_i64(value: &i64) -> bool {
    *value == 0
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
