//! Comparisons of Fanline with other systems. All systems run the same load in alternation, and a report
//! compares the results.
//!
//! Each subcommand is one kind of comparison. The modules that generate load and start servers do not know
//! reports, and the modules that write reports do not know sockets. A subcommand connects them.
//!
//! - `core`: core NATS, compared with nats-server.
//! - `jetstream`: storage on disk and in memory, compared with nats-server.
//! - `transports`: the server over TLS and WebSocket, compared with nats-server.
//! - `interest-simulation`: counts the lines and messages that cross connections between hubs and a thousand
//!   leaf nodes.
//! - `leaf`: a leaf connection to nats-server, with Fanline and with nats-server as the leaf node.
//! - `mqtt`: MQTT, and messages between MQTT and NATS, compared with nats-server and mosquitto.
//! - `micro`: the engine's parts on one core.
//! - `replay`: the library's subjects with the loads of RxPerfTests: 1,000 to 1,000,000 messages to 1 to 16
//!   subscribers. Each flavor is measured in both forms, next to a reference loop for exactly this load
//!   (`replay/reference_loops.rs`, which lists what the loop omits). With `--rivals` also RxJava 3, rxRust,
//!   and tokio's broadcast are measured. All systems of a cell are measured in alternation (`turns.rs`), so a
//!   share is a ratio within one run. A further table lists the library's targets.
//! - `hubs`: the broadcast hub in lockstep with 64 to 100,000 consumers, with each of its methods to send and
//!   to receive, next to a hand-written reference loop (`hubs/floor.rs`). With `--rivals` also tokio's
//!   broadcast, async-broadcast, asyncband, and Pekko are measured. Further tables measure joining, memory,
//!   slow consumers, and latency, and compare the merge and the partition hub with tokio's mpsc. `--resume`
//!   continues an interrupted run.
//! - `bridge`: a subject bound to a server, compared with an unbound one and a raw socket.
//! - `schedulers`: values on another thread, compared with hand-written reference loops
//!   (`schedulers/floors.rs`) and RxJava. Published results of other libraries are in separate columns.
//! - `all`: all of these, in one report.
//! - `soak`: no comparison. It runs all kinds of load on the server for any length of time, stops and kills
//!   the server, and checks that nothing is lost, reordered, or leaked.
//!
//! The systems in Java are Maven projects in the folder `rivals`. Each is a process that responds to every
//! line of input with one line (`jvm.rs`). RxJava has one process for each kind of load (`rxjava.rs`). Rust
//! code is compiled ahead of time, and Java code at run time. So Java code has a warm-up of its own, before
//! the first turn and before each load.

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

/// Measures Fanline against its rivals under the same loads.
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
    /// Takes about an hour with rivals. `--resume` continues an interrupted run without repeating measured
    /// tables. `--no-runs` writes the report of the existing tables.
    All(all::Arguments),
    /// A subject bound to a server: in process, to the network, round trip
    Bridge(bridge::Arguments),
    /// Core NATS against nats-server: throughput, request/reply, memory
    Core(core_nats::Arguments),
    /// JetStream against nats-server: publishing, consuming, key-value, recovery, disk and memory
    Jetstream(jetstream::Arguments),
    /// TLS and WebSocket against nats-server: throughput, handshakes
    Transports(transports::Arguments),
    /// A leaf link to nats-server, against a nats-server leaf: messages, requests, interest, mirrors
    ///
    /// The hub is nats-server in all rows. The leaf is either server. CPU and memory are those of the leaf.
    Leaf(leaf::Arguments),
    /// MQTT against nats-server and mosquitto: each QoS, to and from NATS, idle clients
    Mqtt(mqtt::Arguments),
    /// Cost of distributing interest among a thousand leaf nodes: counted, nothing is sent
    ///
    /// Draws a world with interest of each leaf from a seed. Then counts the lines and messages that would
    /// cross links: until all interest is distributed, for each added or removed subscription, and for each
    /// message, for several policies of the hubs. docs/decisions contains the results of the default world.
    InterestSimulation(interest::Arguments),
    /// The engine's parts on one core: matcher, parser, shard; time and allocations
    Micro(micro::Arguments),
    /// Hubs: a broadcast to 64 to 100,000 consumers, against other crates and Pekko; merge, partition
    ///
    /// One producer sends 100,000 elements, fewer if a system would take longer than --run-millis, and every
    /// consumer checks every element. A run is timed from before the hub is created until the last consumer
    /// has ended. All systems of a cell are measured in alternating order. A result is the median over the
    /// rounds after a warm-up, and a multiple is the ratio of two medians of one cell. Further tables measure
    /// the cost law, joining and leaving, memory, allocations, one slow consumer among fast ones, the latency
    /// from a send to the last receive, and the merge and the partition hub.
    ///
    /// All parts take about five minutes, with rivals about fifteen; with `--quick` one and a half, and
    /// three. `--json FILE --resume` continues an interrupted run. Pekko needs Maven and a JDK: Temurin or
    /// OpenJDK 21 or 25 is preferred, otherwise `java` is used. Debian's JDK 17 has crashed on Pekko's hub; a
    /// crashed JVM is restarted, and the report counts restarts.
    Hubs(hubs::Arguments),
    /// Subjects and replay flavors against reference loops, and against RxJava, rxRust and tokio
    ///
    /// One thread emits M messages of u32 to S subscribers, each of which increments a plain counter. Each
    /// repetition has a fresh subject, and ends with a check that every subscriber has received every
    /// message. All systems of a cell are measured in alternating order. A result is the median over the
    /// repetitions after a warm-up, and a share or a multiple is the ratio of two medians of one cell.
    /// Further tables measure allocations per message, the cost of subscribing and unsubscribing, and the
    /// targets. The reference loops are in src/replay/reference_loops.rs, with their omissions.
    ///
    /// The whole grid takes one and a half minutes, with rivals about six; `--quick` measures the cells of
    /// the targets, in half a minute and one and a half. The position of the code in memory changes results for
    /// many subscribers by a fifth from one build to the next, reference loops included.
    Replay(replay::Arguments),
    /// Values on another thread: new thread, thread pool, observe_on; against floors and RxJava
    ///
    /// Three loads: 10,000 items from an iterator on a new thread, counted there; a range of 10,000 observed
    /// on the thread pool and counted; and 1,000,000 items through observe_on. Each is timed from the
    /// subscription until the waiting thread has the count. All systems of a load are measured in alternating
    /// order. A result is the median over the repetitions after a warm-up. Waking a thread takes most of the
    /// first two, and varies between runs on a shared machine: compare with the floor of the same run. The
    /// floors are in src/schedulers/floors.rs, with their omissions.
    Schedulers(schedulers::Arguments),
    /// All kinds of load at once, for minutes or hours, with restarts and kills: nothing lost, nothing leaked
    ///
    /// Loads a server with core messages, a stream, MQTT, 10,000 live connections, short-lived connections,
    /// and subscribers that do not read, and meanwhile stops and kills it. Every message is numbered and
    /// checked. Then memory and open files are observed without restarts. Exits with 1 if an acknowledged
    /// message is lost, messages are out of order, memory grows, or a descriptor stays open.
    Soak(soak::Arguments),
    /// Keeps the cores awake until standard input ends; for internal use
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
