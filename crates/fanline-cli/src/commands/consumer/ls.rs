//! `fanline consumer ls`: which consumers a stream has.

use clap::Args;

use super::report;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json, print_lines};

/// List the consumers of a stream.
#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// The stream
    stream: String,
    /// Names alone
    #[arg(short, long)]
    names: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl LsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let consumers = jetstream.consumers(&self.stream).await?;
        let names = || consumers.iter().map(|info| info.name.clone());
        match (self.json.json, self.names) {
            (true, _) => print_json(&names().collect::<Vec<_>>()),
            (false, true) => print_lines(names()),
            (false, false) if consumers.is_empty() => {
                eprintln!("Stream {} has no consumers", self.stream);
                Ok(())
            }
            (false, false) => report::print(&consumers),
        }
    }
}
