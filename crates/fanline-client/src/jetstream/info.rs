//! Information that servers return about accounts, streams, and consumers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConsumerConfig, External, StreamConfig, Timestamp};

/// JSON fields that this version of the client does not know.
pub type Other = Map<String, Value>;

/// A configuration, with the JSON fields that this version of the client does not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept<T> {
    /// Known fields.
    #[serde(flatten)]
    pub known: T,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

impl<T> From<T> for Kept<T> {
    fn from(known: T) -> Self {
        Kept {
            known,
            other: Other::new(),
        }
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.known
    }
}

/// The configuration and state of a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Configuration.
    pub config: Kept<StreamConfig>,
    /// Time at which the stream was created.
    pub created: Timestamp,
    /// State.
    pub state: StreamState,
    /// Servers that store the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// Progress of a mirror in copying its origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<OriginInfo>,
    /// Progress of copying each source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<OriginInfo>,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamState {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes of all messages.
    pub bytes: u64,
    /// Sequence of the first message.
    pub first_seq: u64,
    /// Time at which the first message was stored.
    pub first_ts: Timestamp,
    /// Sequence of the newest message that was ever stored, even if it was removed.
    pub last_seq: u64,
    /// Time at which the last message was stored.
    pub last_ts: Timestamp,
    /// Number of distinct subjects.
    pub num_subjects: u64,
    /// Number of messages per subject, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<BTreeMap<String, u64>>,
    /// Number of deleted messages between the first and the last sequence.
    pub num_deleted: u64,
    /// Messages that a failure of the disk destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Number of consumers.
    pub consumer_count: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// Messages that a failure of the disk destroyed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lost {
    /// Sequences of the lost messages, as far as they are known.
    pub msgs: Option<Vec<u64>>,
    /// Number of lost messages, if the server counts them.
    pub messages: u64,
    /// Number of bytes of the lost messages.
    pub bytes: u64,
}

/// The servers that store a stream or consumer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterInfo {
    /// Name of the leader.
    pub leader: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// The progress of a mirror or source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginInfo {
    /// Name of the origin.
    pub name: String,
    /// Account or domain of the origin, if it differs from that of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Number of messages yet to be copied.
    pub lag: u64,
    /// Nanoseconds since the last contact with the origin; -1 if there was none.
    pub active: i64,
    /// Error that the origin returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// An error of the JetStream API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// Kind of the error, as an HTTP status.
    pub code: u16,
    /// Number of the error, for programs.
    pub err_code: u16,
    /// Description of the error, for people.
    pub description: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.description, self.err_code)
    }
}

/// The configuration and state of a consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsumerInfo {
    /// Name of the stream.
    pub stream_name: String,
    /// Name of the consumer.
    pub name: String,
    /// Time at which the consumer was created.
    pub created: Timestamp,
    /// Configuration.
    pub config: Kept<ConsumerConfig>,
    /// Position of the last delivery.
    #[serde(default)]
    pub delivered: Position,
    /// Position up to which everything is acknowledged.
    #[serde(default)]
    pub ack_floor: Position,
    /// Number of unacknowledged messages.
    #[serde(default)]
    pub num_ack_pending: u64,
    /// Number of unacknowledged messages that were delivered more than once.
    #[serde(default)]
    pub num_redelivered: u64,
    /// Number of waiting pull requests.
    #[serde(default)]
    pub num_waiting: u64,
    /// Number of messages yet to be delivered.
    #[serde(default)]
    pub num_pending: u64,
    /// Whether the consumer is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Nanoseconds until the pause ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_remaining: Option<i64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// A position of a consumer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Position {
    /// Number of deliveries by the consumer.
    pub consumer_seq: u64,
    /// Sequence in the stream.
    pub stream_seq: u64,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Timestamp>,
}

/// The usage and limits of an account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountInfo {
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Number of streams.
    pub streams: u64,
    /// Number of consumers.
    pub consumers: u64,
    /// Domain of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Use of the JetStream API.
    pub api: ApiUse,
    /// Limits of the account.
    pub limits: AccountLimits,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// The use of the JetStream API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiUse {
    /// API level of the server.
    pub level: u64,
    /// Number of requests.
    pub total: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

/// The limits of an account; -1 means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountLimits {
    /// Maximum number of bytes of streams in memory.
    pub max_memory: i64,
    /// Maximum number of bytes of streams on disk.
    pub max_storage: i64,
    /// Maximum number of streams.
    pub max_streams: i64,
    /// Maximum number of consumers.
    pub max_consumers: i64,
    /// Unknown fields.
    #[serde(flatten)]
    pub other: Other,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_preserved() {
        let newer = json!({ "name": "S", "max_msgs": 7, "from_the_future": { "a": [1] } });
        let mut config: Kept<StreamConfig> = serde_json::from_value(newer).expect("readable");
        assert_eq!((config.name.as_str(), config.max_msgs), ("S", 7));
        config.max_msgs = 8;
        let written = serde_json::to_value(&config).expect("writable");
        assert_eq!(written["from_the_future"], json!({ "a": [1] }));
        assert_eq!(written["max_msgs"], 8);
    }
}
