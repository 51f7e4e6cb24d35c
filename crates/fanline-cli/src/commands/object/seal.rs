//! `fanline object seal`: let a store be as it is for ever.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Let nothing be added to a store or removed from it any more. This cannot be undone.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// The store
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
