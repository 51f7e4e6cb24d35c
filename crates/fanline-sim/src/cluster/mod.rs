//! A cluster: servers that real routes join, and their clients. One random step follows another.

mod clients;
mod dialer;
mod frames;
mod losses;
mod model;
mod network;
mod quiet;
mod setup;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::Limits;
use fanline_engine::auth::Access;
use fanline_engine::jetstream::Now;
use fanline_engine::store::simulated_disk::Dice;

use clients::Client;
use dialer::Dialer;
use model::ClusterModel;
use setup::{Setup, directory};
use wire::Wire;

use crate::run::Covered;
use crate::server::{Disks, Member, Sabotage, Server, ServerSettings};
use crate::trace::Trace;
use crate::violation::{Invariant, Outcome, Violation, violation};

/// When the first server starts, in nanoseconds since 1970.
const BEGIN_UNIX_NANOS: i64 = 1_700_000_000_000_000_000;

/// One server of a cluster.
struct Node {
    /// `None` while it does not run.
    running: Option<Running>,
    /// How often it was started.
    epoch: u64,
}

/// A server that runs.
struct Running {
    id: String,
    server: Server,
    dialer: Dialer,
}

/// A cluster and its clients.
pub(crate) struct Cluster {
    dice: Dice,
    step: u64,
    now: Now,
    seed: u64,
    setup: Setup,
    access: Arc<Access>,
    sabotage: Sabotage,
    nodes: Vec<Node>,
    wires: Vec<Wire>,
    wires_opened: u64,
    clients: Vec<Client>,
    clients_opened: u64,
    messages: u64,
    model: ClusterModel,
    covered: Covered,
    trace: Trace,
}

impl Cluster {
    /// Creates the cluster of a seed.
    pub(crate) fn new(seed: u64, sabotage: Sabotage, trace: Trace) -> Self {
        let mut dice = Dice::new(seed);
        let setup = Setup::new(&mut dice);
        let node = || Node {
            running: None,
            epoch: 0,
        };
        let nodes = setup.nodes.iter().map(|_| node()).collect();
        Cluster {
            dice,
            step: 0,
            now: Now {
                since_start: Duration::ZERO,
                unix_nanos: BEGIN_UNIX_NANOS,
            },
            seed,
            setup,
            access: directory(),
            sabotage,
            nodes,
            wires: Vec::new(),
            wires_opened: 0,
            clients: Vec::new(),
            clients_opened: 0,
            messages: 0,
            model: ClusterModel::default(),
            covered: Covered::default(),
            trace,
        }
    }

    /// Runs random steps, and a quiet end.
    pub(crate) fn run(&mut self, steps: u64) -> Outcome {
        self.note(|| "the servers start".into());
        for node in 0..self.nodes.len() {
            self.start(node);
        }
        self.settle()?;
        while self.step < steps {
            self.step += 1;
            self.act()?;
        }
        self.end()
    }

    /// Returns the current step, and takes the trace.
    pub(crate) fn story(&mut self) -> (u64, Vec<String>) {
        (self.step, self.trace.take())
    }

    /// Returns what the run has covered.
    pub(crate) fn covered(&self) -> Covered {
        Covered {
            messages: self.model.checked,
            crossings: self.model.crossings,
            ..self.covered
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.add(self.step, line);
    }

    /// Starts a server that does not run.
    fn start(&mut self, node: usize) {
        let epoch = &mut self.nodes[node].epoch;
        *epoch += 1;
        let id = format!("N{node}E{epoch}");
        let setup = &self.setup.nodes[node];
        let settings = ServerSettings {
            shards: setup.shards,
            limits: Limits {
                // Clients may wait long before they write their CONNECT.
                auth_timeout: Duration::from_secs(3600),
                ..Limits::default()
            },
            access: Arc::clone(&self.access),
            seed: self.seed.wrapping_add(*epoch << 52) ^ (node as u64) << 40,
            sabotage: self.sabotage,
            member: Some(Member {
                id: id.clone(),
                name: format!("server-{node}"),
                routes: self.setup.routes_of(node),
            }),
        };
        let server = Server::start(&settings, &Disks::default(), self.now);
        let now = self.now.since_start;
        let dialer = Dialer::new(setup.configured.clone(), setup.retries, now);
        self.nodes[node].running = Some(Running { id, server, dialer });
        let setup = format!("{:?}", self.setup.nodes[node]);
        self.note(|| format!("server {node} starts: {setup}"));
    }

    /// Returns a server, if it runs.
    fn server(&mut self, node: usize) -> Option<&mut Server> {
        let running = self.nodes[node].running.as_mut()?;
        Some(&mut running.server)
    }

    /// Returns the number of a server that runs.
    fn some_node(&mut self) -> Option<usize> {
        let node = self.dice.below(self.nodes.len());
        self.nodes[node].running.is_some().then_some(node)
    }

    /// Performs one random step.
    fn act(&mut self) -> Outcome {
        match self.dice.below(100) {
            0..26 => self.act_as_client(),
            26..34 => self.write_as_client(),
            34..50 => return self.read_as_server(),
            50..58 => return self.read_as_client(),
            58..66 => self.take_mailbox(),
            66..74 => self.flush(),
            74..79 => return self.wake(),
            79..93 => return self.carry_some(),
            93..95 => self.dial_some(),
            95 => self.pass_time(),
            96 => return self.tell_some(),
            _ => return self.disturb(),
        }
        Ok(())
    }

    /// Rare events.
    fn disturb(&mut self) -> Outcome {
        match self.dice.below(16) {
            0..4 => self.hang_up_one(),
            4..7 => self.cut_one(),
            7 => self.crash_one(),
            8 | 9 => self.start_one(),
            10 => return self.settle(),
            _ => {}
        }
        Ok(())
    }

    fn read_as_server(&mut self) -> Outcome {
        let Some(node) = self.some_node() else {
            return Ok(());
        };
        let Some(server) = self.nodes[node].running.as_ref().map(|it| &it.server) else {
            return Ok(());
        };
        let keys = server.connection_keys();
        if keys.is_empty() {
            return Ok(());
        }
        let key = keys[self.dice.below(keys.len())];
        let bytes = [1, 20, 300, 128 * 1024][self.dice.below(4)];
        self.note(|| format!("server {node} reads {bytes} bytes of {key:?}"));
        if let Some(server) = self.server(node) {
            server.receive(key, bytes);
        }
        self.notice_closed()
    }

    fn take_mailbox(&mut self) {
        let Some(node) = self.some_node() else {
            return;
        };
        let shard = self.dice.below(self.setup.nodes[node].shards);
        self.note(|| format!("shard {shard} of server {node} takes its mailbox"));
        if let Some(server) = self.server(node) {
            server.take_mailbox(shard);
            server.handle_shard_timeout(shard);
        }
    }

    fn flush(&mut self) {
        let Some(node) = self.some_node() else {
            return;
        };
        let shard = self.dice.below(self.setup.nodes[node].shards);
        self.note(|| format!("shard {shard} of server {node} flushes"));
        if let Some(server) = self.server(node) {
            server.flush(shard);
        }
    }

    fn wake(&mut self) -> Outcome {
        let Some(node) = self.some_node() else {
            return Ok(());
        };
        let keys = self
            .server(node)
            .map_or_else(Vec::new, |server| server.connection_keys());
        if keys.is_empty() {
            return Ok(());
        }
        let key = keys[self.dice.below(keys.len())];
        self.note(|| format!("the task of {key:?} of server {node} wakes"));
        if let Some(server) = self.server(node) {
            server.wake(key);
        }
        self.notice_closed()
    }

    fn pass_time(&mut self) {
        let millis = [1, 10, 100, 1000][self.dice.below(4)];
        self.wait(Duration::from_millis(millis));
    }

    fn wait(&mut self, duration: Duration) {
        self.note(|| format!("{duration:?} pass"));
        self.now.since_start += duration;
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or_default();
        self.now.unix_nanos += nanos;
        let now = self.now;
        for node in &mut self.nodes {
            if let Some(running) = &mut node.running {
                running.server.set_now(now);
            }
        }
    }

    fn end(&mut self) -> Outcome {
        self.settle()?;
        while !self.clients.is_empty() {
            self.hang_up(0, false);
        }
        self.quiesce()?;
        let mut left = self.model.subscriptions();
        for node in self.nodes.iter().filter_map(|node| node.running.as_ref()) {
            let (sessions, _) = node.server.sessions_and_subscriptions();
            left += sessions + node.server.known_interest().len();
        }
        match left {
            0 => Ok(()),
            _ => violation(
                Invariant::Memory,
                format!("all clients left; {left} sessions and subscriptions remain"),
            ),
        }
    }
}

/// Returns a violation by the bytes of a route.
fn wrong_line(text: String) -> Violation {
    Violation {
        invariant: Invariant::Interest,
        text,
    }
}
