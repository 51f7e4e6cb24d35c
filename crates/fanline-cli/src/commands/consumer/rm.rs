//! `fanline consumer rm`: deletes a consumer.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete a consumer; the messages of its stream are not deleted.
#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
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
            .confirm(&format!("Delete consumer {stream} > {consumer}?"))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.delete_consumer(stream, consumer).await?;
        eprintln!("Deleted consumer {stream} > {consumer}");
        Ok(())
    }
}
