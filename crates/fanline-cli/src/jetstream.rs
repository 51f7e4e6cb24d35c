//! Options common to commands for streams, consumers, buckets, and objects.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Duration;

use clap::Args;
use fanline_client::Client;
use fanline_client::jetstream::JetStream;
use serde::Serialize;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Prefix of the metadata keys that the server adds.
pub(crate) const SERVER_METADATA_PREFIX: &str = "_nats.";

/// Options that select a JetStream API.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct JetStreamArgs {
    /// JetStream domain, for servers behind a leaf node
    #[arg(long, alias = "js-domain", value_name = "DOMAIN")]
    domain: Option<String>,
    /// How long to wait for a response
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

impl JetStreamArgs {
    pub(crate) async fn connect(&self) -> Result<JetStream, Failure> {
        Ok(self.over(&self.connection.connect().await?))
    }

    /// Reconnects after a lost connection, with unlimited attempts, and reports it on stderr.
    pub(crate) async fn reconnect(&self, lost: &str) -> Result<JetStream, Failure> {
        Ok(self.over(&self.connection.reconnect(lost).await?))
    }

    fn over(&self, client: &Client) -> JetStream {
        let jetstream = JetStream::new(client).timeout(self.timeout);
        match &self.domain {
            Some(domain) => jetstream.domain(domain),
            None => jetstream,
        }
    }
}

/// Option of commands that print data.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Options of commands that print a list.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArgs {
    /// Print names only
    #[arg(short, long)]
    pub(crate) names: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

impl ListArgs {
    /// Prints JSON, names one per line, or a table. An empty table becomes the message `nothing` on stderr.
    pub(crate) fn print<T>(
        self,
        found: &[T],
        name: impl Fn(&T) -> String,
        nothing: &str,
        table: impl FnOnce(&[T]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let names = found.iter().map(name);
        match (self.json.json, self.names) {
            (true, _) => print_json(&names.collect::<Vec<_>>()),
            (false, true) => print_lines(names),
            (false, false) if found.is_empty() => {
                eprintln!("{nothing}");
                Ok(())
            }
            (false, false) => table(found),
        }
    }
}

/// Option of commands that need a confirmation.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ForceArgs {
    /// Do not ask for confirmation
    #[arg(short, long)]
    force: bool,
}

impl ForceArgs {
    /// Asks for confirmation on a terminal. Without a terminal, `--force` is required.
    pub(crate) fn confirm(self, question: &str) -> Result<(), Failure> {
        if self.force {
            return Ok(());
        }
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(Failure::Usage(format!("{question} Use --force to confirm")));
        }
        print!("{question} (y/N) ");
        stdout().flush()?;
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::Error("canceled".to_owned())),
        }
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(|error| Failure::from(std::io::Error::from(error)))?;
    writeln!(out)?;
    Ok(())
}

/// Prints lines. A closed pipe ends the output.
pub(crate) fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(stdout().lock());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}
