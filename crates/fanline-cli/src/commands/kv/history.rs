//! `fanline kv history`: prints the history of a key.

use clap::Args;
use fanline_client::jetstream::JetStreamError;

use super::table;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Show the stored history of a key.
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Name of the bucket
    bucket: String,
    /// The key, or a filter of keys
    key: String,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl HistoryArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let entries = bucket.history(&self.key).await?;
        if entries.is_empty() {
            return Err(JetStreamError::NotFound {
                what: "key",
                name: self.key,
            }
            .into());
        }
        match self.json.json {
            true => print_json(&entries.iter().map(table::to_json).collect::<Vec<_>>()),
            false => table::print(&entries, true),
        }
    }
}
