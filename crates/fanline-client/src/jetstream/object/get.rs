//! Reads of objects, with a check of their digest.

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use ring::digest::{Context, SHA256};

use super::{DIGEST_PREFIX, ObjectInfo, ObjectStore};
use crate::jetstream::{JetStreamError, Ordered, OrderedOptions, Wanted};

/// A reader of an object's bytes, in chunks.
pub struct ObjectReader {
    info: ObjectInfo,
    /// `None` if the object is empty or fully read.
    chunks: Option<Ordered>,
    read: u64,
    digest: Context,
}

impl ObjectStore {
    /// Returns the description of a stored object.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`]; and the [errors of every request](crate::jetstream).
    pub async fn info(&self, name: &str) -> Result<ObjectInfo, JetStreamError> {
        let info = self.info_or_none(name).await?;
        info.filter(|info| !info.deleted)
            .ok_or_else(|| JetStreamError::not_found("object", name))
    }

    pub(super) async fn info_or_none(
        &self,
        name: &str,
    ) -> Result<Option<ObjectInfo>, JetStreamError> {
        let expected = Wanted::Last(self.meta_subject(name));
        let message = match self.is_direct {
            true => self.jetstream.message_direct(&self.stream, &expected).await,
            false => self.jetstream.message(&self.stream, &expected).await,
        };
        match message {
            Ok(message) => serde_json::from_slice(&message.payload)
                .map(Some)
                .map_err(JetStreamError::unexpected),
            Err(error) if error.is_message_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts to read an object. If it is a link, reads the target.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`]; and the [errors of every request](crate::jetstream).
    pub async fn get(&self, name: &str) -> Result<ObjectReader, JetStreamError> {
        let info = self.info(name).await?;
        let Some(link) = info.link() else {
            return self.read(info).await;
        };
        if link.name.is_empty() {
            let reason = "it stands for a whole store";
            return Err(JetStreamError::invalid_name("object", name, reason));
        }
        let store = self.jetstream.object_store(&link.bucket).await?;
        let target = store.info(&link.name).await?;
        match target.link() {
            None => store.read(target).await,
            Some(_) => Err(JetStreamError::unexpected("a link to a link")),
        }
    }

    async fn read(&self, info: ObjectInfo) -> Result<ObjectReader, JetStreamError> {
        let options = OrderedOptions {
            filters: vec![self.chunks_subject(&info.nuid)],
            ..Default::default()
        };
        let chunks = match info.size {
            0 => None,
            _ => Some(self.jetstream.ordered(&self.stream, options).await?),
        };
        Ok(ObjectReader {
            info,
            chunks,
            read: 0,
            digest: Context::new(&SHA256),
        })
    }
}

impl ObjectReader {
    /// Returns the description of the object.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// Returns the next chunk. After the last chunk, checks the digest and returns `None`.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Damaged`]; when the connection is closed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, JetStreamError> {
        let Some(chunks) = &mut self.chunks else {
            return Ok(None);
        };
        if self.read < self.info.size {
            let is_lost = self.read == 0 && chunks.pending() == 0;
            if is_lost {
                return Err(JetStreamError::Damaged("its chunks are missing".to_owned()));
            }
            let delivery = chunks.next().await?;
            let chunk = delivery.message.payload_bytes();
            self.read += chunk.len() as u64;
            self.digest.update(&chunk);
            if delivery.pending == 0 && self.read < self.info.size {
                let (read, size) = (self.read, self.info.size);
                return Err(JetStreamError::Damaged(format!("{read} of {size} bytes")));
            }
            return Ok(Some(chunk));
        }
        if let Some(chunks) = self.chunks.take() {
            chunks.close().await?;
        }
        self.check()?;
        Ok(None)
    }

    fn check(&self) -> Result<(), JetStreamError> {
        if self.read != self.info.size {
            let (read, size) = (self.read, self.info.size);
            return Err(JetStreamError::Damaged(format!("{read} bytes, not {size}")));
        }
        let found = self.digest.clone().finish();
        let written = self.info.digest.strip_prefix(DIGEST_PREFIX);
        // Some clients write the digest without padding.
        let expected = written.and_then(|text| {
            let decoded = URL_SAFE
                .decode(text)
                .or_else(|_| URL_SAFE_NO_PAD.decode(text));
            decoded.ok()
        });
        match expected {
            Some(expected) if expected == found.as_ref() => Ok(()),
            Some(_) => Err(JetStreamError::Damaged("its digest differs".to_owned())),
            None => Err(JetStreamError::Damaged("it has no digest".to_owned())),
        }
    }
}
