//! Requests about buckets: create, update, find, list, and delete.

use std::time::Duration;

use crate::jetstream::{
    Compression, Discard, Metadata, Nanos, Placement, Republish, Storage, StreamConfig,
    StreamSource,
};

use super::keys::check_bucket;
use super::{KeyValue, STREAM_PREFIX};
use crate::jetstream::{JetStream, JetStreamError, Kept, StreamInfo};

/// Maximum time for which the server remembers the id of a write, to detect duplicates.
const DUPLICATE_WINDOW_MAX: Nanos = Nanos::from_secs(120);

/// The configuration of a bucket.
#[derive(Clone, Debug, Default)]
pub struct BucketConfig {
    /// Name of the bucket.
    pub bucket: String,
    /// Description for people.
    pub description: String,
    /// Number of values stored per key, 1 to 64; 0 means 1.
    pub history: u8,
    /// Maximum age of a value; zero means no limit.
    pub ttl: Duration,
    /// Maximum number of bytes of a value.
    pub value_bytes_max: Option<u32>,
    /// Maximum number of bytes in total.
    pub bytes_max: Option<u64>,
    /// Storage of the bucket: on disk or in memory.
    pub storage: Storage,
    /// Number of servers that store the bucket; 0 means 1.
    pub replicas: u8,
    /// Whether the bucket is compressed.
    pub compression: bool,
    /// Maximum age of the marker that replaces a removed key. If this is set, keys can have a TTL of their
    /// own.
    pub limit_marker_ttl: Option<Duration>,
    /// Rule that publishes values again with another subject.
    pub republish: Option<Republish>,
    /// Servers of a cluster that may store the bucket.
    pub placement: Option<Placement>,
    /// Bucket that this one is a copy of.
    pub mirror: Option<StreamSource>,
    /// Buckets whose values are copied into this one.
    pub sources: Vec<StreamSource>,
    /// Labels.
    pub metadata: Metadata,
}

impl BucketConfig {
    /// Returns the configuration of the bucket's stream.
    fn stream(&self) -> StreamConfig {
        let BucketConfig { bucket, .. } = self;
        let ttl = nanos(self.ttl);
        let limit = |max: Option<u64>| max.and_then(|max| i64::try_from(max).ok()).unwrap_or(-1);
        let value_bytes_max = self.value_bytes_max.and_then(|max| i32::try_from(max).ok());
        let is_copy = self.mirror.is_some();
        let duplicate_window = match ttl {
            Nanos::ZERO => DUPLICATE_WINDOW_MAX,
            ttl => ttl.min(DUPLICATE_WINDOW_MAX),
        };
        StreamConfig {
            name: format!("{STREAM_PREFIX}{bucket}"),
            description: self.description.clone(),
            subjects: match is_copy {
                true => Vec::new(),
                false => vec![format!("$KV.{bucket}.>")],
            },
            max_consumers: -1,
            max_msgs: -1,
            max_msgs_per_subject: i64::from(self.history.max(1)),
            max_bytes: limit(self.bytes_max),
            max_msg_size: value_bytes_max.unwrap_or(-1),
            max_age: ttl,
            duplicate_window: if is_copy {
                Nanos::ZERO
            } else {
                duplicate_window
            },
            storage: self.storage,
            num_replicas: i64::from(self.replicas.max(1)),
            compression: match self.compression {
                true => Compression::S2,
                false => Compression::None,
            },
            discard: Discard::New,
            allow_rollup_hdrs: true,
            deny_delete: true,
            allow_direct: true,
            mirror_direct: is_copy,
            allow_msg_ttl: self.limit_marker_ttl.is_some(),
            subject_delete_marker_ttl: nanos(self.limit_marker_ttl.unwrap_or_default()),
            republish: self.republish.clone(),
            placement: self.placement.clone(),
            mirror: self.mirror.clone().map(origin_stream),
            sources: self.sources.iter().cloned().map(origin_stream).collect(),
            metadata: self.metadata.clone(),
            ..Default::default()
        }
    }
}

/// Adds the prefix `KV_` to the name of an origin, so that a bucket's name becomes that of its stream.
fn origin_stream(mut origin: StreamSource) -> StreamSource {
    if !origin.name.starts_with(STREAM_PREFIX) {
        origin.name.insert_str(0, STREAM_PREFIX);
    }
    origin
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

impl JetStream {
    /// Creates a bucket. Does nothing if it exists with the same configuration.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; [`JetStreamError::Api`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn create_bucket(&self, config: &BucketConfig) -> Result<KeyValue, JetStreamError> {
        check_bucket(&config.bucket)?;
        let info = self.create_stream(&config.stream().into()).await?;
        Ok(KeyValue::of(self, &config.bucket, &info))
    }

    /// Updates a bucket. Settings of its stream that are not part of a bucket's configuration stay unchanged.
    ///
    /// # Errors
    ///
    /// Those of [`create_bucket`](JetStream::create_bucket).
    pub async fn update_bucket(
        &self,
        bucket: &str,
        change: impl FnOnce(&mut Kept<StreamConfig>),
    ) -> Result<StreamInfo, JetStreamError> {
        let mut config = self.bucket_info(bucket).await?.config;
        change(&mut config);
        self.update_stream(&config).await
    }

    /// Returns an existing bucket.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`], [`JetStreamError::InvalidName`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn bucket(&self, bucket: &str) -> Result<KeyValue, JetStreamError> {
        let info = self.bucket_info(bucket).await?;
        Ok(KeyValue::of(self, bucket, &info))
    }

    async fn bucket_info(&self, bucket: &str) -> Result<StreamInfo, JetStreamError> {
        check_bucket(bucket)?;
        let info = self.stream_info(&format!("{STREAM_PREFIX}{bucket}")).await;
        info.map_err(|error| match error.is_stream_not_found() {
            true => JetStreamError::not_found("bucket", bucket),
            false => error,
        })
    }

    /// Returns the streams of all buckets.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn buckets(&self) -> Result<Vec<StreamInfo>, JetStreamError> {
        // A mirror has no subjects of its own, so list all streams and select buckets by their names.
        let mut streams = self.streams("").await?;
        streams.retain(|info| info.config.name.starts_with(STREAM_PREFIX));
        Ok(streams)
    }

    /// Deletes a bucket and its values.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`], [`JetStreamError::InvalidName`]; and the [errors of every
    /// request](crate::jetstream).
    pub async fn delete_bucket(&self, bucket: &str) -> Result<(), JetStreamError> {
        self.bucket_info(bucket).await?;
        self.delete_stream(&format!("{STREAM_PREFIX}{bucket}"))
            .await
    }
}
