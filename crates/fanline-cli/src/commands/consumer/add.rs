//! `fanline consumer add`: creates a consumer.

use std::path::PathBuf;

use clap::Args;
use fanline_client::jetstream::{AckPolicy, ConsumerAction, ConsumerConfig, Kept};

use super::config::ConfigArgs;
use super::details;
use crate::failure::Failure;
use crate::files::read_json;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Create a consumer.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer add ORDERS billing
  fanline consumer add ORDERS mail --filter 'orders.paid' --deliver new
  fanline consumer add ORDERS --ephemeral --deliver last --ack none
  fanline consumer add ORDERS audit --target audit.orders --flow-control --heartbeat 5s

Creates a pull consumer with explicit acknowledgements, unless options change that.")]
pub(crate) struct AddArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    #[arg(required_unless_present_any = ["ephemeral", "config"])]
    consumer: Option<String>,
    /// Delete the consumer once it is unused
    #[arg(long)]
    ephemeral: bool,
    /// Read the configuration from a JSON file; options override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Create a pull consumer, which is the default
    #[arg(long, conflicts_with = "target")]
    pull: bool,
    #[command(flatten)]
    settings: ConfigArgs,
    /// Ignored, for scripts of the nats CLI: this command never prompts
    #[arg(long, hide = true)]
    defaults: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl AddArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut config = match &self.config {
            Some(path) => read_json(path)?,
            None => Kept::from(ConsumerConfig {
                ack_policy: AckPolicy::Explicit,
                ..Default::default()
            }),
        };
        if let Some(name) = &self.consumer {
            config.name.clone_from(name);
            config.durable_name.clear();
            if !self.ephemeral {
                config.durable_name.clone_from(name);
            }
        }
        self.settings.apply(&mut config);
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .create_consumer(&self.stream, &config, ConsumerAction::Create)
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "created"),
        }
    }
}
