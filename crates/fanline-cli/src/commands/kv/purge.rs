//! `fanline kv purge`: deletes a key and its history.

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};
use crate::values;

/// Delete a key and its history.
#[derive(Args, Debug)]
pub(crate) struct PurgeArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    /// Time to live of the purge marker
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    ttl: Option<Duration>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl PurgeArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let PurgeArgs { bucket, key, .. } = &self;
        self.force
            .confirm(&format!("Purge key {key} of bucket {bucket}?"))?;
        let bucket = self.jetstream.connect().await?.bucket(bucket).await?;
        bucket.purge(key, self.ttl).await?;
        eprintln!("Purged {key}");
        Ok(())
    }
}
