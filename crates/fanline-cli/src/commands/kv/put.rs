//! `fanline kv put`: sets the value of a key.

use clap::Args;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::value::ValueArgs;

/// Set the value of a key.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv put prices coffee.small 2.50
  fanline kv put pages index < index.html")]
pub(crate) struct PutArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    #[command(flatten)]
    value: ValueArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl PutArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let value = self.value.read()?;
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let revision = bucket.put(&self.key, value).await?;
        written(&self.key, revision, self.json)
    }
}
