//! `fanline consumer rm`: remove a consumer.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Remove a consumer; its stream keeps all records.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// The stream
    stream: String,
    /// The consumer
    consumer: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RmArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let RmArgs {
            stream, consumer, ..
        } = &self;
        self.force
            .confirm(&format!("Remove consumer {stream} > {consumer}?"))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.delete_consumer(stream, consumer).await?;
        eprintln!("Removed consumer {stream} > {consumer}");
        Ok(())
    }
}
