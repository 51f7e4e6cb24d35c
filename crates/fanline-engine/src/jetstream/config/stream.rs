//! What a stream is asked to be.

use super::decode::{object_or_default, optional_object};
use serde::{Deserialize, Serialize};

use super::level::Metadata;
use crate::time::{Nanos, Timestamp};

/// When a record may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// When a limit says so.
    #[default]
    Limits,
    /// When every consumer has acknowledged it, or none wants it.
    Interest,
    /// When its one consumer has acknowledged it.
    WorkQueue,
}

/// Which record gives way when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// The oldest.
    #[default]
    Old,
    /// The new one: the publish is refused.
    New,
}

/// Where records are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// On disk.
    #[default]
    File,
    /// In memory, until the server stops.
    Memory,
}

/// How records are packed on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// Compressed. The name is nats-server's; which method packs them is the log's affair.
    S2,
}

/// Whether an acknowledgement may come before the record is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersistMode {
    /// It may not.
    #[default]
    #[serde(alias = "")]
    Default,
    /// It may.
    Async,
}

/// When what is written is forced to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Before it is acknowledged; all that wait share one sync.
    #[default]
    Commit,
    /// From time to time.
    Interval,
    /// When the operating system likes.
    None,
}

/// Which servers of a cluster may hold a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// The cluster's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// What the server must be labelled with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Which server should lead; never part of a configuration.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred: String,
}

/// A subject that is rewritten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectTransform {
    /// What it applies to; empty stands for `>`.
    pub src: String,
    /// What becomes of it.
    pub dest: String,
}

/// A stream of another account or domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct External {
    /// Prefix of its API, in the place of `$JS.API`.
    pub api: String,
    /// Prefix of the subjects on which its records are delivered.
    pub deliver: String,
}

/// A consumer that was made on the origin beforehand, to read it by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceConsumer {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where it delivers to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
}

/// Where a mirror or a source takes its records from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSource {
    /// The origin's name.
    pub name: String,
    /// First sequence to take; 0 is none.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub opt_start_seq: u64,
    /// Time from which to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Which subjects to take.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Which subjects to take, and what to make of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
    /// Set when the origin is elsewhere.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub external: Option<External>,
    /// Set when the origin has a consumer for this.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub consumer: Option<SourceConsumer>,
}

/// Records are published once more under another subject, once stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Republish {
    /// Which records; empty stands for `>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub src: String,
    /// Under which subject.
    pub dest: String,
    /// Without their payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
}

/// Bounds, and values where none is given, for the consumers of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerLimits {
    /// Longest time without use.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Most records that wait for an acknowledgement.
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub max_ack_pending: i64,
}

/// A stream's configuration. Fields are nats-server's by name, order and default; a limit of -1 is none.
///
/// As read from a request it holds whatever was asked for. What a stream runs on has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamConfig {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Filters of what it stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// When a record may go.
    pub retention: Retention,
    /// Most consumers.
    pub max_consumers: i64,
    /// Most records.
    pub max_msgs: i64,
    /// Most bytes.
    pub max_bytes: i64,
    /// How old a record becomes; 0 for ever.
    pub max_age: Nanos,
    /// Most records of one subject.
    pub max_msgs_per_subject: i64,
    /// Most bytes of one record's headers and payload.
    pub max_msg_size: i32,
    /// Which record gives way.
    pub discard: Discard,
    /// Where records are kept.
    pub storage: Storage,
    /// How many servers keep them.
    pub num_replicas: i64,
    /// Publishes are not acknowledged.
    #[serde(skip_serializing_if = "is_false")]
    pub no_ack: bool,
    /// How long a `Nats-Msg-Id` is remembered.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub duplicate_window: Nanos,
    /// Where in a cluster.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub placement: Option<Placement>,
    /// The one stream that this is a copy of.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub mirror: Option<StreamSource>,
    /// Streams whose records come in beside what is published.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<StreamSource>,
    /// How records are packed on disk.
    pub compression: Compression,
    /// Sequence of the first record; 0 as 1.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub first_seq: u64,
    /// What becomes of a subject before it is stored.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub subject_transform: Option<SubjectTransform>,
    /// What is published once more.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub republish: Option<Republish>,
    /// Records can be read with `DIRECT.GET`.
    pub allow_direct: bool,
    /// A mirror answers `DIRECT.GET` for its origin.
    pub mirror_direct: bool,
    /// With `discard: new`, the limit per subject refuses too.
    #[serde(skip_serializing_if = "is_false")]
    pub discard_new_per_subject: bool,
    /// Nothing is added or removed any more.
    pub sealed: bool,
    /// Single records cannot be deleted.
    pub deny_delete: bool,
    /// It cannot be purged.
    pub deny_purge: bool,
    /// A publish may replace what came before it.
    pub allow_rollup_hdrs: bool,
    /// Bounds of its consumers.
    #[serde(deserialize_with = "object_or_default")]
    pub consumer_limits: ConsumerLimits,
    /// A record may say how long it lives.
    pub allow_msg_ttl: bool,
    /// How long a marker lives that is left when a subject's last record goes; 0 leaves none.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub subject_delete_marker_ttl: Nanos,
    /// Records add up, per subject.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_counter: bool,
    /// Publishes can be stored all or none.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_atomic: bool,
    /// Publishes can be delayed and repeated.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_schedules: bool,
    /// Whether an acknowledgement may come before the record is written.
    #[serde(skip_serializing_if = "is_default")]
    pub persist_mode: PersistMode,
    /// Publishes can be acknowledged many at a time.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_batched: bool,
    /// When what is written is forced to disk; as the server does it when not set. Fanline's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncMode>,
    /// Free labels. Those that begin with `_nats.` are the server's.
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
