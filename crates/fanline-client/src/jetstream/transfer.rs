//! Backup and restore of streams, in the server's format.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::names::endpoint;
use super::{JetStream, JetStreamError, StreamInfo, StreamState, read};
use crate::{ClientError, Subscription};

/// Number of bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;

/// A backup in progress: this client receives the stream's chunks.
pub struct Backup {
    jetstream: JetStream,
    chunks: Subscription,
    description: Value,
    state: StreamState,
}

#[derive(Deserialize)]
struct Begun {
    state: StreamState,
}

/// A restore in progress: this client sends the stream's chunks.
pub struct Restore {
    jetstream: JetStream,
    subject: String,
}

#[derive(Deserialize)]
struct RestoreReply {
    deliver_subject: String,
}

#[derive(Serialize)]
struct SnapshotRequest<'a> {
    deliver_subject: &'a str,
    no_consumers: bool,
    chunk_size: usize,
    jsck: bool,
}

impl JetStream {
    /// Starts a backup of a stream, with or without its consumers.
    ///
    /// With `check`, the server first verifies every message.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when the stream does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn backup(
        &self,
        stream: &str,
        with_consumers: bool,
        check: bool,
    ) -> Result<Backup, JetStreamError> {
        let inbox = self.client.new_inbox();
        let chunks = self.client.subscribe(&inbox).await?;
        let request = SnapshotRequest {
            deliver_subject: &inbox,
            no_consumers: !with_consumers,
            chunk_size: CHUNK_BYTES,
            jsck: check,
        };
        let endpoint = endpoint("STREAM.SNAPSHOT", [stream])?;
        let reply: Value = self.call_with(&endpoint, &request).await?;
        let description = json!({ "config": reply.get("config"), "state": reply.get("state") });
        let begun: Begun = serde_json::from_value(reply).map_err(JetStreamError::unexpected)?;
        Ok(Backup {
            jetstream: self.clone(),
            chunks,
            description,
            state: begun.state,
        })
    }

    /// Starts to restore a stream from a [backup](JetStream::backup) and its description.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when the stream exists; and the [errors of every
    /// request](crate::jetstream).
    pub async fn restore(
        &self,
        stream: &str,
        description: &Value,
    ) -> Result<Restore, JetStreamError> {
        let endpoint = endpoint("STREAM.RESTORE", [stream])?;
        let reply: RestoreReply = self.call_with(&endpoint, description).await?;
        Ok(Restore {
            jetstream: self.clone(),
            subject: reply.deliver_subject,
        })
    }
}

impl Backup {
    /// Returns the configuration and state of the stream, which [`JetStream::restore`] needs.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// Returns the state of the stream.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// Returns the next chunk, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// When the server ends the backup or the connection is closed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, JetStreamError> {
        let chunk = timeout(self.jetstream.timeout, self.chunks.next()).await;
        let Some(chunk) = chunk.map_err(|_| ClientError::TimedOut)? else {
            let reason = self.jetstream.client.closed().await;
            return Err(ClientError::Disconnected(reason).into());
        };
        match chunk.status() {
            Some(200..300) | None => {}
            Some(_) => return Err(JetStreamError::Ended(chunk.status_text().to_owned())),
        }
        // The acknowledgement allows the server to send more chunks.
        if let Some(reply) = chunk.reply() {
            self.jetstream.client.publish(reply, Bytes::new()).await?;
        }
        let payload = chunk.payload_bytes();
        Ok((!payload.is_empty()).then_some(payload))
    }
}

impl Restore {
    /// Size in bytes of a chunk that every server accepts.
    pub const PIECE_BYTES: usize = CHUNK_BYTES;

    /// Sends the next chunk, which must not be empty.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the server rejects the chunk; and the [errors of every
    /// request](crate::jetstream).
    pub async fn send(&self, chunk: Bytes) -> Result<(), JetStreamError> {
        let JetStream {
            client, timeout, ..
        } = &self.jetstream;
        let answer = client.request(&self.subject, chunk, *timeout).await?;
        if answer.payload().is_empty() {
            return Ok(());
        }
        let _: Value = read(answer.payload())?;
        Ok(())
    }

    /// Ends the restore, and waits until the server has created the stream.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`] when the server rejects the backup; and the [errors of every
    /// request](crate::jetstream).
    pub async fn finish(self) -> Result<StreamInfo, JetStreamError> {
        let JetStream {
            client, timeout, ..
        } = &self.jetstream;
        let answer = client
            .request(&self.subject, Bytes::new(), *timeout)
            .await?;
        read(answer.payload())
    }
}
