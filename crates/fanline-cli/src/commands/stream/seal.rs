//! `fanline stream seal`: let a stream be as it is for ever.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Let nothing be added to a stream or removed from it any more. This cannot be undone.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// The stream
    stream: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl SealArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force.confirm(&format!(
            "Seal stream {}? This cannot be undone.",
            self.stream
        ))?;
        let jetstream = self.jetstream.connect().await?;
        let mut config = jetstream.stream_info(&self.stream).await?.config;
        config.sealed = true;
        let info = jetstream.update_stream(&config).await?;
        details::print(&info, "Stream", "was sealed")
    }
}
