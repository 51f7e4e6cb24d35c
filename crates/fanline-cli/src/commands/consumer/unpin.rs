//! `fanline consumer unpin`: unpins the client of a priority group.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Unpin the client of a priority group, so that another client is served.
#[derive(Args, Debug)]
pub(crate) struct UnpinArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Name of the priority group
    group: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl UnpinArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let UnpinArgs {
            stream,
            consumer,
            group,
            ..
        } = &self;
        self.force.confirm(&format!(
            "Unpin the client of group {group} of {stream} > {consumer}?"
        ))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.unpin_consumer(stream, consumer, group).await?;
        eprintln!("Unpinned the client of group {group}");
        Ok(())
    }
}
