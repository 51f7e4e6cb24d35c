//! `fanline stream rm`: remove a stream.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Remove a stream with all that it holds.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// The stream
    stream: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RmArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force
            .confirm(&format!("Remove stream {} and all it holds?", self.stream))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.delete_stream(&self.stream).await?;
        eprintln!("Removed stream {}", self.stream);
        Ok(())
    }
}
