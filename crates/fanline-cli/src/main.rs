//! The command `fanline`: a NATS-compatible server, and tools to publish, subscribe, request, and measure
//! with any NATS server. Under the name `nats-server` it replaces that program.

mod args;
mod bench;
mod commands;
mod connection;
mod failure;
mod files;
mod jetstream;
mod monitor;
mod output;
mod payload;
mod record;
#[cfg(feature = "server")]
mod server;
mod show;
mod table;
mod terminal;
mod value;
mod values;

use std::process::ExitCode;

use clap::Parser;
#[cfg(feature = "server")]
use server::{run_without_command, version};

/// Program name in messages, unless it runs as nats-server.
const FANLINE: &str = "fanline";

fn main() -> ExitCode {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    if let Some(code) = run_without_command(&program, &arguments) {
        return code;
    }
    match args::Cli::try_parse() {
        Ok(cli) => cli.command.run(),
        Err(error) => refuse(&error, arguments.first().map_or("", String::as_str)),
    }
}

/// Reports wrong arguments. For a server, the exit code is that of nats-server. For tools it is 2, so that
/// scripts can distinguish wrong arguments from other failures.
fn refuse(error: &clap::Error, first: &str) -> ExitCode {
    // Ignore a closed stderr.
    let _ = error.print();
    let starts_server = first.starts_with('-') || first == "serve";
    match error.use_stderr() {
        true if starts_server => ExitCode::from(1),
        // Monitoring systems treat 2 as "critical", but the state is unknown.
        true if first == "check" => ExitCode::from(3),
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    }
}

/// Returns `None`, because without the feature `server` the program needs a command.
#[cfg(not(feature = "server"))]
fn run_without_command(_program: &str, _arguments: &[String]) -> Option<ExitCode> {
    None
}

/// Returns the output of `fanline version`.
#[cfg(not(feature = "server"))]
fn version(program: &str) -> String {
    format!(
        "{program}: v{} (without the server)\n",
        env!("CARGO_PKG_VERSION")
    )
}
