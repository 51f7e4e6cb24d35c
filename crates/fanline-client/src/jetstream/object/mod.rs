//! Object stores, which store files of any size as messages of a stream, as all NATS clients agree (ADR-20).
//!
//! An object is a sequence of chunks and a description ([`ObjectInfo`]). All chunks have the same subject,
//! which only this object uses. The description is one message whose subject contains the object's name.

mod get;
mod info;
mod link;
mod list;
mod put;
mod store;

pub use get::ObjectReader;
pub use info::{ObjectInfo, ObjectLink, ObjectMeta, ObjectOptions};
pub use list::ObjectWatch;
pub use store::ObjectStoreConfig;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;

use super::{JetStream, JetStreamError, Purge, StreamInfo};

/// Prefix of the names of streams that are object stores.
const STREAM_PREFIX: &str = "OBJ_";
/// Prefix of a digest, which names its algorithm.
const DIGEST_PREFIX: &str = "SHA-256=";

/// A store of objects. Clones share the connection.
///
/// ```no_run
/// # async fn example(jetstream: fanline_client::jetstream::JetStream)
/// # -> Result<(), fanline_client::jetstream::JetStreamError> {
/// use fanline_client::jetstream::ObjectMeta;
///
/// let images = jetstream.object_store("images").await?;
/// let meta = ObjectMeta { name: "cup.png".into(), ..Default::default() };
/// images.put(meta, &mut &b"..."[..]).await?;
/// let mut cup = images.get("cup.png").await?;
/// while let Some(chunk) = cup.next().await? {
///     println!("{} of {} bytes", chunk.len(), cup.info().size);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ObjectStore {
    jetstream: JetStream,
    bucket: String,
    stream: String,
    is_direct: bool,
}

impl ObjectStore {
    /// Returns the store's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Returns the configuration and state of the store's stream.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn status(&self) -> Result<StreamInfo, JetStreamError> {
        self.jetstream.stream_info(&self.stream).await
    }

    /// Seals the store. Objects can no longer be added or removed.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn seal(&self) -> Result<StreamInfo, JetStreamError> {
        let mut config = self.status().await?.config;
        config.sealed = true;
        self.jetstream.update_stream(&config).await
    }

    /// Returns the subject of an object's description.
    fn meta_subject(&self, name: &str) -> String {
        format!("$O.{}.M.{}", self.bucket, URL_SAFE.encode(name))
    }

    /// Returns the subject of an object's chunks.
    fn chunks_subject(&self, nuid: &str) -> String {
        format!("$O.{}.C.{nuid}", self.bucket)
    }

    /// Removes the chunks of an object that has no description.
    async fn purge_chunks(&self, nuid: &str) -> Result<(), JetStreamError> {
        let purge = Purge {
            filter: self.chunks_subject(nuid),
            ..Default::default()
        };
        self.jetstream.purge_stream(&self.stream, &purge).await?;
        Ok(())
    }
}
