//! Writes and deletions of objects.

use crate::jetstream::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use bytes::{Bytes, BytesMut};
use ring::digest::{Context, SHA256};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{DIGEST_PREFIX, ObjectInfo, ObjectMeta, ObjectStore};
use crate::jetstream::{JetStreamError, json};
use crate::{Headers, OutgoingMessage, random_name};

/// Default number of bytes of a chunk.
const CHUNK_BYTES: u32 = 128 * 1024;
/// Maximum number of unacknowledged chunks.
const CHUNKS_IN_FLIGHT_MAX: usize = 64;

impl ObjectStore {
    /// Stores an object. It replaces an existing object of the same name.
    ///
    /// # Errors
    ///
    /// Errors of the reader; and the errors of [a publish](crate::jetstream::JetStream::publish). After an
    /// error, chunks that were already stored are removed.
    pub async fn put(
        &self,
        meta: ObjectMeta,
        source: &mut (impl AsyncRead + Unpin),
    ) -> Result<ObjectInfo, JetStreamError> {
        if meta.name.is_empty() {
            return Err(JetStreamError::invalid_name("object", "", "it is empty"));
        }
        let before = self.info_or_none(&meta.name).await?;
        let mut info = ObjectInfo {
            bucket: self.bucket.clone(),
            nuid: random_name(),
            meta,
            ..Default::default()
        };
        let outcome = match self.put_chunks(&mut info, source).await {
            Ok(()) => self.describe(&mut info).await,
            error => error,
        };
        if let Err(error) = outcome {
            // No description refers to these chunks. If their removal fails too, the caller still gets the
            // first error.
            let _ = self.purge_chunks(&info.nuid).await;
            return Err(error);
        }
        if let Some(before) = before.filter(|before| before.size > 0 && !before.deleted) {
            self.purge_chunks(&before.nuid).await?;
        }
        Ok(info)
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`]; and the [errors of every request](crate::jetstream).
    pub async fn delete(&self, name: &str) -> Result<(), JetStreamError> {
        let mut info = self.info(name).await?;
        info.deleted = true;
        info.size = 0;
        info.chunks = 0;
        info.digest.clear();
        self.describe(&mut info).await?;
        self.purge_chunks(&info.nuid).await
    }

    async fn put_chunks(
        &self,
        info: &mut ObjectInfo,
        source: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), JetStreamError> {
        let options = info.meta.options.get_or_insert_default();
        let chunk_bytes = *options.max_chunk_size.get_or_insert(CHUNK_BYTES);
        let chunk_bytes = usize::try_from(chunk_bytes.max(1)).unwrap_or(usize::MAX);
        let subject = self.chunks_subject(&info.nuid);
        let mut publisher = self.jetstream.publisher(CHUNKS_IN_FLIGHT_MAX).await?;
        let mut digest = Context::new(&SHA256);
        loop {
            let payload = read_chunk(source, chunk_bytes).await?;
            if payload.is_empty() {
                break;
            }
            digest.update(&payload);
            info.size += payload.len() as u64;
            info.chunks += 1;
            let message = OutgoingMessage {
                subject: subject.clone(),
                payload,
                ..Default::default()
            };
            publisher.publish(message).await?;
        }
        publisher.finish().await?;
        let digest = digest.finish();
        info.digest = format!("{DIGEST_PREFIX}{}", URL_SAFE.encode(digest));
        Ok(())
    }

    /// Stores the description of an object, which replaces the previous one.
    pub(super) async fn describe(&self, info: &mut ObjectInfo) -> Result<(), JetStreamError> {
        info.mtime = now();
        let mut headers = Headers::new();
        headers.append("Nats-Rollup", "sub")?;
        let message = OutgoingMessage {
            subject: self.meta_subject(&info.meta.name),
            headers,
            payload: json(info)?,
            ..Default::default()
        };
        self.jetstream.publish_message(&message).await?;
        Ok(())
    }
}

/// Reads the bytes of one chunk, or fewer at the end of the source.
async fn read_chunk(
    source: &mut (impl AsyncRead + Unpin),
    chunk_bytes: usize,
) -> Result<Bytes, JetStreamError> {
    let mut chunk = BytesMut::with_capacity(chunk_bytes);
    while chunk.len() < chunk_bytes {
        let left = (chunk_bytes - chunk.len()) as u64;
        if source.take(left).read_buf(&mut chunk).await? == 0 {
            break;
        }
    }
    Ok(chunk.freeze())
}

fn now() -> Timestamp {
    let now = jiff::Timestamp::now().as_nanosecond();
    Timestamp::from_unix_nanos(i64::try_from(now).unwrap_or_default())
}
