//! `fanline object seal`: makes a store permanently read-only.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Make a store permanently read-only. This cannot be undone.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// Name of the store
    bucket: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl SealArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force.confirm(&format!(
            "Seal object store {}? This cannot be undone.",
            self.bucket
        ))?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.object_store(&self.bucket).await?.seal().await?;
        details::print_store(&info)
    }
}
