//! A whole server in one thread, under a seed: shards, mailboxes, the JetStream service, its disk, a clock, and clients
//! of NATS and MQTT. Or a cluster of such servers without JetStream, which routes join ([`Mode::Cluster`]).
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
//! In a cluster:
//!
//! - Two to four servers with one to three shards, of which some serve routes; pools of none to three routes, of the
//!   same or different sizes; dedicated routes of the system account and of another one.
//! - Routes with their handshake, from the first line on. A network moves their bytes in pieces of any size, in any order
//!   between connections. Sockets have different sizes.
//! - Dialers, which follow the rules of `fanline-server`. The configuration of a server lists all others, the first one,
//!   or the previous one; gossip introduces the remaining servers to each other.
//! - Cut routes: the bytes on their way are lost, and each end learns of the cut at another time. Servers end by
//!   accident, and start again under another id.
//! - NATS clients of four accounts at each server: publish, wildcards, queue groups, `UNSUB` with a maximum, no echo.
//!
//! # What is not simulated
//!
//! - The I/O layer of `fanline-server`: sockets, TLS, WebSocket, threads, atomics, and pauses of publishers while a
//!   mailbox is full or a subscriber is slow.
//! - Leaf nodes, gateways, permissions, subject mappings, imports of services, and request and reply between clients.
//! - Mirrors and sources, object clients, reads of several records, atomic batches, ordered consumers, and changes of a
//!   stream's configuration.
//! - MQTT 5.0, shared subscriptions, and MQTT over WebSocket.
//! - Disks that fail, fill up, or flip bits, which the engine's own tests cover.
//! - In a cluster: JetStream, MQTT, reloads, imports, generated names, lame duck mode, compression, slow clients, and
//!   events of the system account.
//!
//! # Where each invariant is checked
//!
//! | `Invariant` | check |
//! | --- | --- |
//! | `Visibility`: visible after PONG, once; readable after the acknowledgement | each delivery (`CoreModel::deliver`), each quiet moment, when all deliveries must have arrived (`CoreModel::check_quiet`), and each read (`StreamModel::read`) |
//! | `Order` of one publisher | each delivery (`CoreModel::deliver`) |
//! | `Durability`: nothing acknowledged is lost | each acknowledgement and delivery, and the content of each stream at quiet moments and after each restart (`StreamModel::check`) |
//! | `Unsubscribed`: no delivery after unsubscribing | each delivery (`CoreModel::deliver`, `ClusterModel::deliver`) |
//! | `Isolation` of accounts | each delivery of NATS and MQTT clients |
//! | `Queue`: one member receives, also if others leave meanwhile | each delivery, and each quiet moment. A message to a member that disconnects may be lost |
//! | `Memory` is bounded | each step: pending output of a connection (`check_memory`). Quiet moments: no pending output, a session for each client. The end: no session and no subscription. Allocated memory is not measured |
//! | `Correctness`: no panic, no error | each output of the server, and each problem that the service would log |
//! | `Liveness`: everything is answered | quiet moments: each PING and each request has its answer; the end: consumers have delivered everything (`StreamModel::check_delivered`) |
//! | `Interest` of peers is known exactly, and that of a lost peer not at all | quiet moments: the lines that have arrived on routes, with weights, and the interest that a server knows of each peer are those of its clients (`check_interest`). The end of the last route to a peer: no shard has interest that only the peer had (`check_lost`). The order of lines: none repeats or withdraws what was not announced |
//! | `Hops`: one hop, once, without loss; further ones only to queue groups whose members have left | each message that crosses a route (`ClusterModel::cross`). Quiet moments: a message to interest that all servers knew has arrived, unless a route between both servers was cut or one of them ended (`ClusterModel::check_quiet`). At each quiet moment, each server also publishes to each subject in each account |
//! | `Mqtt`: at least once, exactly once | each delivery, and each quiet moment (`MqttModel`, `RetainedModel`) |
//!
//! In a cluster, `Visibility`, `Order`, `Isolation`, and `Queue` are checked in the same way (`ClusterModel`), over all
//! servers. `Liveness` also means that all servers have all routes to each other in the end.
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
//! cargo run --release -p fanline-sim -- --cluster --seeds 0..100000 --jobs 2
//! cargo run --release -p fanline-sim -- --cluster --trace 4711
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
