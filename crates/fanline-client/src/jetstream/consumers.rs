//! Requests about consumers: create, update, inspect, pause, and delete.

use crate::jetstream::{ConsumerConfig, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::info::{ConsumerInfo, Kept};
use super::names::endpoint;
use super::{JetStream, JetStreamError};

/// The action of [`create_consumer`](JetStream::create_consumer) if the consumer exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsumerAction {
    /// Creates the consumer, or updates it if it exists.
    #[default]
    #[serde(rename = "")]
    CreateOrUpdate,
    /// Fails if the consumer exists with another configuration.
    Create,
    /// Fails if the consumer does not exist.
    Update,
}

#[derive(Serialize)]
struct CreateRequest<'a> {
    stream_name: &'a str,
    config: &'a Kept<ConsumerConfig>,
    action: ConsumerAction,
}

#[derive(Deserialize)]
struct ListPage {
    total: u64,
    consumers: Option<Vec<ConsumerInfo>>,
}

/// The pause state of a consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PauseInfo {
    /// Whether the consumer is paused now.
    #[serde(default)]
    pub paused: bool,
    /// End of the pause.
    #[serde(default)]
    pub pause_until: Option<Timestamp>,
}

impl JetStream {
    /// Creates or updates a consumer.
    ///
    /// If the configuration has no name, the server chooses one, and removes the consumer when it is no
    /// longer used.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example for an invalid field; and the [errors of every
    /// request](crate::jetstream).
    pub async fn create_consumer(
        &self,
        stream: &str,
        config: &Kept<ConsumerConfig>,
        action: ConsumerAction,
    ) -> Result<ConsumerInfo, JetStreamError> {
        let name = match config.name.is_empty() {
            true => &config.durable_name,
            false => &config.name,
        };
        // A single filter becomes a part of the request's subject, so that permissions can cover it. A filter
        // with a wildcard cannot become a part of it, because the subject of a publish must not contain
        // wildcards.
        let filter = Some(config.filter_subject.as_str()).filter(|filter| {
            !name.is_empty() && !filter.is_empty() && !filter.contains(['*', '>'])
        });
        let endpoint = match name.is_empty() {
            true => endpoint("CONSUMER.CREATE", [stream])?,
            false => endpoint("CONSUMER.CREATE", [stream, name.as_str()])?,
        };
        let endpoint = match filter {
            Some(filter) => format!("{endpoint}.{filter}"),
            None => endpoint,
        };
        let request = CreateRequest {
            stream_name: stream,
            config,
            action,
        };
        self.call_with(&endpoint, &request).await
    }

    /// Returns a consumer's configuration and state.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the stream or the consumer does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn consumer_info(
        &self,
        stream: &str,
        consumer: &str,
    ) -> Result<ConsumerInfo, JetStreamError> {
        self.call(&endpoint("CONSUMER.INFO", [stream, consumer])?)
            .await
    }

    /// Returns all consumers of a stream.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the stream does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn consumers(&self, stream: &str) -> Result<Vec<ConsumerInfo>, JetStreamError> {
        let endpoint = endpoint("CONSUMER.LIST", [stream])?;
        let mut all = Vec::new();
        loop {
            let body = json!({ "offset": all.len() });
            let page: ListPage = self.call_with(&endpoint, &body).await?;
            let found = page.consumers.unwrap_or_default();
            let is_last = found.is_empty();
            all.extend(found);
            if is_last || all.len() as u64 >= page.total {
                return Ok(all);
            }
        }
    }

    /// Deletes a consumer.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the stream or the consumer does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn delete_consumer(
        &self,
        stream: &str,
        consumer: &str,
    ) -> Result<(), JetStreamError> {
        let _: Value = self
            .call(&endpoint("CONSUMER.DELETE", [stream, consumer])?)
            .await?;
        Ok(())
    }

    /// Pauses a consumer until the given time. Without a time, resumes the consumer.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the stream or the consumer does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn pause_consumer(
        &self,
        stream: &str,
        consumer: &str,
        until: Option<Timestamp>,
    ) -> Result<PauseInfo, JetStreamError> {
        let endpoint = endpoint("CONSUMER.PAUSE", [stream, consumer])?;
        match until {
            Some(until) => {
                let body = json!({ "pause_until": until });
                self.call_with(&endpoint, &body).await
            }
            None => self.call(&endpoint).await,
        }
    }

    /// Resets a consumer to its start, or to a sequence.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when its policy does not allow the sequence; and the [errors of
    /// every request](crate::jetstream).
    pub async fn reset_consumer(
        &self,
        stream: &str,
        consumer: &str,
        sequence: Option<u64>,
    ) -> Result<ConsumerInfo, JetStreamError> {
        let endpoint = endpoint("CONSUMER.RESET", [stream, consumer])?;
        match sequence {
            Some(seq) => self.call_with(&endpoint, &json!({ "seq": seq })).await,
            None => self.call(&endpoint).await,
        }
    }

    /// Unpins the client of a priority group (ends its exclusive use of the consumer), so that another client
    /// can take over.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the group does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn unpin_consumer(
        &self,
        stream: &str,
        consumer: &str,
        group: &str,
    ) -> Result<(), JetStreamError> {
        let endpoint = endpoint("CONSUMER.UNPIN", [stream, consumer])?;
        let _: Value = self
            .call_with(&endpoint, &json!({ "group": group }))
            .await?;
        Ok(())
    }
}
