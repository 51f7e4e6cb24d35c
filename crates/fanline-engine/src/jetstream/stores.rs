//! A log and documents for each stream: in memory, or in a folder of its own.

use std::time::Duration;

use super::account::JetStream;
use super::{ApiError, Compression, PersistMode, Storage, StreamConfig, SyncMode as Asked};
use crate::store::documents::{Documents, Found};
use crate::store::{self, FileOptions, Recovery, Store, StoreLimits, SyncMode};

/// How often records of a stream with `sync: interval` are brought to the disk, if the server does not
/// say.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(120);

/// Where a stream is kept.
pub(super) struct Home {
    pub(super) store: Store,
    /// What is kept beside its records; a stream in memory has none.
    pub(super) documents: Option<Documents>,
}

impl JetStream {
    /// A place for a new stream.
    pub(super) fn make_home(&mut self, config: &StreamConfig) -> Result<Home, ApiError> {
        if config.storage == Storage::Memory {
            return Ok(Home {
                store: Store::memory(&StoreLimits::default()),
                documents: None,
            });
        }
        // What a crash has left of another stream of this name is not this one's.
        self.remove_folder(config)?;
        let (home, _, _) = self.open_home(config)?;
        Ok(home)
    }

    /// The place of a folder, what its documents say, and what was wrong with its log.
    pub(super) fn open_home(
        &mut self,
        config: &StreamConfig,
    ) -> Result<(Home, Found, Recovery), ApiError> {
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
        let home = Home {
            store,
            documents: Some(documents),
        };
        Ok((home, found, recovery))
    }

    /// The documents of a folder and what they say, without its log.
    pub(super) fn open_documents(&mut self, name: &str) -> Result<(Documents, Found), ApiError> {
        let seed = self.random.number();
        let folders = self.folders.as_mut();
        let folders = folders.ok_or(ApiError::INSUFFICIENT_RESOURCES)?;
        let disk = folders.open(name).map_err(ApiError::stream_create)?;
        let key = self.key_of(name);
        Documents::open_sealed(disk, key.as_ref(), seed).map_err(ApiError::stream_create)
    }

    /// The key that a stream's files are sealed with.
    fn key_of(&self, stream: &str) -> Option<store::Key> {
        let key = self.settings.key.as_ref();
        key.map(|key| key.of_stream(&self.settings.account, stream))
    }

    /// When the records of a stream are brought to the disk.
    pub(super) fn sync_mode(&self, config: &StreamConfig) -> SyncMode {
        let interval = match self.settings.sync {
            SyncMode::Interval(interval) => interval,
            SyncMode::Commit | SyncMode::None => INTERVAL_DEFAULT,
        };
        match config.sync {
            Some(Asked::Commit) => SyncMode::Commit,
            Some(Asked::Interval) => SyncMode::Interval(interval),
            Some(Asked::None) => SyncMode::None,
            // An acknowledgement may come first: so it was asked for.
            None if config.persist_mode == PersistMode::Async => SyncMode::Interval(interval),
            None => self.settings.sync,
        }
    }
}
