//! `fanline consumer reset`: resets a consumer's position.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};

/// Reset a consumer to its acknowledgement floor, or to a sequence of the stream.
#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Sequence of the next message
    #[arg(long, value_name = "SEQUENCE")]
    seq: Option<u64>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl ResetArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let ResetArgs {
            stream, consumer, ..
        } = &self;
        self.force
            .confirm(&format!("Reset consumer {stream} > {consumer}?"))?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.reset_consumer(stream, consumer, self.seq).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "reset"),
        }
    }
}
