//! `fanline consumer ls`: lists the consumers of a stream.

use clap::Args;
use fanline_client::jetstream::ConsumerInfo;

use super::report;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs};

/// List the consumers of a stream.
#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// Name of the stream
    stream: String,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl LsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let consumers = jetstream.consumers(&self.stream).await?;
        let nothing = format!("Stream {} has no consumers", self.stream);
        let name = |info: &ConsumerInfo| info.name.clone();
        self.list.print(&consumers, name, &nothing, report::print)
    }
}
