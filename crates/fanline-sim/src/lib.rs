//! A whole server in one thread, under a seed: shards, mailboxes, the JetStream service, its disk, a clock, and clients
//! of NATS and MQTT.
//!
//! The engine performs no I/O, so the real engine runs here, and only the I/O layer around it is replaced.
//! [`Server`] obeys the order of calls that the engine requires, as the runtime of `fanline-server` does. The
//! seed chooses everything else: which thread acts next, how many bytes arrive, when a sync ends, when time
//! passes, and when the power is cut. Models check what clients see. The models know what the server
//! promises, and do not use the engine.
//!
//! # What is simulated
//!
//! - One to three shards, their mailboxes, work of the JetStream service on a shard's thread, and reloads that each
//!   thread applies at its own time.
//! - NATS clients: publish with and without headers, wildcards, queue groups, `UNSUB` with a maximum, no echo; clients
//!   that do not read for a while, with sockets of different sizes; connections that close at any moment.
//! - JetStream: streams with different limits and retention, in files and in memory; message ids, expected sequences,
//!   pull consumers, explicit and confirmed acknowledgements, deletions, and purges.
//! - MQTT 3.1.1 clients: persistent and clean sessions, QoS 0 to 2, wills, messages between both protocols.
//! - Accidents: the process is killed, or the power is cut and an arbitrary part of the unsynced data
//!   survives.
//!
//! # What is not simulated
//!
//! Sockets, TLS, WebSocket, threads, and atomics, which belong to `fanline-server`; leaf nodes; push
//! consumers, mirrors, and sources; MQTT 5.0; imports between accounts; disks that fail or flip bits, which
//! the engine's own tests cover.
//!
//! # Replay a seed
//!
//! A failure names its seed, and prints the last steps. The same seed repeats the same steps:
//!
//! ```sh
//! cargo run --release -p fanline-sim -- --seeds 0..100000 --jobs 2
//! cargo run --release -p fanline-sim -- --trace 4711
//! ```
//!
//! `planted/` holds bugs as patches of the engine, and `planted/run` checks that the simulation finds each of
//! these bugs.

mod accounts;
mod client;
mod model;
mod run;
mod server;
mod trace;
mod violation;
mod world;

pub use run::{Covered, Failure, STEPS, run_seed, trace_seed};
pub use server::{Disks, Sabotage, Server, ServerSettings};
pub use violation::{Invariant, Violation};
