//! `fanline stream copy`: creates a stream with the configuration of another one.

use clap::Args;

use super::config::ConfigArgs;
use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, SERVER_METADATA_PREFIX, print_json};

/// Create a stream with the configuration of another one, but not its messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline stream copy ORDERS RETURNS --subjects 'returns.>'

Two streams cannot store the same subject: use --subjects, unless the stream is a mirror.")]
pub(crate) struct CopyArgs {
    /// Name of the existing stream
    #[arg(value_name = "SOURCE")]
    original: String,
    /// Name of the new stream
    destination: String,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl CopyArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut config = jetstream.stream_info(&self.original).await?.config;
        config.name.clone_from(&self.destination);
        config
            .metadata
            .retain(|key, _| !key.starts_with(SERVER_METADATA_PREFIX));
        self.config.apply(&mut config)?;
        let info = jetstream.create_stream(&config).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "Stream", "created"),
        }
    }
}
