//! `fanline kv del`: deletes a key, or a bucket.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete a key, and keep its history; without a key, delete the bucket.
#[derive(Args, Debug)]
pub(crate) struct DelArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: Option<String>,
    /// Delete only if this is the key's last revision
    #[arg(long, value_name = "N", requires = "key")]
    revision: Option<u64>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl DelArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let DelArgs { bucket, .. } = &self;
        let Some(key) = &self.key else {
            return super::rm::remove(bucket, self.force, &self.jetstream).await;
        };
        self.force
            .confirm(&format!("Delete key {key} of bucket {bucket}?"))?;
        let bucket = self.jetstream.connect().await?.bucket(bucket).await?;
        bucket.delete(key, self.revision).await?;
        eprintln!("Deleted {key}");
        Ok(())
    }
}
