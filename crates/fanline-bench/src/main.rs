//! Fanline beside its rivals: the same load on both, in turn, and the figures side by side.
//!
//! A subcommand is one kind of comparison. The generator and the servers know nothing of reports,
//! the reports nothing of sockets; a subcommand joins them.

mod core_nats;
mod generator;
mod report;
mod servers;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measures Fanline against its rivals, both alike.
#[derive(Parser)]
#[command(name = "fanline-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Core NATS against nats-server: throughput, request/reply, memory
    Core(core_nats::Arguments),
}

fn main() -> Result<()> {
    servers::process::end_children_on_signals()?;
    match Arguments::parse().command {
        Command::Core(arguments) => core_nats::run(&arguments),
    }
}
