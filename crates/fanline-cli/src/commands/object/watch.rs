//! `fanline object watch`: prints changes as they happen.

use std::io::{Write, stdout};

use clap::Args;
use fanline_client::jetstream::ObjectInfo;

use crate::connection::interrupted;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::terminal::{Colour, stdout_is_colourful};
use crate::{show, values};

/// Print the current objects, and then every change, until interrupted.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Name of the store
    bucket: String,
    /// Print changes only, without current objects
    #[arg(long)]
    updates_only: bool,
    /// Exit after this many changes
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl WatchArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let store = jetstream.object_store(&self.bucket).await?;
        let mut watch = store.watch(self.updates_only).await?;
        eprintln!("Watching {}", self.bucket);
        let mut printed = 0;
        let mut interrupted = std::pin::pin!(interrupted());
        while self.count.is_none_or(|count| printed < count) {
            let info = tokio::select! {
                info = watch.next() => info?,
                () = &mut interrupted => break,
            };
            if let Some(info) = info {
                self.print(&info)?;
                printed += 1;
            }
        }
        watch.close().await?;
        Ok(())
    }

    fn print(&self, info: &ObjectInfo) -> Result<(), Failure> {
        let mut out = stdout().lock();
        if self.json.json {
            let line = serde_json::to_string(info).map_err(std::io::Error::from)?;
            writeln!(out, "{line}")?;
            return Ok(());
        }
        let colourful = stdout_is_colourful();
        let time = show::time(info.mtime);
        let name = &info.meta.name;
        match info.deleted {
            true => writeln!(
                out,
                "[{time}] {} {name}",
                Colour::Red.paint("DEL", colourful)
            )?,
            false => {
                let put = Colour::Green.paint("PUT", colourful);
                writeln!(out, "[{time}] {put} {name}: {}", show::bytes(info.size))?;
            }
        }
        Ok(())
    }
}
