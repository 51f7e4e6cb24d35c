//! Storage of each stream: a log and documents, in memory or in its own folder.

use std::time::Duration;

use super::account::JetStream;
use super::{ApiError, Compression, PersistMode, StreamConfig, SyncMode as Asked};
use crate::store::documents::{Documents, Found};
use crate::store::{self, FileOptions, Recovery, Store, StoreLimits, SyncMode};

/// Interval between syncs of a stream with `sync: interval`, unless the server configures one.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(120);

/// Storage of one stream.
pub(super) struct StreamParts {
    pub(super) store: Store,
    /// Documents in the stream's folder; `None` for a stream without one.
    pub(super) documents: Option<Documents>,
}

impl JetStream {
    /// Creates the storage of a new stream.
    pub(super) fn create_parts(&mut self, config: &StreamConfig) -> Result<StreamParts, ApiError> {
        if !config.is_in_folder() {
            return Ok(StreamParts {
                store: Store::memory(&StoreLimits::default()),
                documents: None,
            });
        }
        // Removes the remains of an earlier stream of this name after a crash.
        self.remove_folder(config)?;
        let (parts, _, _) = self.open_parts(config)?;
        Ok(parts)
    }

    /// Opens the storage in a folder. Also returns its documents and the problems found in its log.
    pub(super) fn open_parts(
        &mut self,
        config: &StreamConfig,
    ) -> Result<(StreamParts, Found, Recovery), ApiError> {
        let options = FileOptions {
            mode: self.sync_mode(config),
            compression: match config.compression {
                Compression::None => store::Compression::None,
                Compression::S2 => store::Compression::Lz4,
            },
            key: self.key_of(&config.name),
            seed: self.random.number(),
            segment_bytes: match cfg!(test) {
                true => 4 << 10,
                false => FileOptions::default().segment_bytes,
            },
        };
        let (documents, found) = self.open_documents(&config.name)?;
        let folders = self.folders.as_mut();
        let folders = folders.ok_or(ApiError::INSUFFICIENT_RESOURCES)?;
        let disk = folders
            .open(&config.name)
            .map_err(ApiError::stream_create)?;
        let (store, recovery) = Store::file(disk, &options, &StoreLimits::default())
            .map_err(ApiError::stream_create)?;
        let parts = StreamParts {
            store,
            documents: Some(documents),
        };
        Ok((parts, found, recovery))
    }

    /// Opens the documents of a folder, without its log.
    pub(super) fn open_documents(&mut self, name: &str) -> Result<(Documents, Found), ApiError> {
        let seed = self.random.number();
        let folders = self.folders.as_mut();
        let folders = folders.ok_or(ApiError::INSUFFICIENT_RESOURCES)?;
        let disk = folders.open(name).map_err(ApiError::stream_create)?;
        let key = self.key_of(name);
        Documents::open_encrypted(disk, key.as_ref(), seed).map_err(ApiError::stream_create)
    }

    /// Returns the key that encrypts a stream's files.
    fn key_of(&self, stream: &str) -> Option<store::Key> {
        let key = self.settings.key.as_ref();
        key.map(|key| key.of_stream(&self.settings.account, stream))
    }

    /// Returns the sync mode of a stream's log: its own, or that of the server.
    pub(super) fn sync_mode(&self, config: &StreamConfig) -> SyncMode {
        let interval = match self.settings.sync {
            SyncMode::Interval(interval) => interval,
            SyncMode::Commit | SyncMode::None => INTERVAL_DEFAULT,
        };
        if config.is_replicated() {
            // Each answer waits until a majority has what was written before it, so it need not wait for the log, too.
            return SyncMode::None;
        }
        match config.sync {
            Some(Asked::Commit) => SyncMode::Commit,
            Some(Asked::Interval) => SyncMode::Interval(interval),
            Some(Asked::None) => SyncMode::None,
            // With `persist_mode: async`, acknowledgements may be sent before the sync.
            None if config.persist_mode == PersistMode::Async => SyncMode::Interval(interval),
            None => self.settings.sync,
        }
    }
}
