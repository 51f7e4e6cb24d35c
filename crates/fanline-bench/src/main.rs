//! Comparisons of Fanline with other systems. All systems run the same load in alternation, and a report
//! compares the results.
//!
//! Each subcommand is one kind of comparison. The modules that generate load and start servers do not know
//! reports, and the modules that write reports do not know sockets. A subcommand connects them.
//!
//! The systems in Java are Maven projects in the folder `rivals`. Each is a process that responds to every
//! line of input with one line (`jvm.rs`). RxJava has one process for each kind of load (`rxjava.rs`). Rust
//! code is compiled ahead of time, and Java code at run time. So Java code has a warm-up of its own, before
//! the first turn and before each load.

mod all;
mod allocations;
mod bridge;
mod cluster;
mod compare;
mod comparison;
mod core_nats;
mod engine;
mod footprint;
mod generator;
mod hubs;
mod jetstream;
mod jvm;
mod leaf;
mod micro;
mod mqtt;
mod replay;
mod replicated;
mod report;
mod rxjava;
mod schedulers;
mod servers;
mod subjects;
mod transports;
mod turns;

use anyhow::Result;
use clap::{Parser, Subcommand};
use generator::awake::SPIN_COMMAND;

/// Measures Fanline and other systems under the same loads.
#[derive(Parser)]
#[command(name = "fanline-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure every table, and write one report: BENCHMARKS.md
    ///
    /// Takes about an hour, including the other systems. `--resume` continues an interrupted run without
    /// repeating measured tables. `--no-runs` writes the report from the existing tables.
    All(all::Arguments),
    /// Measure a subject bound to a server: in process, to the network, round trip
    Bridge(bridge::Arguments),
    /// Compare two results of one command, written with --json
    ///
    /// Lists the results of Fanline that got slower or larger than before by more than a given ratio, by metric.
    /// Exits with 1 if there are such results.
    Compare(compare::Arguments),
    /// Compare core NATS with nats-server: throughput, request/reply, memory
    Core(comparison::Comparison),
    /// Compare JetStream with nats-server: publishing, consuming, key-value, recovery, disk and memory
    Jetstream(comparison::site::StoredComparison),
    /// Compare TLS and WebSocket with nats-server: throughput, handshakes
    Transports(comparison::Comparison),
    /// Compare leaf connections to nats-server: messages, requests, interest, mirrors
    ///
    /// The hub is nats-server in all rows. The leaf node is Fanline or nats-server. CPU and memory are those
    /// of the leaf node.
    Leaf(comparison::site::StoredComparison),
    /// Compare clusters of three servers with nats-servers: messages, requests, mesh, interest; also mixed
    ///
    /// CPU and memory are those of all three servers.
    Cluster(comparison::site::StoredComparison),
    /// Compare replicated streams with nats-servers: publishing, consuming, failover, idle costs
    ///
    /// Three servers of each kind, on the disk below --dir: Fanline, nats-server, and nats-server that syncs before each
    /// acknowledgement. CPU and memory are those of all three servers.
    Replicated(comparison::site::StoredComparison),
    /// Compare MQTT with nats-server and mosquitto: each QoS, to and from NATS, idle clients
    Mqtt(mqtt::Arguments),
    /// Measure the engine's parts on one core: matcher, parser, shard, store; time and allocations
    Micro(micro::Arguments),
    /// Measure what a subject costs besides messages: visits of an observer, memory, code size, compile time
    ///
    /// Takes about a minute, and with --rivals about three. Builds small programs with `cargo`, without the network.
    Footprint(footprint::Arguments),
    /// Compare hubs with other crates and Pekko: broadcasts to 64 to 100,000 consumers, merge, partition
    ///
    /// All parts take about five minutes, and with --rivals about fifteen; with --quick one and a half and three.
    /// Pekko needs Maven and a JDK. README.md describes the method.
    Hubs(hubs::Arguments),
    /// Compare subjects and replay flavors with reference loops, RxJava, rxRust, and tokio
    ///
    /// One thread emits messages to 1 to 16 subscribers. The whole grid takes one and a half minutes, and with
    /// --rivals about six. --quick measures only the cells that have targets, in half a minute, or one and a half
    /// with --rivals. README.md describes the method.
    Replay(replay::Arguments),
    /// Compare values on another thread with reference loops and RxJava: new thread, thread pool, observe_on
    ///
    /// Waking a thread takes most of the time of the loads with 10,000 items, and varies between runs on a shared
    /// machine. So compare results with the reference loop ("floor") of the same run.
    Schedulers(turns::Options),
    /// Keep the cores awake until standard input ends; for internal use
    #[command(hide = true, name = SPIN_COMMAND)]
    Spin,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::All(arguments) => all::run(&arguments),
        Command::Bridge(arguments) => bridge::run(&arguments),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Core(arguments) => core_nats::run(&arguments),
        Command::Jetstream(arguments) => jetstream::run(&arguments),
        Command::Mqtt(arguments) => mqtt::run(&arguments),
        Command::Transports(arguments) => transports::run(&arguments),
        Command::Footprint(arguments) => footprint::run(&arguments),
        Command::Hubs(arguments) => hubs::run(&arguments),
        Command::Leaf(arguments) => leaf::run(&arguments),
        Command::Micro(arguments) => micro::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Replicated(arguments) => replicated::run(&arguments),
        Command::Schedulers(arguments) => schedulers::run(&arguments),
        Command::Spin => generator::awake::spin(),
    }
}
