//! `fanline consumer pause`: pauses a consumer.

use clap::Args;
use fanline_client::jetstream::Timestamp;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};
use crate::{show, values};

/// Pause a consumer for some time.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer pause ORDERS billing 1h --force
  fanline consumer pause ORDERS billing 2026-12-24T18:00:00Z --force")]
pub(crate) struct PauseArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Duration of the pause, or its end
    #[arg(value_parser = values::moment)]
    until: Timestamp,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl PauseArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let PauseArgs {
            stream, consumer, ..
        } = &self;
        let until = show::time(self.until);
        self.force.confirm(&format!(
            "Pause consumer {stream} > {consumer} until {until}?"
        ))?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .pause_consumer(stream, consumer, Some(self.until))
            .await?;
        match self.json.json {
            true => return print_json(&info),
            false if info.paused => eprintln!("Paused {stream} > {consumer} until {until}"),
            false => eprintln!("{stream} > {consumer} is not paused: {until} is in the past"),
        }
        Ok(())
    }
}
