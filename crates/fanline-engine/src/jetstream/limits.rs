//! What an account may use, and what it does use.

use serde::Serialize;

use super::{ApiError, Storage, StreamConfig};

/// What an account may use; -1 is no limit.
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
        }
    }
}

/// What the streams of an account have set aside by their limits of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) memory: i64,
    pub(super) storage: i64,
}

impl Reserved {
    pub(super) fn add(&mut self, config: &StreamConfig) {
        let bytes = config.max_bytes.max(0);
        let sum = match config.storage {
            Storage::Memory => &mut self.memory,
            Storage::File => &mut self.storage,
        };
        *sum = sum.saturating_add(bytes);
    }
}

impl AccountLimits {
    /// Whether a stream of this configuration may be, beside others that have reserved so much.
    pub(super) fn check(&self, config: &StreamConfig, others: Reserved) -> Result<(), ApiError> {
        if self.max_bytes_required && config.max_bytes <= 0 {
            return Err(ApiError::STREAM_MAX_BYTES_REQUIRED);
        }
        let (each, all, reserved, exceeded) = match config.storage {
            Storage::Memory => (
                self.memory_max_stream_bytes,
                self.max_memory,
                others.memory,
                ApiError::MEMORY_RESOURCES_EXCEEDED,
            ),
            Storage::File => (
                self.storage_max_stream_bytes,
                self.max_storage,
                others.storage,
                ApiError::STORAGE_RESOURCES_EXCEEDED,
            ),
        };
        if each > 0 && config.max_bytes > each {
            return Err(ApiError::STREAM_MAX_STREAM_BYTES_EXCEEDED);
        }
        if all >= 0 && reserved.saturating_add(config.max_bytes.max(0)) > all {
            return Err(exceeded);
        }
        Ok(())
    }

    /// The most consumers that a stream may have.
    pub(super) fn consumers_max(&self, config: &StreamConfig) -> usize {
        let limits = [config.max_consumers, self.max_consumers];
        let lowest = limits.into_iter().filter(|limit| *limit > 0).min();
        lowest.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        })
    }
}
