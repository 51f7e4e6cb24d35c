//! JetStream fields that `/varz` and `/jsz` share.

use std::time::Duration;

use fanline_engine::jetstream::{AccountOverview, ApiStats, Nanos, Overview};
use fanline_engine::store::SyncMode;
use serde::Serialize;

use crate::jetstream;
use crate::options::JetStreamOptions;

/// The JetStream configuration. Without JetStream, only the first two fields are present, with value 0.
#[derive(Default, Serialize)]
pub(super) struct Config {
    max_memory: u64,
    max_storage: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    store_dir: Option<String>,
    /// Interval of syncs in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    sync_interval: Option<u128>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sync_always: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    /// Whether streams may be compressed. nats-server reports this if the configuration limits both memory
    /// and file storage.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    compress_ok: bool,
}

/// nats-server's default of `sync_interval`. nats-server reports it even if `sync_always` is set.
const SYNC_INTERVAL: Duration = Duration::from_secs(120);

/// nats-server's number for "unlimited".
const UNLIMITED: i64 = -1;

/// Resources of all streams together.
#[derive(Serialize)]
pub(super) struct Stats {
    memory: u64,
    storage: u64,
    reserved_memory: u64,
    reserved_storage: u64,
    accounts: u64,
    // Number of replicated streams and consumers. Always 0 without a cluster.
    ha_assets: u64,
    api: ApiStats,
}

/// Limits of each stream and consumer; durations are in nanoseconds.
#[derive(Serialize)]
pub(super) struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_request_batch: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ack_pending: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_duplicate_window: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch_inflight_per_stream: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch_inflight_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch_timeout: Option<u128>,
    default_max_consumers: i64,
}

impl Limits {
    pub(super) fn of(options: &JetStreamOptions) -> Self {
        let limits = &options.asset_limits;
        let batches = &limits.batches;
        Limits {
            max_request_batch: limits.request_batch_max,
            max_ack_pending: limits.ack_pending_max,
            max_duplicate_window: limits.duplicate_window_max,
            max_batch_inflight_per_stream: batches.open_per_stream_max,
            max_batch_inflight_total: batches.open_max,
            max_batch_size: batches.messages_max,
            max_batch_timeout: batches.idle_max.map(|timeout| timeout.as_nanos()),
            default_max_consumers: limits.consumers_default.unwrap_or(UNLIMITED),
        }
    }
}

impl Config {
    pub(super) fn of(options: &JetStreamOptions, overview: &Overview) -> Self {
        // A missing limit is reported as the highest number that every reader can represent.
        let limit = |max: Option<u64>| max.unwrap_or(i64::MAX.unsigned_abs());
        let folder = options
            .store_dir
            .as_deref()
            .map(jetstream::store_folder::reported);
        Config {
            max_memory: limit(overview.limits.memory_bytes_max),
            max_storage: limit(overview.limits.storage_bytes_max),
            store_dir: folder.map(|path| path.display().to_string()),
            sync_interval: match options.sync {
                SyncMode::Interval(every) => Some(every.as_nanos()),
                SyncMode::Commit => Some(SYNC_INTERVAL.as_nanos()),
                SyncMode::None => None,
            },
            sync_always: options.sync == SyncMode::Commit,
            domain: options.domain.clone(),
            strict: options.strict,
            compress_ok: options.memory_bytes_max.is_some() && options.file_bytes_max.is_some(),
        }
    }
}

impl Stats {
    pub(super) fn of(overview: &Overview) -> Self {
        let unsigned = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        Stats {
            memory: overview.memory,
            storage: overview.storage,
            reserved_memory: unsigned(overview.reserved_memory),
            reserved_storage: unsigned(overview.reserved_storage),
            accounts: overview.accounts,
            ha_assets: 0,
            api: overview.api,
        }
    }

    /// Returns the values if JetStream is off.
    pub(super) fn none() -> Self {
        Stats {
            api: ApiStats {
                level: 0,
                total: 0,
                errors: 0,
            },
            ..Stats::of(&Overview::default())
        }
    }

    /// Returns the values of one account. The reported reservation is the account's limit.
    pub(super) fn of_account(account: &AccountOverview) -> Self {
        let AccountOverview {
            limits, overview, ..
        } = account;
        // As in nats-server, a missing limit (-1) is converted to an unsigned number without a check, and is
        // shown as 2^64 - 1. An account with limits per tier has no limits of its own.
        let reserved = |limit: i64| match limits.tiers.is_empty() {
            true => u64::from_ne_bytes(limit.to_ne_bytes()),
            false => 0,
        };
        Stats {
            reserved_memory: reserved(limits.max_memory),
            reserved_storage: reserved(limits.max_storage),
            api: ApiStats {
                level: 0,
                ..overview.api
            },
            ..Stats::of(overview)
        }
    }
}
