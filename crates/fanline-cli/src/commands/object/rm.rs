//! `fanline object rm`: deletes an object store.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete an object store and all of its objects.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// Name of the store
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
    force.confirm(&format!(
        "Delete object store {bucket} and all of its objects?"
    ))?;
    let jetstream = jetstream.connect().await?;
    jetstream.delete_object_store(bucket).await?;
    eprintln!("Deleted object store {bucket}");
    Ok(())
}
