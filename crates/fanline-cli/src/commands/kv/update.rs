//! `fanline kv update`: sets the value of a key if its last revision is still the given one.

use clap::Args;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};

/// Set the value of a key, if its last revision is the given one.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline kv update prices coffee.small 2.60 17")]
pub(crate) struct UpdateArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    /// The value
    value: String,
    /// Expected last revision; 0 if the key must not exist
    #[arg(default_value = "0")]
    revision: u64,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl UpdateArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let revision = bucket.update(&self.key, self.value, self.revision).await?;
        written(&self.key, revision, self.json)
    }
}
