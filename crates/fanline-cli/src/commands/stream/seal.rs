//! `fanline stream seal`: makes a stream permanently read-only.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Make a stream permanently read-only. This cannot be undone.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// Name of the stream
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
        details::print(&info, "Stream", "sealed")
    }
}
