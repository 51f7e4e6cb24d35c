//! `fanline stream report`: compares all streams.

use clap::{Args, ValueEnum};
use fanline_client::jetstream::StreamInfo;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::show;
use crate::table::Table;

/// Compare streams by size and state.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Streams that store a matching subject
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,
    /// Sort key; the largest stream comes first
    #[arg(long, value_enum, default_value_t = Sort::Bytes)]
    sort: Sort,
    /// Sort by messages
    #[arg(long, conflicts_with_all = ["sort", "consumers", "name"])]
    messages: bool,
    /// Sort by consumers
    #[arg(long, conflicts_with_all = ["sort", "messages", "name"])]
    consumers: bool,
    /// Sort by name
    #[arg(long, conflicts_with_all = ["sort", "messages", "consumers"])]
    name: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    Bytes,
    Messages,
    Consumers,
    Name,
}

impl ReportArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut streams = jetstream.streams(&self.subject).await?;
        self.sort(&mut streams);
        if self.json.json {
            return print_json(&streams);
        }
        let mut table = Table::new([
            "Stream",
            "Storage",
            ">Consumers",
            ">Messages",
            ">Bytes",
            ">Subjects",
            ">Deleted",
            ">Lost",
            "Copies",
        ]);
        let mut total = (0, 0, 0);
        for info in &streams {
            let state = &info.state;
            let lost = state.lost.as_ref().map_or(0, |lost| lost.messages);
            total.0 += state.consumer_count;
            total.1 += state.messages;
            total.2 += state.bytes;
            table.row([
                info.config.name.clone(),
                show::word(&info.config.storage),
                show::count(state.consumer_count),
                show::count(state.messages),
                show::bytes(state.bytes),
                show::count(state.num_subjects),
                show::count(state.num_deleted),
                show::count(lost),
                origins(info),
            ]);
        }
        let all = match streams.len() {
            1 => "1 stream".to_owned(),
            count => format!("{count} streams"),
        };
        let empty = String::new;
        table.row([
            all,
            empty(),
            show::count(total.0),
            show::count(total.1),
            show::bytes(total.2),
            empty(),
            empty(),
            empty(),
            empty(),
        ]);
        table.print()
    }

    fn sort(&self, streams: &mut [StreamInfo]) {
        let sort = match (self.messages, self.consumers, self.name) {
            (true, _, _) => Sort::Messages,
            (_, true, _) => Sort::Consumers,
            (_, _, true) => Sort::Name,
            _ => self.sort,
        };
        match sort {
            Sort::Bytes => streams.sort_by_key(|s| std::cmp::Reverse(s.state.bytes)),
            Sort::Messages => streams.sort_by_key(|s| std::cmp::Reverse(s.state.messages)),
            Sort::Consumers => streams.sort_by_key(|s| std::cmp::Reverse(s.state.consumer_count)),
            Sort::Name => streams.sort_by(|a, b| a.config.name.cmp(&b.config.name)),
        }
    }
}

/// Returns the origins of a stream, each with its lag.
fn origins(info: &StreamInfo) -> String {
    let all = info.mirror.iter().chain(&info.sources);
    let texts = all.map(|origin| format!("{} (-{})", origin.name, show::count(origin.lag)));
    texts.collect::<Vec<_>>().join(", ")
}
