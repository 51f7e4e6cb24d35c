//! `fanline kv ls`: lists buckets, or the keys of a bucket.

use clap::Args;
use fanline_client::jetstream::{JetStream, StreamInfo};

use super::details::bucket_of;
use super::table;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs, print_json, print_lines};
use crate::show;
use crate::table::Table;

/// List buckets, or the keys of a bucket.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv ls                      buckets
  fanline kv ls prices               keys
  fanline kv ls prices 'coffee.>' -v keys with revision and value")]
pub(crate) struct LsArgs {
    /// Name of the bucket
    bucket: Option<String>,
    /// Filter of keys
    #[arg(default_value = ">", hide_default_value = true)]
    filter: String,
    /// Show revisions and values of the keys
    #[arg(short, long, alias = "display-value")]
    verbose: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl LsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        match &self.bucket {
            Some(bucket) => self.list_keys(&jetstream, bucket).await,
            None => self.list_buckets(&jetstream).await,
        }
    }

    async fn list_keys(&self, jetstream: &JetStream, bucket: &str) -> Result<(), Failure> {
        let bucket = jetstream.bucket(bucket).await?;
        let mut entries = bucket.entries(&self.filter, !self.verbose).await?;
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        match (self.list.json.json, self.verbose) {
            (true, true) => print_json(&entries.iter().map(table::to_json).collect::<Vec<_>>()),
            (true, false) => print_json(&entries.iter().map(|e| &e.key).collect::<Vec<_>>()),
            (false, true) => table::print(&entries, true),
            (false, false) => print_lines(entries.into_iter().map(|entry| entry.key)),
        }
    }

    async fn list_buckets(&self, jetstream: &JetStream) -> Result<(), Failure> {
        let mut buckets = jetstream.buckets().await?;
        buckets.sort_by(|a, b| a.config.name.cmp(&b.config.name));
        let name = |info: &StreamInfo| bucket_of(info).to_owned();
        let nothing = "No buckets";
        self.list.print(&buckets, name, nothing, print_buckets)
    }
}

fn print_buckets(buckets: &[StreamInfo]) -> Result<(), Failure> {
    let mut table = Table::new([
        "Bucket",
        "Description",
        ">Keys",
        ">Values",
        ">Size",
        ">History",
        "Created",
        "Last change",
    ]);
    for info in buckets {
        table.row([
            bucket_of(info).to_owned(),
            info.config.description.clone(),
            show::count(info.state.num_subjects),
            show::count(info.state.messages),
            show::bytes(info.state.bytes),
            info.config.max_msgs_per_subject.to_string(),
            show::time(info.created),
            show::ago(info.state.last_ts),
        ]);
    }
    table.print()
}
