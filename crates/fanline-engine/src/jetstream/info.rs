//! What a stream and an account tell of themselves, in the shape in which it is sent.

use std::collections::BTreeMap;

use serde::Serialize;

use super::stream::{SourceStatus, Stream};
use super::{API_LEVEL, Now, StreamConfig, Timestamp};
use crate::limits::AccountLimits;
use crate::store::StoreState;

/// A stream, in a reply.
#[derive(Clone, Debug, Serialize)]
pub struct StreamInfo {
    /// What it was asked to be.
    pub config: StreamConfig,
    /// When it was made.
    pub created: Timestamp,
    /// What it holds.
    pub state: StateInfo,
    /// The domain of the server, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// How far it has copied its origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<SourceStatus>,
    /// How far it has copied its sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
    /// The time of this.
    pub ts: Timestamp,
}

/// What a stream holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateInfo {
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
    #[serde(skip_serializing_if = "is_zero")]
    pub num_subjects: u64,
    /// How many records each of the subjects has that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<BTreeMap<String, u64>>,
    /// Records that were deleted from between others.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_deleted: u64,
    /// Their sequences, when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Vec<u64>>,
    /// What the disk has lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostInfo>,
    /// Its consumers.
    pub consumer_count: u64,
}

/// What the disk has lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostInfo {
    /// Sequences; not known for a damaged record, and so empty.
    pub msgs: Vec<u64>,
    /// How many records.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who holds a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterInfo {
    /// The server.
    pub leader: String,
}

/// An account, in a reply.
#[derive(Clone, Debug, Serialize)]
pub struct AccountInfo {
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Bytes that streams in memory have set aside.
    pub reserved_memory: i64,
    /// Bytes that streams on disk have set aside.
    pub reserved_storage: i64,
    /// Streams.
    pub streams: u64,
    /// Consumers of all streams.
    pub consumers: u64,
    /// What it may use.
    pub limits: AccountLimits,
    /// The domain of the server, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// How the API is used.
    pub api: ApiStats,
    /// Use and limits by the number of replicas, if the account has such limits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, TierInfo>,
}

/// What an account uses and may use of streams with one number of replicas, in a reply.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "as in AccountInfo")]
pub struct TierInfo {
    pub memory: u64,
    pub storage: u64,
    pub reserved_memory: i64,
    pub reserved_storage: i64,
    pub streams: u64,
    pub consumers: u64,
    pub limits: AccountLimits,
}

/// How the API is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ApiStats {
    /// The level that the server speaks.
    pub level: u8,
    /// Requests so far.
    pub total: u64,
    /// Those that failed.
    pub errors: u64,
}

impl Default for ApiStats {
    fn default() -> Self {
        ApiStats {
            level: API_LEVEL,
            total: 0,
            errors: 0,
        }
    }
}

impl StreamInfo {
    /// What a stream tells of itself.
    pub(super) fn of(stream: &mut Stream, domain: Option<&str>, now: Now) -> StreamInfo {
        let config = stream.config().clone();
        let mut origins = stream.source_status(now);
        let mirror = config.mirror.is_some().then(|| origins.pop()).flatten();
        StreamInfo {
            created: Timestamp::from_unix_nanos(stream.created()),
            state: StateInfo::of(stream),
            domain: domain.map(str::to_owned),
            cluster: None,
            mirror,
            sources: origins,
            ts: Timestamp::from_unix_nanos(now.unix_nanos),
            config,
        }
    }
}

impl StateInfo {
    pub(super) fn of(stream: &mut Stream) -> StateInfo {
        let consumers = stream
            .consumers()
            .iter()
            .filter(|(_, c)| !c.config().direct);
        let consumer_count = consumers.count() as u64;
        let state: StoreState = stream.state();
        let time = |nanos: Option<i64>| nanos.map_or(Timestamp::ZERO, Timestamp::from_unix_nanos);
        let is_lost = state.lost.messages > 0 || state.lost.bytes > 0;
        StateInfo {
            messages: state.messages,
            bytes: state.bytes,
            // A stream that never held anything has no first record, unless it was told where to begin.
            first_seq: match state.last_sequence {
                0 => stream.config().first_seq,
                _ => state.first_sequence,
            },
            first_ts: time(state.first_unix_nanos),
            last_seq: state.last_sequence,
            last_ts: time(state.last_unix_nanos),
            num_subjects: state.subjects,
            subjects: None,
            num_deleted: state.deleted,
            deleted: None,
            lost: is_lost.then(|| LostInfo {
                msgs: Vec::new(),
                messages: state.lost.messages,
                bytes: state.lost.bytes,
            }),
            consumer_count,
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
