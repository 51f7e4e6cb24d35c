//! `fanline kv create`: sets a key that has no value.

use std::time::Duration;

use clap::Args;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::value::ValueArgs;
use crate::values;

/// Set the value of a key, if it has none.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv create locks job-17 worker-3
  fanline kv create locks job-17 worker-3 --ttl 30s")]
pub(crate) struct CreateArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    #[command(flatten)]
    value: ValueArgs,
    /// Time to live of the key; the bucket must have --marker-ttl
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    ttl: Option<Duration>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl CreateArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let value = self.value.read()?;
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let revision = bucket.create(&self.key, value, self.ttl).await?;
        written(&self.key, revision, self.json)
    }
}
