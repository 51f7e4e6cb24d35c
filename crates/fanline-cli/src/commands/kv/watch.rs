//! `fanline kv watch`: prints changes as they happen.

use std::io::{Write, stdout};

use clap::Args;
use fanline_client::ClientError;
use fanline_client::jetstream::{Entry, JetStream, JetStreamError, Operation, WatchOptions};

use super::table;
use crate::connection::interrupted;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::terminal::{Colour, stdout_is_colourful};
use crate::{show, values};

/// Print the current values of keys, and then every change, until interrupted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline kv watch prices
  fanline kv watch prices 'coffee.>' --history
  fanline kv watch prices --updates-only --json | jq .key

After a lost connection, reconnects and continues; messages about that go to stderr.")]
pub(crate) struct WatchArgs {
    /// Name of the bucket
    bucket: String,
    /// Filter of keys
    #[arg(default_value = ">", hide_default_value = true)]
    key: String,
    /// Start with the stored history of each key, not its last value only
    #[arg(long, conflicts_with = "updates_only")]
    history: bool,
    /// Print changes only, without current values
    #[arg(long)]
    updates_only: bool,
    /// Skip deletions
    #[arg(long)]
    ignore_deletes: bool,
    /// Start at this revision
    #[arg(long, value_name = "N", conflicts_with_all = ["history", "updates_only"])]
    revision: Option<u64>,
    /// Exit after this many changes
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

/// Progress of the watch, which continues after a reconnect.
#[derive(Default)]
struct Seen {
    entries: u64,
    /// Last printed revision.
    revision: Option<u64>,
}

impl WatchArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut jetstream = self.jetstream.connect().await?;
        let mut seen = Seen::default();
        let mut interrupted = std::pin::pin!(interrupted());
        loop {
            let outcome = tokio::select! {
                outcome = self.watch(&jetstream, &mut seen) => outcome,
                () = &mut interrupted => return Ok(()),
            };
            let Err(JetStreamError::Client(ClientError::Disconnected(reason))) = outcome else {
                return Ok(outcome?);
            };
            let reason = reason.to_string();
            jetstream = tokio::select! {
                jetstream = self.jetstream.reconnect(&reason) => jetstream?,
                () = &mut interrupted => return Ok(()),
            };
        }
    }

    async fn watch(&self, jetstream: &JetStream, seen: &mut Seen) -> Result<(), JetStreamError> {
        let bucket = jetstream.bucket(&self.bucket).await?;
        let options = WatchOptions {
            with_history: self.history,
            updates_only: self.updates_only,
            ignore_deletes: self.ignore_deletes,
            meta_only: false,
            from_revision: seen.revision.map(|last| last + 1).or(self.revision),
        };
        let mut watch = bucket.watch(&self.key, options).await?;
        eprintln!("Watching \"{}\" of {}", self.key, self.bucket);
        while self.count.is_none_or(|count| seen.entries < count) {
            if let Some(entry) = watch.next().await? {
                self.print(&entry)?;
                seen.entries += 1;
                seen.revision = Some(entry.revision);
            }
        }
        watch.close().await
    }

    fn print(&self, entry: &Entry) -> Result<(), JetStreamError> {
        let mut out = stdout().lock();
        if self.json.json {
            writeln!(out, "{}", table::to_json(entry))?;
            return Ok(());
        }
        let colour = match entry.operation {
            Operation::Put => Colour::Green,
            Operation::Delete | Operation::Purge => Colour::Red,
        };
        let operation = colour.paint(entry.operation.word(), stdout_is_colourful());
        let time = show::time(entry.created);
        let value = match entry.operation {
            Operation::Put => format!(": {}", table::shortened(&entry.value)),
            Operation::Delete | Operation::Purge => String::new(),
        };
        writeln!(
            out,
            "[{time}] {operation} {} #{}{value}",
            entry.key, entry.revision
        )?;
        Ok(())
    }
}
