//! `fanline consumer unpin`: give another client of a group its turn.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Take the pinned client of a group its place, so that another gets it.
#[derive(Args, Debug)]
pub(crate) struct UnpinArgs {
    /// The stream
    stream: String,
    /// The consumer
    consumer: String,
    /// The group
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
