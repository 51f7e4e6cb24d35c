//! `fanline kv add`: creates a bucket.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{BucketConfig, Republish, StreamSource};

use super::details;
use crate::commands::bucket::BucketArgs;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::values;

/// Create a bucket.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv add prices
  fanline kv add sessions --ttl 1h --storage memory
  fanline kv add settings --history 10 --max-value-size 64k")]
pub(crate) struct AddArgs {
    /// Name of the bucket
    bucket: String,
    /// Number of values stored per key
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=64))]
    history: u8,
    /// Time to live of values
    #[arg(long, value_name = "TIME", value_parser = values::finite_span, default_value = "never")]
    ttl: Duration,
    /// Allow a TTL per key; time to live of the delete markers that expired keys leave
    #[arg(long, alias = "limit-marker-ttl", value_name = "TIME", value_parser = values::finite_span)]
    marker_ttl: Option<Duration>,
    /// Largest size of a value in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    max_value_size: Option<usize>,
    /// Republish values of subjects that match this filter...
    #[arg(long, value_name = "SUBJECT", requires = "republish_destination")]
    republish_source: Option<String>,
    /// ...to this subject
    #[arg(long, value_name = "SUBJECT")]
    republish_destination: Option<String>,
    /// Republish headers without values
    #[arg(long, requires = "republish_destination")]
    republish_headers: bool,
    /// Mirror this bucket
    #[arg(long, value_name = "BUCKET")]
    mirror: Option<String>,
    /// Bucket to copy values from; may be repeated
    #[arg(long, value_name = "BUCKET", conflicts_with = "mirror")]
    source: Vec<String>,
    #[command(flatten)]
    shared: BucketArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl AddArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let config = self.config()?;
        let jetstream = self.jetstream.connect().await?;
        let bucket = jetstream.create_bucket(&config).await?;
        let info = bucket.status().await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info),
        }
    }

    fn config(&self) -> Result<BucketConfig, Failure> {
        let too_large = |_| Failure::Usage("--max-value-size must be less than 4 GiB".to_owned());
        let origin = |name: &String| StreamSource {
            name: name.clone(),
            ..Default::default()
        };
        let shared = &self.shared;
        Ok(BucketConfig {
            bucket: self.bucket.clone(),
            description: shared.description.clone(),
            history: self.history,
            ttl: self.ttl,
            value_bytes_max: self
                .max_value_size
                .map(u32::try_from)
                .transpose()
                .map_err(too_large)?,
            bytes_max: shared.bytes_max(),
            storage: shared.storage,
            replicas: shared.replicas,
            compression: shared.compress,
            limit_marker_ttl: self.marker_ttl,
            republish: self.republish_destination.clone().map(|dest| Republish {
                src: self.republish_source.clone().unwrap_or_default(),
                dest,
                headers_only: self.republish_headers,
            }),
            placement: shared.placement(),
            mirror: self.mirror.as_ref().map(origin),
            sources: self.source.iter().map(origin).collect(),
            metadata: shared.metadata.iter().cloned().collect(),
        })
    }
}
