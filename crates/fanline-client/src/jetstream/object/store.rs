//! Requests about object stores: create, find, list, and delete.

use std::time::Duration;

use crate::jetstream::{Compression, Discard, Metadata, Nanos, Placement, Storage, StreamConfig};

use super::{ObjectStore, STREAM_PREFIX};
use crate::jetstream::kv::check_bucket;
use crate::jetstream::{JetStream, JetStreamError, StreamInfo};

/// The configuration of an object store.
#[derive(Clone, Debug, Default)]
pub struct ObjectStoreConfig {
    /// Name of the store.
    pub bucket: String,
    /// Description for people.
    pub description: String,
    /// Maximum age of an object; zero means no limit.
    pub ttl: Duration,
    /// Maximum number of bytes in total.
    pub bytes_max: Option<u64>,
    /// Storage of the store's messages: on disk or in memory.
    pub storage: Storage,
    /// Number of servers that store the object store; 0 means 1.
    pub replicas: u8,
    /// Whether the store is compressed.
    pub compression: bool,
    /// Servers of a cluster that may store the object store.
    pub placement: Option<Placement>,
    /// Labels.
    pub metadata: Metadata,
}

impl ObjectStoreConfig {
    /// Returns the configuration of the store's stream.
    fn stream(&self) -> StreamConfig {
        let ObjectStoreConfig { bucket, .. } = self;
        let bytes_max = self.bytes_max.and_then(|max| i64::try_from(max).ok());
        StreamConfig {
            name: format!("{STREAM_PREFIX}{bucket}"),
            description: self.description.clone(),
            subjects: ["C", "M"]
                .map(|kind| format!("$O.{bucket}.{kind}.>"))
                .to_vec(),
            max_age: Nanos(i64::try_from(self.ttl.as_nanos()).unwrap_or(i64::MAX)),
            max_bytes: bytes_max.unwrap_or(-1),
            max_consumers: -1,
            max_msgs: -1,
            max_msgs_per_subject: -1,
            max_msg_size: -1,
            storage: self.storage,
            num_replicas: i64::from(self.replicas.max(1)),
            compression: match self.compression {
                true => Compression::S2,
                false => Compression::None,
            },
            discard: Discard::New,
            allow_rollup_hdrs: true,
            allow_direct: true,
            placement: self.placement.clone(),
            metadata: self.metadata.clone(),
            ..Default::default()
        }
    }
}

impl JetStream {
    /// Creates an object store. Does nothing if it exists with the same configuration.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; [`JetStreamError::Api`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn create_object_store(
        &self,
        config: &ObjectStoreConfig,
    ) -> Result<ObjectStore, JetStreamError> {
        check_bucket(&config.bucket)?;
        let info = self.create_stream(&config.stream().into()).await?;
        Ok(ObjectStore::of(self, &config.bucket, &info))
    }

    /// Returns an existing object store.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`], [`JetStreamError::InvalidName`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn object_store(&self, bucket: &str) -> Result<ObjectStore, JetStreamError> {
        check_bucket(bucket)?;
        let info = self.stream_info(&format!("{STREAM_PREFIX}{bucket}")).await;
        let info = info.map_err(|error| match error.is_stream_not_found() {
            true => JetStreamError::not_found("object store", bucket),
            false => error,
        })?;
        Ok(ObjectStore::of(self, bucket, &info))
    }

    /// Returns the streams of all object stores.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn object_stores(&self) -> Result<Vec<StreamInfo>, JetStreamError> {
        let mut streams = self.streams("").await?;
        streams.retain(|info| info.config.name.starts_with(STREAM_PREFIX));
        Ok(streams)
    }

    /// Deletes an object store and its objects.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`], [`JetStreamError::InvalidName`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn delete_object_store(&self, bucket: &str) -> Result<(), JetStreamError> {
        let store = self.object_store(bucket).await?;
        self.delete_stream(&store.stream).await
    }
}

impl ObjectStore {
    fn of(jetstream: &JetStream, bucket: &str, info: &StreamInfo) -> Self {
        ObjectStore {
            jetstream: jetstream.clone(),
            bucket: bucket.to_owned(),
            stream: info.config.name.clone(),
            is_direct: info.config.allow_direct,
        }
    }
}
