//! The command `fanline`: a NATS-compatible server, and tools to publish, subscribe, request and
//! measure against any NATS server.

mod args;
mod commands;
mod connection;
mod failure;
mod output;
mod payload;
mod terminal;
mod values;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match args::Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("fanline"),
    }
}
