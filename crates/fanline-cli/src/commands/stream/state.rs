//! `fanline stream state`: state of a stream.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::table::Details;

/// Show a stream's state, without its configuration.
#[derive(Args, Debug)]
pub(crate) struct StateArgs {
    /// Name of the stream
    stream: String,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl StateArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.stream_info(&self.stream).await?;
        if self.json.json {
            return print_json(&info.state);
        }
        let mut details = Details::new(format!("Stream {}", self.stream));
        details::state(&mut details, &info.state);
        details.print()
    }
}
