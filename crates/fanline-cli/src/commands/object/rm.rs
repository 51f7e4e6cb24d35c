//! `fanline object rm`: remove an object store.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Remove an object store with all that it holds.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// The store
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
    force.confirm(&format!("Remove object store {bucket} and all it holds?"))?;
    let jetstream = jetstream.connect().await?;
    jetstream.delete_object_store(bucket).await?;
    eprintln!("Removed object store {bucket}");
    Ok(())
}
