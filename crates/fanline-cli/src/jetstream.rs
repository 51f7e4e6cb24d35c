//! What every command about streams, consumers, buckets and objects has.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Duration;

use clap::Args;
use fanline_client::Client;
use fanline_client::jetstream::JetStream;
use serde::Serialize;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Which JetStream to talk to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct JetStreamArgs {
    /// JetStream domain, for servers behind a leaf node
    #[arg(long, alias = "js-domain", value_name = "DOMAIN")]
    domain: Option<String>,
    /// How long to wait for an answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

impl JetStreamArgs {
    pub(crate) async fn connect(&self) -> Result<JetStream, Failure> {
        Ok(self.over(&self.connection.connect().await?))
    }

    /// Connects again after the connection was lost, for as long as it takes, and says so.
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

/// For commands that print something to be read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct JsonArgs {
    /// Print JSON for programs
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// For commands that print a list.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArgs {
    /// Names alone
    #[arg(short, long)]
    pub(crate) names: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

impl ListArgs {
    /// Names for programs, names one a line, or a table; that there is nothing is said beside the output.
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

/// For commands that remove something.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ForceArgs {
    /// Do not ask whether it is meant
    #[arg(short, long)]
    force: bool,
}

impl ForceArgs {
    /// Asks on a terminal; elsewhere nobody can answer, and `--force` says that it is meant.
    pub(crate) fn confirm(self, question: &str) -> Result<(), Failure> {
        if self.force {
            return Ok(());
        }
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(Failure::Usage(format!("{question} Say so with --force")));
        }
        print!("{question} (y/N) ");
        stdout().flush()?;
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::Error("nothing was done".to_owned())),
        }
    }
}

/// Prints what a program reads.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(|error| Failure::from(std::io::Error::from(error)))?;
    writeln!(out)?;
    Ok(())
}

/// Prints lines, and takes a closed pipe for the end of the reader's interest.
pub(crate) fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(stdout().lock());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}
