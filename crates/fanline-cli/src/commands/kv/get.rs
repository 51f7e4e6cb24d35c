//! `fanline kv get`: prints the value of a key.

use std::io::{Write, stdout};

use clap::Args;
use fanline_client::jetstream::{Entry, JetStreamError};

use super::table;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::show;

/// Print the value of a key.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv get prices coffee.small
  fanline kv get prices coffee.small --raw
  fanline kv get prices coffee.small --revision 7")]
pub(crate) struct GetArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    /// Print the value at this revision
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// Print the bytes of the value only
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl GetArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let entry = match self.revision {
            Some(revision) => bucket.get_revision(&self.key, revision).await?,
            None => bucket.get(&self.key).await?,
        };
        let entry = entry.ok_or_else(|| JetStreamError::NotFound {
            what: "key",
            name: self.key.clone(),
        })?;
        if self.json.json {
            return print_json(&table::to_json(&entry));
        }
        self.print(&entry)
    }

    fn print(&self, entry: &Entry) -> Result<(), Failure> {
        let mut out = stdout().lock();
        if self.raw {
            out.write_all(&entry.value)?;
            out.flush()?;
            return Ok(());
        }
        let Entry { key, revision, .. } = entry;
        let written = show::time(entry.created);
        writeln!(
            out,
            "{}.{key} revision {revision} written {written}\n",
            self.bucket
        )?;
        out.write_all(&entry.value)?;
        writeln!(out)?;
        Ok(())
    }
}
