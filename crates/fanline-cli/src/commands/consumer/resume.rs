//! `fanline consumer resume`: resumes a paused consumer.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Resume a paused consumer.
#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl ResumeArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let ResumeArgs {
            stream, consumer, ..
        } = &self;
        self.force
            .confirm(&format!("Resume consumer {stream} > {consumer}?"))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.pause_consumer(stream, consumer, None).await?;
        eprintln!("Resumed {stream} > {consumer}");
        Ok(())
    }
}
