//! Requests about streams: create, update, inspect, purge, and delete.

use std::collections::BTreeMap;

use crate::jetstream::StreamConfig;
use serde::{Deserialize, Serialize};

use super::info::{Kept, StreamInfo};
use super::names::endpoint;
use super::{JetStream, JetStreamError};

/// The messages that a purge removes; all by default.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Purge {
    /// Filter of the subjects; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter: String,
    /// Sequence before which messages are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Number of the last messages that are not removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
}

#[derive(Serialize)]
struct Page<'a> {
    offset: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    subject: &'a str,
}

#[derive(Deserialize)]
struct ListPage {
    total: u64,
    streams: Option<Vec<StreamInfo>>,
}

#[derive(Deserialize)]
struct NamesPage {
    total: u64,
    streams: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Purged {
    purged: u64,
}

#[derive(Serialize)]
struct SubjectsPage<'a> {
    offset: u64,
    subjects_filter: &'a str,
}

impl JetStream {
    /// Creates a stream. Does nothing if it exists with the same configuration.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when another stream stores one of the subjects; and the [errors
    /// of every request](crate::jetstream).
    pub async fn create_stream(
        &self,
        config: &Kept<StreamConfig>,
    ) -> Result<StreamInfo, JetStreamError> {
        let endpoint = endpoint("STREAM.CREATE", [config.name.as_str()])?;
        self.call_with(&endpoint, config).await
    }

    /// Updates a stream's configuration.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when a field cannot be changed; and the [errors of every
    /// request](crate::jetstream).
    pub async fn update_stream(
        &self,
        config: &Kept<StreamConfig>,
    ) -> Result<StreamInfo, JetStreamError> {
        let endpoint = endpoint("STREAM.UPDATE", [config.name.as_str()])?;
        self.call_with(&endpoint, config).await
    }

    /// Returns a stream's configuration and state.
    ///
    /// # Errors
    ///
    /// An error with [`is_stream_not_found`](JetStreamError::is_stream_not_found); and the [errors of every
    /// request](crate::jetstream).
    pub async fn stream_info(&self, stream: &str) -> Result<StreamInfo, JetStreamError> {
        self.call(&endpoint("STREAM.INFO", [stream])?).await
    }

    /// Returns the number of messages of each subject that matches the filter.
    ///
    /// # Errors
    ///
    /// Those of [`stream_info`](JetStream::stream_info).
    pub async fn stream_subjects(
        &self,
        stream: &str,
        filter: &str,
    ) -> Result<BTreeMap<String, u64>, JetStreamError> {
        let endpoint = endpoint("STREAM.INFO", [stream])?;
        let mut all = BTreeMap::new();
        loop {
            let page = SubjectsPage {
                offset: all.len() as u64,
                subjects_filter: filter,
            };
            let info: StreamInfo = self.call_with(&endpoint, &page).await?;
            let found = info.state.subjects.unwrap_or_default();
            let before = all.len();
            all.extend(found);
            // A page without new subjects is the last one, even if the server reports a larger total.
            let total = info.other.get("total").and_then(serde_json::Value::as_u64);
            if all.len() == before || total.is_none_or(|total| all.len() as u64 >= total) {
                return Ok(all);
            }
        }
    }

    /// Returns the sequences of deleted messages between the first and the last message.
    ///
    /// # Errors
    ///
    /// Those of [`stream_info`](JetStream::stream_info).
    pub async fn stream_deleted(&self, stream: &str) -> Result<Vec<u64>, JetStreamError> {
        let endpoint = endpoint("STREAM.INFO", [stream])?;
        let body = serde_json::json!({ "deleted_details": true });
        let mut info: StreamInfo = self.call_with(&endpoint, &body).await?;
        let deleted = info.state.other.remove("deleted").unwrap_or_default();
        let deleted: Option<Vec<u64>> =
            serde_json::from_value(deleted).map_err(JetStreamError::unexpected)?;
        Ok(deleted.unwrap_or_default())
    }

    /// Returns the streams that store at least one subject matching the filter. An empty filter matches all
    /// streams.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn streams(&self, filter: &str) -> Result<Vec<StreamInfo>, JetStreamError> {
        let mut all = Vec::new();
        loop {
            let body = Page {
                offset: all.len() as u64,
                subject: filter,
            };
            let page: ListPage = self.call_with("STREAM.LIST", &body).await?;
            let found = page.streams.unwrap_or_default();
            let is_last = found.is_empty();
            all.extend(found);
            if is_last || all.len() as u64 >= page.total {
                return Ok(all);
            }
        }
    }

    /// Returns the names of the streams that [`streams`](JetStream::streams) returns.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn stream_names(&self, filter: &str) -> Result<Vec<String>, JetStreamError> {
        let mut all = Vec::new();
        loop {
            let body = Page {
                offset: all.len() as u64,
                subject: filter,
            };
            let page: NamesPage = self.call_with("STREAM.NAMES", &body).await?;
            let found = page.streams.unwrap_or_default();
            let is_last = found.is_empty();
            all.extend(found);
            if is_last || all.len() as u64 >= page.total {
                return Ok(all);
            }
        }
    }

    /// Removes messages and returns their number.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when the stream cannot be purged; and the [errors of every
    /// request](crate::jetstream).
    pub async fn purge_stream(&self, stream: &str, purge: &Purge) -> Result<u64, JetStreamError> {
        let endpoint = endpoint("STREAM.PURGE", [stream])?;
        let purged: Purged = self.call_with(&endpoint, purge).await?;
        Ok(purged.purged)
    }

    /// Deletes a stream and its messages.
    ///
    /// # Errors
    ///
    /// An error with [`is_stream_not_found`](JetStreamError::is_stream_not_found); and the [errors of every
    /// request](crate::jetstream).
    pub async fn delete_stream(&self, stream: &str) -> Result<(), JetStreamError> {
        let _: serde_json::Value = self.call(&endpoint("STREAM.DELETE", [stream])?).await?;
        Ok(())
    }
}
