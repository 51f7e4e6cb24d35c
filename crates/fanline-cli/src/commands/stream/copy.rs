//! `fanline stream copy`: make a stream as another is.

use clap::Args;

use super::config::ConfigArgs;
use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Make a stream with the configuration of another, but without its records.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline stream copy ORDERS RETURNS --subjects 'returns.>'

Two streams cannot keep the same subject: name others, unless it is a mirror.")]
pub(crate) struct CopyArgs {
    /// The stream that there is
    #[arg(value_name = "SOURCE")]
    original: String,
    /// The one to make
    destination: String,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

/// What the server says of itself in a configuration.
const OF_THE_SERVER: &str = "_nats.";

impl CopyArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut config = jetstream.stream_info(&self.original).await?.config;
        config.name.clone_from(&self.destination);
        config
            .metadata
            .retain(|key, _| !key.starts_with(OF_THE_SERVER));
        self.config.apply(&mut config)?;
        let info = jetstream.create_stream(&config).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "Stream", "was created"),
        }
    }
}
