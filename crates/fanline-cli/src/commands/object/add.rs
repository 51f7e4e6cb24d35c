//! `fanline object add`: creates an object store.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::ObjectStoreConfig;

use super::details;
use crate::commands::bucket::BucketArgs;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::values;

/// Create an object store.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline object add images
  fanline object add builds --ttl 30d --max-bucket-size 10G")]
pub(crate) struct AddArgs {
    /// Name of the store
    bucket: String,
    /// Time to live of objects
    #[arg(long, value_name = "TIME", value_parser = values::finite_span, default_value = "never")]
    ttl: Duration,
    #[command(flatten)]
    shared: BucketArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl AddArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let shared = self.shared;
        let config = ObjectStoreConfig {
            bucket: self.bucket,
            ttl: self.ttl,
            placement: shared.placement(),
            bytes_max: shared.bytes_max(),
            description: shared.description,
            storage: shared.storage,
            replicas: shared.replicas,
            compression: shared.compress,
            metadata: shared.metadata.into_iter().collect(),
        };
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .create_object_store(&config)
            .await?
            .status()
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print_store(&info),
        }
    }
}
