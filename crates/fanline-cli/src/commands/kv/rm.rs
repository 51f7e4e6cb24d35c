//! `fanline kv rm`: deletes a bucket.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete a bucket and all of its values.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// Name of the bucket
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
    force.confirm(&format!("Delete bucket {bucket} and all of its values?"))?;
    jetstream.connect().await?.delete_bucket(bucket).await?;
    eprintln!("Deleted bucket {bucket}");
    Ok(())
}
