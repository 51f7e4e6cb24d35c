//! Limits and usage of an account.

use hashbrown::HashMap;

use super::streams::Key;
use super::{ApiError, Settings, Storage, StreamConfig};
use crate::limits::{AccountLimits, tier_name};

/// Limits of all accounts together; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size in bytes of all streams in memory together.
    pub memory_bytes_max: Option<u64>,
    /// Maximum size in bytes of all streams on disk together.
    pub storage_bytes_max: Option<u64>,
}

impl ServerLimits {
    /// Checks a stream's configuration against the limits. `others` are the reservations of all other
    /// streams.
    pub(super) fn check(self, config: &StreamConfig, others: Reserved) -> Result<(), ApiError> {
        let (max, reserved, exceeded) = match config.storage {
            Storage::Memory => (
                self.memory_bytes_max,
                others.memory,
                ApiError::MEMORY_RESOURCES_EXCEEDED,
            ),
            Storage::File => (
                self.storage_bytes_max,
                others.storage,
                ApiError::STORAGE_RESOURCES_EXCEEDED,
            ),
        };
        // A stream without `max_bytes` counts as one byte, so that it is refused when all space is reserved.
        let wanted = reserved.saturating_add(config.max_bytes.max(1));
        let is_exceeded = |max| u64::try_from(wanted).is_ok_and(|wanted| wanted > max);
        match max.is_some_and(is_exceeded) {
            true => Err(exceeded),
            false => Ok(()),
        }
    }
}

/// Size of each stream in bytes, and their sum. The sizes of other accounts are updated only in `settle`, so
/// the server's limit may be exceeded until then. The account's own limit is checked for each message.
#[derive(Debug, Default)]
pub(super) struct Usage {
    streams: HashMap<Key, (Storage, u64)>,
    memory: u64,
    storage: u64,
    elsewhere: Used,
}

/// Bytes in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) memory: u64,
    pub(super) storage: u64,
}

impl Used {
    pub(super) fn add(&mut self, other: Used) {
        self.memory += other.memory;
        self.storage += other.storage;
    }

    /// Returns the bytes in use that remain without `part`.
    pub(super) fn without(self, part: Used) -> Used {
        Used {
            memory: self.memory.saturating_sub(part.memory),
            storage: self.storage.saturating_sub(part.storage),
        }
    }
}

impl Usage {
    /// Returns the bytes that the streams of this account use.
    pub(super) fn used(&self) -> Used {
        Used {
            memory: self.memory,
            storage: self.storage,
        }
    }

    /// Sets the bytes that other accounts use.
    pub(super) fn set_elsewhere(&mut self, elsewhere: Used) {
        self.elsewhere = elsewhere;
    }

    /// Sets the bytes of a stream.
    pub(super) fn set(&mut self, key: Key, storage: Storage, bytes: u64) {
        let before = self.streams.insert(key, (storage, bytes));
        self.take(before);
        *self.of(storage) += bytes;
    }

    /// Removes a stream.
    pub(super) fn remove(&mut self, key: Key) {
        let before = self.streams.remove(&key);
        self.take(before);
    }

    /// Checks that the account has space for `bytes` more, and that the server's limit is not exceeded yet.
    pub(super) fn check(
        &self,
        storage: Storage,
        bytes: u64,
        settings: &Settings,
    ) -> Result<(), ApiError> {
        let (limits, server) = (&settings.limits, settings.server_limits);
        let (used, elsewhere, granted, max) = match storage {
            Storage::Memory => (
                self.memory,
                self.elsewhere.memory,
                limits.max_memory,
                server.memory_bytes_max,
            ),
            Storage::File => (
                self.storage,
                self.elsewhere.storage,
                limits.max_storage,
                server.storage_bytes_max,
            ),
        };
        // A negative number means no limit.
        if u64::try_from(granted).is_ok_and(|granted| used.saturating_add(bytes) > granted) {
            return Err(ApiError::ACCOUNT_RESOURCES_EXCEEDED);
        }
        match max.is_some_and(|max| used.saturating_add(elsewhere) > max) {
            true => Err(ApiError::INSUFFICIENT_RESOURCES),
            false => Ok(()),
        }
    }

    fn take(&mut self, entry: Option<(Storage, u64)>) {
        if let Some((storage, bytes)) = entry {
            let sum = self.of(storage);
            *sum = sum.saturating_sub(bytes);
        }
    }

    fn of(&mut self, storage: Storage) -> &mut u64 {
        match storage {
            Storage::Memory => &mut self.memory,
            Storage::File => &mut self.storage,
        }
    }
}

/// Bytes that the streams of an account reserve by their `max_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) memory: i64,
    pub(super) storage: i64,
}

impl Reserved {
    pub(super) fn join(&mut self, other: Reserved) {
        self.memory = self.memory.saturating_add(other.memory);
        self.storage = self.storage.saturating_add(other.storage);
    }

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
    /// Checks that the account has limits for streams with this number of replicas.
    pub(super) fn check_tier(&self, replicas: i64) -> Result<(), ApiError> {
        match self.tiers.is_empty() || self.tiers.contains_key(&tier_name(replicas)) {
            true => Ok(()),
            false => Err(ApiError::NO_LIMITS),
        }
    }

    /// Returns the limits to report as the account's own. They are zero if the account has limits by number
    /// of replicas.
    pub(super) fn shown(&self) -> Self {
        match self.tiers.is_empty() {
            true => self.clone(),
            false => AccountLimits::none(),
        }
    }

    /// Checks a stream's configuration against the limits. `others` are the reservations of other streams.
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
        if all >= 0 && reserved.saturating_add(config.max_bytes.max(1)) > all {
            return Err(exceeded);
        }
        Ok(())
    }

    /// Returns whether the account limits the bytes of this storage. If so, bytes are counted after each
    /// message.
    pub(super) fn bounds(&self, storage: Storage) -> bool {
        match storage {
            Storage::Memory => self.max_memory >= 0,
            Storage::File => self.max_storage >= 0,
        }
    }

    /// Returns the maximum number of consumers of a stream; `otherwise` applies if neither stream nor account
    /// sets it.
    pub(super) fn consumers_max(&self, config: &StreamConfig, otherwise: Option<i64>) -> usize {
        let limits = [config.max_consumers, self.max_consumers];
        let lowest = limits.into_iter().filter(|limit| *limit > 0).min();
        let lowest = lowest.or(otherwise);
        lowest.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_limits_count_reservations() {
        let limits = ServerLimits {
            memory_bytes_max: Some(1_000),
            storage_bytes_max: None,
        };
        let others = Reserved {
            memory: 600,
            storage: i64::MAX,
        };
        for (storage, max_bytes, expected) in [
            (Storage::Memory, 400, Ok(())),
            (Storage::Memory, -1, Ok(())),
            (
                Storage::Memory,
                401,
                Err(ApiError::MEMORY_RESOURCES_EXCEEDED),
            ),
            (Storage::File, i64::MAX, Ok(())),
        ] {
            let config = StreamConfig {
                storage,
                max_bytes,
                ..StreamConfig::default()
            };
            assert_eq!(limits.check(&config, others), expected, "{max_bytes}");
        }
        let all = Reserved {
            memory: 1_000,
            storage: 0,
        };
        let unbounded = StreamConfig {
            storage: Storage::Memory,
            max_bytes: -1,
            ..StreamConfig::default()
        };
        let full = Err(ApiError::MEMORY_RESOURCES_EXCEEDED);
        assert_eq!(limits.check(&unbounded, all), full);
    }

    #[test]
    fn usage_is_checked_against_account_and_server() {
        let mut settings = Settings {
            server_limits: ServerLimits {
                memory_bytes_max: Some(100),
                storage_bytes_max: None,
            },
            ..Settings::default()
        };
        let mut usage = Usage::default();
        usage.set(1, Storage::Memory, 60);
        usage.set(2, Storage::Memory, 40);
        usage.set(3, Storage::File, 1 << 40);
        assert_eq!(usage.check(Storage::Memory, 1, &settings), Ok(()));
        usage.set(1, Storage::Memory, 61);
        let full = Err(ApiError::INSUFFICIENT_RESOURCES);
        assert_eq!(usage.check(Storage::Memory, 1, &settings), full);
        assert_eq!(usage.check(Storage::File, 1, &settings), Ok(()));
        usage.remove(2);
        assert_eq!(usage.check(Storage::Memory, 1, &settings), Ok(()));
        usage.set_elsewhere(Used {
            memory: 40,
            storage: 0,
        });
        assert_eq!(usage.check(Storage::Memory, 1, &settings), full);
        settings.limits.max_storage = 1 << 40;
        let full = Err(ApiError::ACCOUNT_RESOURCES_EXCEEDED);
        assert_eq!(usage.check(Storage::File, 1, &settings), full);
        settings.limits.max_storage += 10;
        assert_eq!(usage.check(Storage::File, 10, &settings), Ok(()));
        assert_eq!(usage.check(Storage::File, 11, &settings), full);
    }
}
