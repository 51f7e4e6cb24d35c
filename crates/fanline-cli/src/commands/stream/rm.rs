//! `fanline stream rm`: deletes a stream.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete a stream and all of its messages.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// Name of the stream
    stream: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RmArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force.confirm(&format!(
            "Delete stream {} and all of its messages?",
            self.stream
        ))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.delete_stream(&self.stream).await?;
        eprintln!("Deleted stream {}", self.stream);
        Ok(())
    }
}
