//! Limits of the streams of one account.

use std::collections::BTreeMap;

use serde::Serialize;

/// What an account may use; -1 is no limit. 0 is none either, but for bytes of all streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountLimits {
    /// Bytes of all streams in memory.
    pub max_memory: i64,
    /// Bytes of all streams on disk.
    pub max_storage: i64,
    /// Streams.
    pub max_streams: i64,
    /// Consumers of one stream.
    pub max_consumers: i64,
    /// Records of one consumer that wait for an acknowledgement.
    pub max_ack_pending: i64,
    /// Bytes of one stream in memory.
    pub memory_max_stream_bytes: i64,
    /// Bytes of one stream on disk.
    pub storage_max_stream_bytes: i64,
    /// Every stream must have a limit of bytes.
    pub max_bytes_required: bool,
    /// The limits by the number of replicas, `R1` or `R3`, of an account that has no others. The limits
    /// above are then those of `R1`.
    #[serde(skip)]
    pub tiers: BTreeMap<String, AccountLimits>,
}

impl Default for AccountLimits {
    fn default() -> Self {
        AccountLimits {
            max_memory: -1,
            max_storage: -1,
            max_streams: -1,
            max_consumers: -1,
            max_ack_pending: -1,
            memory_max_stream_bytes: -1,
            storage_max_stream_bytes: -1,
            max_bytes_required: false,
            tiers: BTreeMap::new(),
        }
    }
}

impl AccountLimits {
    /// Limits that allow nothing to be stored.
    pub(crate) fn none() -> Self {
        AccountLimits {
            max_memory: 0,
            max_storage: 0,
            max_streams: 0,
            max_consumers: 0,
            max_ack_pending: 0,
            memory_max_stream_bytes: 0,
            storage_max_stream_bytes: 0,
            max_bytes_required: false,
            tiers: BTreeMap::new(),
        }
    }

    /// Limits by the number of replicas. A server alone has streams of one replica only.
    pub(crate) fn tiered(tiers: BTreeMap<String, AccountLimits>) -> Self {
        let limits = tiers.get(&tier_name(1)).cloned();
        AccountLimits {
            tiers,
            ..limits.unwrap_or_else(AccountLimits::none)
        }
    }
}

/// The name of the limits of streams with so many replicas.
pub(crate) fn tier_name(replicas: i64) -> String {
    // A stream that names none has one.
    format!("R{}", if replicas == 0 { 1 } else { replicas })
}
