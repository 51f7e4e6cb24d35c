//! `fanline kv update`: give a key a value if nobody has in between.

use clap::Args;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};

/// Give a key a value if its last revision is the one that is named.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline kv update prices coffee.small 2.60 17")]
pub(crate) struct UpdateArgs {
    /// The bucket
    bucket: String,
    /// The key
    key: String,
    /// The value
    value: String,
    /// The revision that it must have; 0 for none
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
