//! Writes of keys.

use std::time::Duration;

use bytes::Bytes;

use super::entry::OPERATION_HEADER;
use super::keys::check_key;
use super::{KeyValue, Operation};
use crate::jetstream::{JetStreamError, Purge};
use crate::{Headers, OutgoingMessage};

/// Header that contains the last sequence of the subject that the writer expects.
const EXPECTED_HEADER: &str = "Nats-Expected-Last-Subject-Sequence";
/// Header that makes the server remove earlier messages of the subject.
const ROLLUP_HEADER: &str = "Nats-Rollup";
/// Header that contains the maximum age of the message.
const TTL_HEADER: &str = "Nats-TTL";

impl KeyValue {
    /// Sets a key and returns the revision.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; and the errors of [a publish](crate::jetstream::JetStream::publish).
    pub async fn put(&self, key: &str, value: impl Into<Bytes>) -> Result<u64, JetStreamError> {
        self.write(key, value.into(), Headers::new()).await
    }

    /// Sets a key that has no value. With a TTL, the key is removed after that time.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::KeyExists`]; those of [`put`](KeyValue::put).
    pub async fn create(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        ttl: Option<Duration>,
    ) -> Result<u64, JetStreamError> {
        let value = value.into();
        let headers = |revision| -> Result<Headers, JetStreamError> {
            let mut headers = expecting(revision)?;
            append_ttl(&mut headers, ttl)?;
            Ok(headers)
        };
        match self.write(key, value.clone(), headers(0)?).await {
            Err(error) if error.is_wrong_last_sequence() => {}
            outcome => return outcome,
        }
        // The key has an entry, which is a value or the marker of a deletion.
        match self.last_entry(key).await? {
            Some(entry) if entry.operation == Operation::Put => Err(JetStreamError::KeyExists {
                key: key.to_owned(),
                revision: entry.revision,
            }),
            last => {
                let revision = last.map_or(0, |entry| entry.revision);
                self.write(key, value, headers(revision)?).await
            }
        }
    }

    /// Sets a key if its last revision is the given one. Otherwise fails.
    ///
    /// # Errors
    ///
    /// An error with [`is_wrong_last_sequence`](JetStreamError::is_wrong_last_sequence) if the last revision
    /// is another one; those of [`put`](KeyValue::put).
    pub async fn update(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        revision: u64,
    ) -> Result<u64, JetStreamError> {
        self.write(key, value.into(), expecting(revision)?).await
    }

    /// Deletes a key. Its history remains. With a revision, deletes it only if that is the key's last
    /// revision.
    ///
    /// # Errors
    ///
    /// Those of [`update`](KeyValue::update).
    pub async fn delete(&self, key: &str, revision: Option<u64>) -> Result<(), JetStreamError> {
        let mut headers = revision.map_or_else(|| Ok(Headers::new()), expecting)?;
        headers.append(OPERATION_HEADER, Operation::Delete.word())?;
        self.write(key, Bytes::new(), headers).await?;
        Ok(())
    }

    /// Deletes a key and its history. With a TTL, the marker of the deletion is removed after that time.
    ///
    /// # Errors
    ///
    /// Those of [`put`](KeyValue::put).
    pub async fn purge(&self, key: &str, ttl: Option<Duration>) -> Result<(), JetStreamError> {
        let mut headers = Headers::new();
        headers.append(OPERATION_HEADER, Operation::Purge.word())?;
        headers.append(ROLLUP_HEADER, "sub")?;
        append_ttl(&mut headers, ttl)?;
        self.write(key, Bytes::new(), headers).await?;
        Ok(())
    }

    /// Removes the markers and histories of deleted keys whose markers are older than `keep`. Returns the
    /// number of these keys.
    ///
    /// # Errors
    ///
    /// Those of [`history`](KeyValue::history); and the [errors of every request](crate::jetstream).
    pub async fn purge_deleted(
        &self,
        now_unix_nanos: i64,
        keep: Duration,
    ) -> Result<u64, JetStreamError> {
        let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
        let mut purged = 0;
        let entries = self.history(">").await?;
        let mut last = std::collections::HashMap::new();
        for entry in &entries {
            last.insert(entry.key.as_str(), entry);
        }
        for entry in last.values().filter(|e| e.operation != Operation::Put) {
            let is_young = entry.created.unix_nanos() > now_unix_nanos.saturating_sub(keep);
            let purge = Purge {
                filter: format!("{}{}", self.prefix, entry.key),
                // A recent marker remains.
                keep: is_young.then_some(1),
                seq: None,
            };
            self.jetstream.purge_stream(&self.stream, &purge).await?;
            purged += 1;
        }
        Ok(purged)
    }

    async fn write(
        &self,
        key: &str,
        payload: Bytes,
        headers: Headers,
    ) -> Result<u64, JetStreamError> {
        check_key(key)?;
        let message = OutgoingMessage {
            subject: format!("{}{key}", self.write_prefix),
            headers,
            payload,
            ..Default::default()
        };
        Ok(self.jetstream.publish_message(&message).await?.seq)
    }
}

fn expecting(revision: u64) -> Result<Headers, JetStreamError> {
    let mut headers = Headers::new();
    headers.append(EXPECTED_HEADER, &revision.to_string())?;
    Ok(headers)
}

fn append_ttl(headers: &mut Headers, ttl: Option<Duration>) -> Result<(), JetStreamError> {
    if let Some(ttl) = ttl {
        headers.append(TTL_HEADER, &format!("{}ms", ttl.as_millis()))?;
    }
    Ok(())
}
