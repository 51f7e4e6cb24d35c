//! The configuration of a stream.

use serde::{Deserialize, Deserializer, Serialize};

use super::values::{Metadata, Nanos, Timestamp};

/// The rule by which a stream may remove a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// The stream may remove a message when a limit is reached.
    #[default]
    Limits,
    /// The stream may remove a message when every consumer has acknowledged it, or when no consumer matches
    /// it.
    Interest,
    /// The stream may remove a message when its only consumer has acknowledged it.
    WorkQueue,
}

/// The message that a stream drops when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// The oldest message.
    #[default]
    Old,
    /// The new message. The publish fails.
    New,
}

/// The place where a stream stores messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// On disk.
    #[default]
    File,
    /// In memory, until the server stops.
    Memory,
}

/// The compression of a stream's messages on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Compression. The name is that of nats-server; the server chooses the method.
    S2,
}

/// Whether a stream may acknowledge a message before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersistMode {
    /// The stream acknowledges only written messages.
    #[default]
    #[serde(alias = "")]
    Default,
    /// The stream may acknowledge a message before it is written.
    Async,
}

/// The time at which a stream syncs written messages to disk. Specific to Fanline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Before the stream acknowledges the messages. Pending acknowledgements share one sync.
    #[default]
    Commit,
    /// At a fixed interval.
    Interval,
    /// When the operating system decides.
    None,
}

/// The servers of a cluster that may store a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// Name of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Tags that a server must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Name of the server that should become the leader. Servers never return this field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred: String,
}

/// A rule that rewrites subjects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectTransform {
    /// Filter of the subjects to which the rule applies; empty means `>`.
    pub src: String,
    /// Subject that replaces the original one.
    pub dest: String,
}

/// The location of a stream in another account or domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct External {
    /// Prefix of the subjects of its JetStream API, in place of `$JS.API`.
    pub api: String,
    /// Prefix of the subjects to which its messages are delivered.
    pub deliver: String,
}

/// The consumer through which a mirror or source reads its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceConsumer {
    /// Name of the consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Subject to which the consumer delivers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
}

/// The origin of a mirror or a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSource {
    /// Name of the origin.
    pub name: String,
    /// First sequence to copy; 0 means not set.
    #[serde(skip_serializing_if = "is_default")]
    pub opt_start_seq: u64,
    /// Time of the first message to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// Filter of the subjects to copy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the subjects to copy, and the subjects under which to store the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
    /// Account or domain of the origin, if it differs from that of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Existing consumer through which to read the origin, if one was created for this purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<SourceConsumer>,
}

/// A rule that publishes stored messages again with another subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Republish {
    /// Filter of the messages to publish; empty means `>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub src: String,
    /// Subject to which to publish.
    pub dest: String,
    /// Whether to leave out the payload.
    #[serde(skip_serializing_if = "is_default")]
    pub headers_only: bool,
}

/// Limits, and default values, for the consumers of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerLimits {
    /// Maximum time without use after which a consumer is removed.
    #[serde(skip_serializing_if = "is_default")]
    pub inactive_threshold: Nanos,
    /// Maximum number of unacknowledged messages.
    #[serde(skip_serializing_if = "is_default")]
    pub max_ack_pending: i64,
}

/// The configuration of a stream, with nats-server's field names and defaults. -1 means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamConfig {
    /// Name of the stream.
    pub name: String,
    /// Description for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Filters of the subjects that the stream stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Rule by which a message may be removed.
    pub retention: Retention,
    /// Maximum number of consumers.
    pub max_consumers: i64,
    /// Maximum number of messages.
    pub max_msgs: i64,
    /// Maximum number of bytes.
    pub max_bytes: i64,
    /// Maximum age of a message; 0 means no limit.
    pub max_age: Nanos,
    /// Maximum number of messages with the same subject.
    pub max_msgs_per_subject: i64,
    /// Maximum number of header and payload bytes of a message.
    pub max_msg_size: i32,
    /// Message that is dropped when a limit is reached.
    pub discard: Discard,
    /// Place where messages are stored.
    pub storage: Storage,
    /// Number of servers that store the stream.
    pub num_replicas: i64,
    /// Whether the stream does not acknowledge publishes.
    #[serde(skip_serializing_if = "is_default")]
    pub no_ack: bool,
    /// Time for which the server remembers a `Nats-Msg-Id`.
    #[serde(skip_serializing_if = "is_default")]
    pub duplicate_window: Nanos,
    /// Servers of a cluster that may store the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Stream that this one is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<StreamSource>,
    /// Streams whose messages are copied into this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<StreamSource>,
    /// Compression of messages on disk.
    pub compression: Compression,
    /// Sequence of the first message; 0 means 1.
    #[serde(skip_serializing_if = "is_default")]
    pub first_seq: u64,
    /// Rule that rewrites subjects before messages are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_transform: Option<SubjectTransform>,
    /// Rule that publishes stored messages again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub republish: Option<Republish>,
    /// Whether messages can be read with `DIRECT.GET`.
    pub allow_direct: bool,
    /// Whether a mirror responds to `DIRECT.GET` requests for its origin.
    pub mirror_direct: bool,
    /// Whether `discard: new` also applies to the limit per subject.
    #[serde(skip_serializing_if = "is_default")]
    pub discard_new_per_subject: bool,
    /// Whether messages can no longer be added or removed.
    pub sealed: bool,
    /// Whether single messages cannot be deleted.
    pub deny_delete: bool,
    /// Whether the stream cannot be purged.
    pub deny_purge: bool,
    /// Whether a publish with the header `Nats-Rollup` can replace earlier messages.
    pub allow_rollup_hdrs: bool,
    /// Limits of the stream's consumers.
    #[serde(deserialize_with = "null_as_default")]
    pub consumer_limits: ConsumerLimits,
    /// Whether a message can have a maximum age of its own.
    pub allow_msg_ttl: bool,
    /// Maximum age of the marker that replaces the last message of a subject; 0 means no marker.
    #[serde(skip_serializing_if = "is_default")]
    pub subject_delete_marker_ttl: Nanos,
    /// Whether messages are counters that add up per subject.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_msg_counter: bool,
    /// Whether a batch of publishes can be stored completely or not at all.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_atomic: bool,
    /// Whether publishes can be delayed and repeated.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_msg_schedules: bool,
    /// Whether a message may be acknowledged before it is written.
    #[serde(skip_serializing_if = "is_default")]
    pub persist_mode: PersistMode,
    /// Whether one acknowledgement can cover several publishes.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_batched: bool,
    /// Time at which written messages are synced to disk. If it is not set, the server's default applies.
    /// Specific to Fanline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncMode>,
    /// Labels. Those that start with `_nats.` belong to the server.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// Returns whether a field has its default value, so that it can be left out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes a value. `null` becomes the default value.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
