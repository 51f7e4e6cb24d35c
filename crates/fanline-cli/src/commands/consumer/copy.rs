//! `fanline consumer copy`: creates a consumer with the configuration of another one.

use clap::Args;
use fanline_client::jetstream::ConsumerAction;

use super::config::ConfigArgs;
use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, SERVER_METADATA_PREFIX, print_json};

/// Create a consumer with the configuration of another one, but not its position.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline consumer copy ORDERS billing billing-eu --filter 'orders.eu.>'")]
pub(crate) struct CopyArgs {
    /// Name of the stream
    stream: String,
    /// Name of the existing consumer
    source: String,
    /// Name of the new consumer
    destination: String,
    #[command(flatten)]
    settings: ConfigArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl CopyArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.consumer_info(&self.stream, &self.source).await?;
        let mut config = info.config;
        config.name.clone_from(&self.destination);
        if !config.durable_name.is_empty() {
            config.durable_name.clone_from(&self.destination);
        }
        config
            .metadata
            .retain(|key, _| !key.starts_with(SERVER_METADATA_PREFIX));
        self.settings.apply(&mut config);
        let info = jetstream
            .create_consumer(&self.stream, &config, ConsumerAction::Create)
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "created"),
        }
    }
}
