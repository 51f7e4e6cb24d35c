//! `fanline stream ls`: lists streams.

use clap::Args;
use fanline_client::jetstream::StreamInfo;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json, print_lines};
use crate::show;
use crate::table::Table;

/// List streams.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream ls
  fanline stream ls --subject orders.new    the stream that stores it
  fanline stream ls --names                 one name per line")]
pub(crate) struct LsArgs {
    /// Streams that store a matching subject
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,
    /// Print names only
    #[arg(short, long)]
    names: bool,
    /// Include buckets and object stores
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

/// Name prefixes of the streams behind buckets and object stores, which other commands list.
const BUILT_ON: [&str; 2] = ["KV_", "OBJ_"];

impl LsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let is_shown = |name: &str| self.all || !BUILT_ON.iter().any(|p| name.starts_with(p));
        if self.names || self.json.json {
            let mut names = jetstream.stream_names(&self.subject).await?;
            names.retain(|name| is_shown(name));
            return match self.json.json {
                true => print_json(&names),
                false => print_lines(names),
            };
        }
        let mut streams = jetstream.streams(&self.subject).await?;
        let total = streams.len();
        streams.retain(|info| is_shown(&info.config.name));
        if streams.is_empty() {
            let hidden = if total > 0 {
                " except those of buckets; --all shows them"
            } else {
                ""
            };
            eprintln!("No streams{hidden}");
            return Ok(());
        }
        print(&streams)
    }
}

pub(super) fn print(streams: &[StreamInfo]) -> Result<(), Failure> {
    let mut table = Table::new([
        "Name",
        "Subjects",
        "Storage",
        ">Messages",
        ">Size",
        ">Consumers",
        "Created",
        "Last message",
    ]);
    for info in streams {
        let state = &info.state;
        table.row([
            info.config.name.clone(),
            shortened(&info.config.subjects),
            show::word(&info.config.storage),
            show::count(state.messages),
            show::bytes(state.bytes),
            show::count(state.consumer_count),
            show::time(info.created),
            show::ago(state.last_ts),
        ]);
    }
    table.print()
}

/// Returns the first two subjects, and how many more there are.
fn shortened(subjects: &[String]) -> String {
    let first = subjects
        .iter()
        .take(2)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match subjects.len().saturating_sub(2) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
