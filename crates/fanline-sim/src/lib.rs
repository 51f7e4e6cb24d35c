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
//! - Two accounts. A reload adds or removes an import of one account's messages into the other.
//! - JetStream: streams with different limits and retention, in files and in memory; message ids, expected sequences,
//!   pull and push consumers, explicit, negative, and confirmed acknowledgements, deletions, purges, and direct reads
//!   of a subject's newest record, as from a key-value bucket.
//! - MQTT 3.1.1 clients: persistent and clean sessions, QoS 0 to 2, retained messages, wills, messages between both
//!   protocols.
//! - Accidents: the process is killed, or the power is cut and an arbitrary part of the unsynced data
//!   survives.
//!
//! # What is not simulated
//!
//! - The I/O layer of `fanline-server`: sockets, TLS, WebSocket, threads, atomics, and pauses of publishers while a
//!   mailbox is full or a subscriber is slow.
//! - Leaf nodes, permissions, subject mappings, imports of services, and request and reply between clients.
//! - Mirrors and sources, object clients, reads of several records, atomic batches, ordered consumers, and changes of a
//!   stream's configuration.
//! - MQTT 5.0, shared subscriptions, and MQTT over WebSocket.
//! - Disks that fail, fill up, or flip bits, which the engine's own tests cover.
//!
//! # Where each invariant is checked
//!
//! | `Invariant` | check |
//! | --- | --- |
//! | `Visibility`: visible after PONG, once; readable after the acknowledgement | each delivery (`CoreModel::deliver`), each quiet moment, when all deliveries must have arrived (`CoreModel::check_quiet`), and each read (`StreamModel::read`) |
//! | `Order` of one publisher | each delivery (`CoreModel::deliver`) |
//! | `Durability`: nothing acknowledged is lost | each acknowledgement and delivery, and the content of each stream at quiet moments and after each restart (`StreamModel::check`) |
//! | `Unsubscribed`: no delivery after unsubscribing | each delivery (`CoreModel::deliver`) |
//! | `Isolation` of accounts | each delivery of NATS and MQTT clients |
//! | `Queue`: one member receives | each delivery, and each quiet moment |
//! | `Memory` is bounded | each step: pending output of a connection (`check_memory`). Quiet moments: no pending output, a session for each client. The end: no session and no subscription. Allocated memory is not measured |
//! | `Correctness`: no panic, no error | each output of the server, and each problem that the service would log |
//! | `Liveness`: everything is answered | quiet moments: each PING and each request has its answer; the end: consumers have delivered everything (`StreamModel::check_delivered`) |
//! | `Mqtt`: at least once, exactly once | each delivery, and each quiet moment (`MqttModel`, `RetainedModel`) |
//!
//! `tests/it/faults.rs` shows with faults of the harness that checks can fail, and the models have tests of their own.
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
mod cluster;
mod model;
mod run;
mod server;
mod trace;
mod violation;
mod world;

pub use run::{Covered, Failure, Mode, STEPS, run_seed, trace_seed};
pub use server::{Disks, Member, Sabotage, Server, ServerSettings};
pub use violation::{Invariant, Violation};
