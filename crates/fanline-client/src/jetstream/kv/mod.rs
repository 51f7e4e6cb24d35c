//! Key-value buckets. A bucket is a stream, and a key is a subject, as all NATS clients agree (ADR-8).

mod bucket;
mod entry;
mod keys;
mod read;
mod watch;
mod write;

pub use bucket::BucketConfig;
pub use entry::{Entry, Operation};
pub use watch::{Watch, WatchOptions};

pub(super) use keys::check_bucket;

use super::{JetStream, JetStreamError, StreamInfo};

/// Prefix of the names of streams that are buckets.
const STREAM_PREFIX: &str = "KV_";

/// A bucket of keys and values. Clones share the connection.
///
/// ```no_run
/// # async fn example(jetstream: fanline_client::jetstream::JetStream)
/// # -> Result<(), fanline_client::jetstream::JetStreamError> {
/// let prices = jetstream.bucket("prices").await?;
/// let revision = prices.put("coffee.small", "2.50").await?;
/// prices.update("coffee.small", "2.60", revision).await?;
/// if let Some(entry) = prices.get("coffee.small").await? {
///     println!("{}: {:?}", entry.key, entry.value);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct KeyValue {
    jetstream: JetStream,
    bucket: String,
    stream: String,
    /// Prefix of the subjects to read: `$KV.<bucket>.`.
    prefix: String,
    /// Prefix of the subjects to write to. If the bucket is a mirror, this is the prefix of its origin's
    /// subjects.
    write_prefix: String,
    is_direct: bool,
}

impl KeyValue {
    /// Returns the bucket's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Returns the configuration and state of the bucket's stream.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn status(&self) -> Result<StreamInfo, JetStreamError> {
        self.jetstream.stream_info(&self.stream).await
    }

    fn of(jetstream: &JetStream, bucket: &str, info: &StreamInfo) -> Self {
        let mut prefix = format!("$KV.{bucket}.");
        let mut write_prefix = jetstream.write_subject(&prefix);
        if let Some(mirror) = &info.config.mirror {
            let origin = mirror.name.strip_prefix(STREAM_PREFIX);
            let origin = format!("$KV.{}.", origin.unwrap_or(&mirror.name));
            // The records of a mirror have the subjects of its origin. An origin in another domain is written
            // to through that domain's API.
            write_prefix = match mirror.external.as_ref().filter(|e| !e.api.is_empty()) {
                Some(external) => format!("{}.{origin}", external.api),
                None => jetstream.write_subject(&origin),
            };
            prefix = origin;
        }
        KeyValue {
            jetstream: jetstream.clone(),
            bucket: bucket.to_owned(),
            stream: info.config.name.clone(),
            prefix,
            write_prefix,
            is_direct: info.config.allow_direct,
        }
    }
}
