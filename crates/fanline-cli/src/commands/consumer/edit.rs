//! `fanline consumer edit`: changes a consumer.

use std::path::PathBuf;

use clap::Args;
use fanline_client::jetstream::ConsumerAction;

use super::config::ConfigArgs;
use super::details;
use crate::failure::Failure;
use crate::files::read_json;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};

/// Change a consumer's configuration; values without an option stay unchanged.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline consumer edit ORDERS billing --wait 1m --max-deliver 5 --force")]
pub(crate) struct EditArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Read the configuration from a JSON file; options override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: ConfigArgs,
    /// Print the new configuration, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl EditArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let EditArgs {
            stream, consumer, ..
        } = &self;
        let jetstream = self.jetstream.connect().await?;
        let before = jetstream.consumer_info(stream, consumer).await?.config;
        let mut config = match &self.config {
            Some(path) => read_json(path)?,
            None => before.clone(),
        };
        self.settings.apply(&mut config);
        if config == before {
            eprintln!("The configuration is unchanged");
            return Ok(());
        }
        if self.dry_run {
            return print_json(&config);
        }
        self.force
            .confirm(&format!("Change consumer {consumer} of stream {stream}?"))?;
        let info = jetstream
            .create_consumer(stream, &config, ConsumerAction::Update)
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "changed"),
        }
    }
}
