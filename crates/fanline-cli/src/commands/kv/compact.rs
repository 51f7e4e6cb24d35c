//! `fanline kv compact`: reclaims the space of deleted keys.

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};
use crate::{show, values};

/// Reclaim the space of deleted keys.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// Name of the bucket
    bucket: String,
    /// Keep delete markers that are younger than this
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = values::finite_span)]
    keep: Duration,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl CompactArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force
            .confirm(&format!("Compact bucket {}?", self.bucket))?;
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let keys = bucket.purge_deleted(now, self.keep).await?;
        eprintln!(
            "Compacted {} deleted keys of {}",
            show::count(keys),
            self.bucket
        );
        Ok(())
    }
}
