//! Descriptions of streams and accounts in wire format.

use std::collections::BTreeMap;

use serde::Serialize;

use super::group::ClusterInfo;
use super::stream::{SourceStatus, Stream};
use super::{API_LEVEL, Now, StreamConfig, Timestamp};
use crate::limits::AccountLimits;
use crate::store::StoreState;

/// Description of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamInfo {
    /// Configuration.
    pub config: StreamConfig,
    /// Time of its creation.
    pub created: Timestamp,
    /// State.
    pub state: StateInfo,
    /// Domain of the server, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Servers of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// Progress of copying its origin, for a mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<SourceStatus>,
    /// Progress of copying its sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
    /// Time of this description.
    pub ts: Timestamp,
}

/// State of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateInfo {
    /// Number of records.
    pub messages: u64,
    /// Bytes of all records.
    pub bytes: u64,
    /// Sequence of the first record.
    pub first_seq: u64,
    /// Time of the first record.
    pub first_ts: Timestamp,
    /// The highest sequence ever assigned.
    pub last_seq: u64,
    /// Time of the newest record.
    pub last_ts: Timestamp,
    /// Number of distinct subjects.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_subjects: u64,
    /// Number of records of each requested subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<BTreeMap<String, u64>>,
    /// Number of deleted records between the first and the last.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_deleted: u64,
    /// Deleted sequences, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Vec<u64>>,
    /// Records lost on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostInfo>,
    /// Number of consumers.
    pub consumer_count: u64,
}

/// Records lost on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostInfo {
    /// Sequences; empty because a damaged record's sequence is unknown.
    pub msgs: Vec<u64>,
    /// Number of records.
    pub messages: u64,
    /// Bytes of the records.
    pub bytes: u64,
}

/// Description of an account.
#[derive(Clone, Debug, Serialize)]
pub struct AccountInfo {
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Bytes reserved by streams in memory.
    pub reserved_memory: i64,
    /// Bytes reserved by streams on disk.
    pub reserved_storage: i64,
    /// Number of streams.
    pub streams: u64,
    /// Number of consumers of all streams.
    pub consumers: u64,
    /// Limits of the account.
    pub limits: AccountLimits,
    /// Domain of the server, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Statistics of the API.
    pub api: ApiStats,
    /// Usage and limits by number of replicas, if the account has such limits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, TierInfo>,
}

/// Usage and limits of streams with one number of replicas.
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

/// Statistics of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ApiStats {
    /// API level of the server.
    pub level: u8,
    /// Number of requests so far.
    pub total: u64,
    /// Number of failed requests.
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
    /// Returns the description of a stream.
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
            // A stream that never held a record has no first sequence, unless one is configured.
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
