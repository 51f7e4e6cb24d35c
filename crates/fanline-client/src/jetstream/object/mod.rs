//! Object stores: files of any size as records of a stream, as all NATS clients agree (ADR-20).
//!
//! An object is its bytes in pieces, all under one subject that only this object has, and one record
//! under a subject of its name that describes it: [`ObjectInfo`].

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

/// Start of the name of every object store's stream.
const STREAM_PREFIX: &str = "OBJ_";
/// Says how the digest is made.
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
/// while let Some(piece) = cup.next().await? {
///     println!("{} of {} bytes", piece.len(), cup.info().size);
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
    /// The store's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The stream that the store is.
    ///
    /// # Errors
    ///
    /// Those of a request.
    pub async fn status(&self) -> Result<StreamInfo, JetStreamError> {
        self.jetstream.stream_info(&self.stream).await
    }

    /// Lets nothing be added or removed any more.
    ///
    /// # Errors
    ///
    /// Those of a request.
    pub async fn seal(&self) -> Result<StreamInfo, JetStreamError> {
        let mut config = self.status().await?.config;
        config.sealed = true;
        self.jetstream.update_stream(&config).await
    }

    /// Where the description of an object of this name is.
    fn meta_subject(&self, name: &str) -> String {
        format!("$O.{}.M.{}", self.bucket, URL_SAFE.encode(name))
    }

    /// Where the pieces are of the object with this id.
    fn pieces_subject(&self, nuid: &str) -> String {
        format!("$O.{}.C.{nuid}", self.bucket)
    }

    /// Removes the pieces of an object that is described no more.
    async fn purge_pieces(&self, nuid: &str) -> Result<(), JetStreamError> {
        let purge = Purge {
            filter: self.pieces_subject(nuid),
            ..Default::default()
        };
        self.jetstream.purge_stream(&self.stream, &purge).await?;
        Ok(())
    }
}
