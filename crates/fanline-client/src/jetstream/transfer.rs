//! Backups of whole streams, out and back in, in the server's own format.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::names::endpoint;
use super::{JetStream, JetStreamError, StreamInfo, StreamState, read};
use crate::{ClientError, Subscription};

/// Bytes of a piece.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;

/// A stream on its way out.
pub struct Backup {
    jetstream: JetStream,
    pieces: Subscription,
    description: Value,
    state: StreamState,
}

#[derive(Deserialize)]
struct Begun {
    state: StreamState,
}

/// A stream on its way back in.
pub struct Restore {
    jetstream: JetStream,
    topic: String,
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
    /// Asks for all that a stream holds, its consumers too if wanted. With `check`, the server looks
    /// at every record before.
    ///
    /// # Errors
    ///
    /// The API's, for instance that there is no such stream; those of a request.
    pub async fn backup(
        &self,
        stream: &str,
        with_consumers: bool,
        check: bool,
    ) -> Result<Backup, JetStreamError> {
        let inbox = self.client.new_inbox();
        let pieces = self.client.subscribe(&inbox).await?;
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
            pieces,
            description,
            state: begun.state,
        })
    }

    /// Brings a stream back that was [backed up](JetStream::backup), as the description says.
    ///
    /// # Errors
    ///
    /// The API's, for instance that there is a stream of the name; those of a request.
    pub async fn restore(
        &self,
        stream: &str,
        description: &Value,
    ) -> Result<Restore, JetStreamError> {
        let endpoint = endpoint("STREAM.RESTORE", [stream])?;
        let reply: RestoreReply = self.call_with(&endpoint, description).await?;
        Ok(Restore {
            jetstream: self.clone(),
            topic: reply.deliver_subject,
        })
    }
}

impl Backup {
    /// Configuration and state, to be handed to [`JetStream::restore`].
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// What the stream holds.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    ///
    /// When the server gives up, or the connection is gone.
    pub async fn next(&mut self) -> Result<Option<Bytes>, JetStreamError> {
        let piece = timeout(self.jetstream.timeout, self.pieces.next()).await;
        let Some(piece) = piece.map_err(|_| ClientError::TimedOut)? else {
            let reason = self.jetstream.client.closed().await;
            return Err(ClientError::Disconnected(reason).into());
        };
        match piece.status() {
            Some(200..300) | None => {}
            Some(_) => return Err(JetStreamError::Ended(piece.status_text().to_owned())),
        }
        // Makes room for more.
        if let Some(reply) = piece.reply() {
            self.jetstream.client.publish(reply, Bytes::new()).await?;
        }
        let payload = piece.payload_bytes();
        Ok((!payload.is_empty()).then_some(payload))
    }
}

impl Restore {
    /// Bytes of a piece that every server takes.
    pub const PIECE_BYTES: usize = CHUNK_BYTES;

    /// Sends the next piece, which is not empty.
    ///
    /// # Errors
    ///
    /// What the server finds wrong with it; those of a request.
    pub async fn send(&self, piece: Bytes) -> Result<(), JetStreamError> {
        let JetStream {
            client, timeout, ..
        } = &self.jetstream;
        let answer = client.request(&self.topic, piece, *timeout).await?;
        if answer.payload().is_empty() {
            return Ok(());
        }
        let _: Value = read(answer.payload())?;
        Ok(())
    }

    /// Says that all pieces are there, and waits for the stream.
    ///
    /// # Errors
    ///
    /// What the server finds wrong with them; those of a request.
    pub async fn finish(self) -> Result<StreamInfo, JetStreamError> {
        let JetStream {
            client, timeout, ..
        } = &self.jetstream;
        let answer = client.request(&self.topic, Bytes::new(), *timeout).await?;
        read(answer.payload())
    }
}
