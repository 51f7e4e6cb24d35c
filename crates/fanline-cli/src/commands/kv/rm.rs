//! `fanline kv rm`: remove a bucket.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Remove a bucket with all that it holds.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// The bucket
    bucket: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RmArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        remove(&self.bucket, self.force, &self.jetstream).await
    }
}

pub(super) async fn remove(
    bucket: &str,
    force: ForceArgs,
    jetstream: &JetStreamArgs,
) -> Result<(), Failure> {
    force.confirm(&format!("Remove bucket {bucket} and all it holds?"))?;
    jetstream.connect().await?.delete_bucket(bucket).await?;
    eprintln!("Removed bucket {bucket}");
    Ok(())
}
