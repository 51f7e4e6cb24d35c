//! Reads of keys.

use super::keys::check_key;
use super::{Entry, KeyValue, Operation, WatchOptions};
use crate::jetstream::{JetStreamError, StoredMessage, Wanted};

impl KeyValue {
    /// Returns a key's value, or `None` if the key has no value.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; and the [errors of every request](crate::jetstream).
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, JetStreamError> {
        let entry = self.last_entry(key).await?;
        Ok(entry.filter(|entry| entry.operation == Operation::Put))
    }

    /// Returns the entry of a key at a revision, or `None` if the key has no such revision.
    ///
    /// # Errors
    ///
    /// Those of [`get`](KeyValue::get).
    pub async fn get_revision(
        &self,
        key: &str,
        revision: u64,
    ) -> Result<Option<Entry>, JetStreamError> {
        check_key(key)?;
        let entry = self.read(&Wanted::Sequence(revision)).await?;
        Ok(entry.filter(|entry| entry.key == key && entry.operation == Operation::Put))
    }

    /// Returns the last entry of a key, which may be a deletion.
    pub(super) async fn last_entry(&self, key: &str) -> Result<Option<Entry>, JetStreamError> {
        check_key(key)?;
        let subject = format!("{}{key}", self.prefix);
        self.read(&Wanted::Last(subject)).await
    }

    /// Returns all stored entries of the keys that match, oldest first.
    ///
    /// # Errors
    ///
    /// Those of [`watch`](KeyValue::watch).
    pub async fn history(&self, filter: &str) -> Result<Vec<Entry>, JetStreamError> {
        let options = WatchOptions {
            with_history: true,
            ..Default::default()
        };
        self.collect(filter, options).await
    }

    /// Returns the last entry of each key that matches and has a value. With `meta_only`, the entries contain
    /// no values.
    ///
    /// # Errors
    ///
    /// Those of [`watch`](KeyValue::watch).
    pub async fn entries(
        &self,
        filter: &str,
        meta_only: bool,
    ) -> Result<Vec<Entry>, JetStreamError> {
        let options = WatchOptions {
            ignore_deletes: true,
            meta_only,
            ..Default::default()
        };
        self.collect(filter, options).await
    }

    async fn collect(
        &self,
        filter: &str,
        options: WatchOptions,
    ) -> Result<Vec<Entry>, JetStreamError> {
        let mut watch = self.watch(filter, options).await?;
        let mut entries = Vec::new();
        while let Some(entry) = watch.next().await? {
            entries.push(entry);
        }
        watch.close().await?;
        Ok(entries)
    }

    async fn read(&self, wanted: &Wanted) -> Result<Option<Entry>, JetStreamError> {
        let message: Result<StoredMessage, _> = match self.is_direct {
            true => self.jetstream.message_direct(&self.stream, wanted).await,
            false => self.jetstream.message(&self.stream, wanted).await,
        };
        match message {
            Ok(message) => Ok(Some(self.entry_of_stored(message))),
            Err(error) if error.is_message_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
