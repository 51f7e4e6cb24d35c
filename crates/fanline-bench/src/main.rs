//! Fanline beside its rivals: the same load on both, in turn, and the figures side by side.
//!
//! A subcommand is one kind of comparison. The generator and the servers know nothing of reports,
//! the reports nothing of sockets; a subcommand joins them.
//!
//! - `core`: the server against nats-server.
//! - `jetstream`: what both keep, on disk and in memory, against nats-server.
//! - `transports`: the server over TLS and WebSocket, against nats-server.
//! - `interest-simulation`: lines and messages that cross links between hubs and a thousand leafs, counted.
//! - `leaf`: a leaf link to nats-server, with Fanline and with nats-server as the leaf.
//! - `mqtt`: MQTT, and messages between it and NATS, against nats-server and mosquitto.
//! - `micro`: the engine's parts on one core.
//! - `replay`: the library's subjects in the grid of RxPerfTests, messages 1,000 to 1,000,000 by
//!   subscribers 1 to 16, each flavour in both forms, beside a limit written by hand for just that load
//!   (`replay/limits.rs`, where each says what it leaves out), and with `--rivals` beside RxJava 3,
//!   rxRust and tokio's broadcast. All systems of a cell are measured in turns (`turns.rs`), so that a
//!   share is a ratio within one run. Its table of bars says what the library should reach.
//! - `hubs`: the broadcast hub in lockstep to 64 to 100,000 consumers, by each of its ways to send and to
//!   receive, beside a floor written by hand (`hubs/floor.rs`) and with `--rivals` beside tokio's
//!   broadcast, async-broadcast, asyncband and Pekko; joining, memory, slowness and latency; the merge
//!   and the partition hub beside tokio's mpsc. A run that was ended goes on with `--resume`.
//! - `bridge`: a subject that is bound to a server, beside one that is not, and a raw socket.
//! - `schedulers`: values onto another thread, beside floors written by hand (`schedulers/floors.rs`)
//!   and RxJava, with what others have reported in columns of their own.
//! - `all`: all of these, into one report.
//! - `soak`: nothing is compared; the server is loaded with everything at once, stopped and killed, for as
//!   long as one likes, and nothing may be lost, reordered or leaked.
//!
//! Rivals in Java are Maven projects in `rivals`, processes that answer one line for each turn (`jvm.rs`).
//! RxJava has one for each kind of load (`rxjava.rs`). What is measured here is compiled ahead, what runs there is
//! compiled while it runs: it gets a warm-up of its own, before the first turn and before each load.

mod all;
mod allocations;
mod bridge;
mod comparison;
mod core_nats;
mod generator;
mod hubs;
mod interest;
mod jetstream;
mod jvm;
mod leaf;
mod micro;
mod mqtt;
mod replay;
mod report;
mod rxjava;
mod schedulers;
mod servers;
mod soak;
mod transports;
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
    /// Every table, into one report: BENCHMARKS.md
    ///
    /// Takes about an hour with rivals. `--resume` goes on where a run was ended: a table that it has measured
    /// is not measured again. `--no-runs` writes the report of the tables that are there.
    All(all::Arguments),
    /// A subject that is bound to a server: in process, to the wire, there and back
    Bridge(bridge::Arguments),
    /// Core NATS against nats-server: throughput, request/reply, memory
    Core(core_nats::Arguments),
    /// JetStream against nats-server: publishing, consuming, key-value, recovery, disk and memory
    Jetstream(jetstream::Arguments),
    /// TLS and WebSocket against nats-server: throughput, handshakes
    Transports(transports::Arguments),
    /// A leaf link to nats-server: messages, requests, interest, mirrors; against a nats-server leaf
    ///
    /// The hub is nats-server in all rows; the leaf is one of the two. What is told of CPU and memory is
    /// the leaf's.
    Leaf(leaf::Arguments),
    /// MQTT against nats-server and mosquitto: each QoS, to and from NATS, idle clients
    Mqtt(mqtt::Arguments),
    /// What it takes to tell a thousand leafs what the others want: counted, nothing is sent
    ///
    /// A world is drawn from a seed: who wants what. Then lines and messages are counted that would cross
    /// links: until everybody knows, for each subscription that comes or goes, and for each message, by what
    /// hubs tell their leafs of each other. docs/decisions has the figures of the default world.
    InterestSimulation(interest::Arguments),
    /// The engine's parts on one core: matcher, parser, shard; time and allocations
    Micro(micro::Arguments),
    /// Hubs: a broadcast to 64 to 100,000 consumers, against other crates and Pekko; merge, partition
    ///
    /// One producer sends 100,000 elements, fewer where a system would take longer than --run-millis,
    /// and every consumer checks every element. A run is timed from before the hub is there until the
    /// last consumer has ended. All systems of a cell are measured in turns, in alternating order; a
    /// figure is the median over the rounds after a warm-up, and a multiple is the ratio of two medians
    /// of one cell. Then come the cost law, what it costs to join and to leave, memory, allocations, one
    /// slow consumer among fast ones, the latency from a send to the last receive, and the merge and
    /// the partition hub.
    ///
    /// All of it takes about five minutes, with rivals about fifteen; `--quick` one and a half, and
    /// three. With `--json FILE --resume` a run that was ended goes on where it was. Pekko needs Maven
    /// and a JDK: Temurin or OpenJDK 21 or 25 is looked for, else `java` is taken. Debian's JDK 17 has
    /// crashed on Pekko's hub; a JVM that dies is started again, and the report says how often.
    Hubs(hubs::Arguments),
    /// Subjects and replay flavours against hand-written limits, and against RxJava, rxRust and tokio
    ///
    /// One thread emits M messages of u32 to S subscribers, each of which bumps a plain counter. Each
    /// repetition has a fresh subject, and ends with a check that every subscriber has received every
    /// message. All systems of a cell are measured in turns, in alternating order; a figure is the
    /// median over the repetitions after a warm-up, and a share or a multiple is the ratio of two
    /// medians of one cell. Then come allocations per message, what a subscription costs that comes
    /// and goes, and the bars. The limits are in src/replay/limits.rs, with what each leaves out.
    ///
    /// The whole grid takes one and a half minutes, with rivals about six; `--quick` measures what the
    /// bars need, in half a minute and one and a half. Where the code lies in memory moves figures for
    /// many subscribers by a fifth either way, from one build to the next, limits included.
    Replay(replay::Arguments),
    /// Values onto another thread: new thread, thread pool, observe_on; against floors and RxJava
    ///
    /// Three loads: 10,000 items from an iterator on a new thread, counted there; a range of 10,000
    /// observed on the thread pool and counted; and 1,000,000 items through observe_on. Each is timed
    /// from the subscription to the arrival of the count at the thread that waits for it. All systems
    /// of a load are measured in turns, in alternating order; a figure is the median over the
    /// repetitions after a warm-up. Waking a thread takes most of the first two, and differs from one
    /// run to the next on a shared machine: look at the floor of the same run. The floors are in
    /// src/schedulers/floors.rs, with what each leaves out.
    Schedulers(schedulers::Arguments),
    /// Everything at once, for minutes or hours, with restarts and kills: nothing lost, nothing leaked
    ///
    /// A server is loaded with core messages, a stream, MQTT, 10,000 live connections, others that come and go, and
    /// subscribers that do not read, and is stopped and killed meanwhile. Every message is numbered and
    /// looked for. Then memory and open files are watched without restarts. Exits with 1 when anything
    /// acknowledged is lost, anything is out of order, memory grows, or a descriptor stays open.
    Soak(soak::Arguments),
    /// Keeps the cores awake until standard input ends; for the benchmark's own use
    #[command(hide = true, name = SPIN_COMMAND)]
    Spin,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::All(arguments) => all::run(&arguments),
        Command::Bridge(arguments) => bridge::run(&arguments),
        Command::Core(arguments) => {
            servers::process::end_children_on_signals()?;
            core_nats::run(&arguments)
        }
        Command::Jetstream(arguments) => {
            servers::process::end_children_on_signals()?;
            jetstream::run(&arguments)
        }
        Command::Mqtt(arguments) => {
            servers::process::end_children_on_signals()?;
            mqtt::run(&arguments)
        }
        Command::Transports(arguments) => {
            servers::process::end_children_on_signals()?;
            transports::run(&arguments)
        }
        Command::Hubs(arguments) => hubs::run(&arguments),
        Command::Leaf(arguments) => {
            servers::process::end_children_on_signals()?;
            leaf::run(&arguments)
        }
        Command::InterestSimulation(arguments) => interest::run(&arguments),
        Command::Micro(arguments) => micro::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Schedulers(arguments) => schedulers::run(&arguments),
        Command::Soak(arguments) => {
            servers::process::end_children_on_signals()?;
            soak::run(&arguments)
        }
        Command::Spin => generator::awake::spin(),
    }
}
