//! `fanline consumer report`: progress of the consumers of a stream.

use clap::Args;
use fanline_client::jetstream::ConsumerInfo;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::show;
use crate::table::Table;

/// Compare the progress of a stream's consumers, with the largest backlog first.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Name of the stream
    stream: String,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl ReportArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut consumers = jetstream.consumers(&self.stream).await?;
        consumers.sort_by_key(|info| std::cmp::Reverse(info.num_pending));
        match self.json.json {
            true => print_json(&consumers),
            false => print(&consumers),
        }
    }
}

pub(super) fn print(consumers: &[ConsumerInfo]) -> Result<(), Failure> {
    let mut table = Table::new([
        "Consumer",
        "Mode",
        "Ack policy",
        ">Ack wait",
        ">Ack pending",
        ">Redelivered",
        ">Unprocessed",
        ">Ack floor",
        "Last delivery",
    ]);
    for info in consumers {
        let mode = match (info.config.is_push(), info.paused) {
            (_, true) => "paused",
            (true, false) => "push",
            (false, false) => "pull",
        };
        table.row([
            info.name.clone(),
            mode.to_owned(),
            show::word(&info.config.ack_policy),
            info.config.ack_wait.to_string(),
            show::count(info.num_ack_pending),
            show::count(info.num_redelivered),
            show::count(info.num_pending),
            show::count(info.ack_floor.stream_seq),
            info.delivered
                .last_active
                .map_or_else(|| "never".to_owned(), show::ago),
        ]);
    }
    table.print()
}
