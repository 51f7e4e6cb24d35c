//! JetStream limits of one account.

use std::collections::BTreeMap;

use serde::Serialize;

/// JetStream limits of an account; -1 is unlimited. 0 is unlimited too, except for the bytes of all streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountLimits {
    /// Largest total size of all memory streams in bytes.
    pub max_memory: i64,
    /// Largest total size of all file streams in bytes.
    pub max_storage: i64,
    /// Number of streams.
    pub max_streams: i64,
    /// Consumers per stream.
    pub max_consumers: i64,
    /// Unacknowledged messages per consumer.
    pub max_ack_pending: i64,
    /// Bytes per memory stream.
    pub memory_max_stream_bytes: i64,
    /// Bytes per file stream.
    pub storage_max_stream_bytes: i64,
    /// Whether each stream must have a limit in bytes.
    pub max_bytes_required: bool,
    /// Limits by number of replicas, with keys such as `R1` and `R3`. If the map is not empty, the fields
    /// above contain the limits of `R1`.
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
    /// Returns limits that allow no storage.
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

    /// Returns limits by the number of replicas. A standalone server has streams with one replica only.
    pub(crate) fn tiered(tiers: BTreeMap<String, AccountLimits>) -> Self {
        let limits = tiers.get(&tier_name(1)).cloned();
        AccountLimits {
            tiers,
            ..limits.unwrap_or_else(AccountLimits::none)
        }
    }
}

/// Returns the name of the limits for streams with this number of replicas.
pub(crate) fn tier_name(replicas: i64) -> String {
    // If the number of replicas is not set, a stream has one replica.
    format!("R{}", if replicas == 0 { 1 } else { replicas })
}
