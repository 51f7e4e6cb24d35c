//! Fanline beside its rivals: the same load on both, in turn, and the figures side by side.
//!
//! A subcommand is one kind of comparison. The generator and the servers know nothing of reports,
//! the reports nothing of sockets; a subcommand joins them.

mod allocations;
mod core_nats;
mod generator;
mod hubs;
mod micro;
mod replay;
mod report;
mod rxjava;
mod servers;
mod turns;

use anyhow::Result;
use clap::{Parser, Subcommand};
use generator::awake::SPIN_COMMAND;

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
    /// The engine's parts on one core: matcher, parser, shard; time and allocations
    Micro(micro::Arguments),
    /// The broadcast hub in lockstep, against other crates
    Hubs(hubs::Arguments),
    /// Subjects and replay flavours against hand-written limits, and against RxJava, rxRust and tokio
    Replay(replay::Arguments),
    /// Keeps the cores awake until standard input ends; for the benchmark's own use
    #[command(hide = true, name = SPIN_COMMAND)]
    Spin,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Core(arguments) => {
            servers::process::end_children_on_signals()?;
            core_nats::run(&arguments)
        }
        Command::Hubs(arguments) => hubs::run(&arguments),
        Command::Micro(arguments) => micro::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Spin => generator::awake::spin(),
    }
}
