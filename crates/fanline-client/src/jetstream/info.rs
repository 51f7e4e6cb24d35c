//! What servers tell of accounts, streams and consumers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConsumerConfig, External, StreamConfig, Timestamp};

/// Fields that this version does not know.
pub type Other = Map<String, Value>;

/// A configuration together with the fields that this version does not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept<T> {
    /// What is known.
    #[serde(flatten)]
    pub known: T,
    /// What is not.
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

/// A stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamInfo {
    /// What it was asked to be.
    pub config: Kept<StreamConfig>,
    /// When it was made.
    pub created: Timestamp,
    /// What it holds.
    pub state: StreamState,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// How far it has copied its origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<OriginInfo>,
    /// How far it has copied its sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<OriginInfo>,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// What a stream holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamState {
    /// Records.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sequence of the first.
    pub first_seq: u64,
    /// Its time.
    pub first_ts: Timestamp,
    /// Sequence of the last that there ever was.
    pub last_seq: u64,
    /// Its time.
    pub last_ts: Timestamp,
    /// Distinct subjects.
    pub num_subjects: u64,
    /// Records per subject, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<BTreeMap<String, u64>>,
    /// Records that were deleted from between others.
    pub num_deleted: u64,
    /// What the disk has lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Consumers.
    pub consumer_count: u64,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// What the disk has lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lost {
    /// Sequences, as far as they are known.
    pub msgs: Option<Vec<u64>>,
    /// How many records, when the server counts them.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who holds a stream or a consumer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterInfo {
    /// The server that leads.
    pub leader: String,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// How far a mirror or a source has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginInfo {
    /// The origin.
    pub name: String,
    /// Where it is, if it is in another domain or account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Records that are still to come.
    pub lag: u64,
    /// Nanoseconds since it was last heard of; -1 for never.
    pub active: i64,
    /// Why nothing comes, if the origin said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// What else there is.
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

/// A consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsumerInfo {
    /// Its stream.
    pub stream_name: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// What it was asked to be.
    pub config: Kept<ConsumerConfig>,
    /// How far it has delivered.
    #[serde(default)]
    pub delivered: Position,
    /// Up to where everything is acknowledged.
    #[serde(default)]
    pub ack_floor: Position,
    /// Records that wait for an acknowledgement.
    #[serde(default)]
    pub num_ack_pending: u64,
    /// Those of them that were delivered more than once.
    #[serde(default)]
    pub num_redelivered: u64,
    /// Pull requests that wait.
    #[serde(default)]
    pub num_waiting: u64,
    /// Records that are still to be delivered.
    #[serde(default)]
    pub num_pending: u64,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// For how many nanoseconds more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_remaining: Option<i64>,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// How far a consumer has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Position {
    /// Deliveries.
    pub consumer_seq: u64,
    /// The stream's sequence.
    pub stream_seq: u64,
    /// When it last moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Timestamp>,
}

/// What an account uses and may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountInfo {
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Streams.
    pub streams: u64,
    /// Consumers of all streams.
    pub consumers: u64,
    /// The server's domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// How the API is used.
    pub api: ApiUse,
    /// What the account may use.
    pub limits: AccountLimits,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// How the API is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiUse {
    /// The level that the server speaks.
    pub level: u64,
    /// Requests so far.
    pub total: u64,
    /// Those that failed.
    pub errors: u64,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

/// What an account may use; -1 is without limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountLimits {
    /// Bytes of streams in memory.
    pub max_memory: i64,
    /// Bytes of streams on disk.
    pub max_storage: i64,
    /// Streams.
    pub max_streams: i64,
    /// Consumers.
    pub max_consumers: i64,
    /// What else there is.
    #[serde(flatten)]
    pub other: Other,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_kept() {
        let newer = json!({ "name": "S", "max_msgs": 7, "from_the_future": { "a": [1] } });
        let mut config: Kept<StreamConfig> = serde_json::from_value(newer).expect("readable");
        assert_eq!((config.name.as_str(), config.max_msgs), ("S", 7));
        config.max_msgs = 8;
        let written = serde_json::to_value(&config).expect("writable");
        assert_eq!(written["from_the_future"], json!({ "a": [1] }));
        assert_eq!(written["max_msgs"], 8);
    }
}
