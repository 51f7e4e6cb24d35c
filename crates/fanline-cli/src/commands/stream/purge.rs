//! `fanline stream purge`: deletes many messages.

use clap::Args;
use fanline_client::jetstream::Purge;
use serde_json::json;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};
use crate::{show, values};

/// Delete messages from a stream.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream purge ORDERS --force
  fanline stream purge ORDERS --subject 'orders.old.>' --force
  fanline stream purge ORDERS --keep 1000 --force
  fanline stream purge ORDERS --seq 5000 --force    messages below 5000")]
pub(crate) struct PurgeArgs {
    /// Name of the stream
    stream: String,
    /// Delete messages of matching subjects only
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,
    /// Delete messages below this sequence
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "keep")]
    seq: Option<u64>,
    /// Keep this many of the last messages
    #[arg(long, value_name = "N", value_parser = values::count)]
    keep: Option<u64>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl PurgeArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.force
            .confirm(&format!("Purge stream {}?", self.stream))?;
        let jetstream = self.jetstream.connect().await?;
        let purge = Purge {
            filter: self.subject,
            seq: self.seq,
            keep: self.keep,
        };
        let purged = jetstream.purge_stream(&self.stream, &purge).await?;
        if self.json.json {
            return print_json(&json!({ "purged": purged }));
        }
        eprintln!(
            "Purged {} messages from {}",
            show::count(purged),
            self.stream
        );
        Ok(())
    }
}
