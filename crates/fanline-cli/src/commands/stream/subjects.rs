//! `fanline stream subjects`: lists the subjects of a stream.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json, print_lines};
use crate::show;
use crate::table::Table;

/// List the subjects of a stream with their numbers of messages.
#[derive(Args, Debug)]
pub(crate) struct SubjectsArgs {
    /// Name of the stream
    stream: String,
    /// Filter of subjects
    #[arg(default_value = ">", hide_default_value = true)]
    filter: String,
    /// Print subjects only
    #[arg(short, long)]
    names: bool,
    /// Sort by subject, not by number of messages
    #[arg(long)]
    sort_names: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl SubjectsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let subjects = jetstream
            .stream_subjects(&self.stream, &self.filter)
            .await?;
        if self.json.json {
            return print_json(&subjects);
        }
        let mut rows: Vec<(String, u64)> = subjects.into_iter().collect();
        if !self.sort_names {
            // The map is sorted by name. The stable sort keeps this order for equal counts.
            rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        }
        if self.names {
            return print_lines(rows.into_iter().map(|(subject, _)| subject));
        }
        let mut table = Table::new(["Subject", ">Messages"]);
        for (subject, count) in rows {
            table.row([subject, show::count(count)]);
        }
        table.print()
    }
}
