//! Measures what a consensus library costs: processor time for a round, and memory for an idle group.
//!
//! Three nodes of some groups run in one thread. Messages arrive, and syncs are finished, at once. A round is a proposal
//! of 128 bytes that all nodes commit.
//!
//!     cargo run --release -p fanline-consensus --features openraft --example rounds

use std::time::{Duration, Instant};

use fanline_consensus::noraft_group::NoraftGroup;
#[cfg(feature = "openraft")]
use fanline_consensus::openraft_group::OpenraftGroup;
use fanline_consensus::port::{
    Group, NodeId, Output, PEER_BYTES_MAX, Settings, Stored, UNCOMMITTED_BYTES_MAX,
};

const NODES: [NodeId; 3] = [1, 2, 3];
/// The wanted load, of all groups together.
const ROUNDS_PER_SECOND: u64 = 3000;
const GROUPS: usize = 12;
const SECONDS: u64 = 10;
const TICK_MS: u64 = 5;
/// Groups whose memory is measured, and for how long they are idle before. Queues of a fixed length use more of their
/// memory with each message, until they are used up once.
const IDLE_GROUPS: usize = 16;
const IDLE_SECONDS: u64 = 600;

/// The nodes of a group, and the time that each took.
struct Trio<G> {
    nodes: Vec<G>,
    commits: [u64; 3],
}

impl<G: Group> Trio<G> {
    fn new(seed: u64) -> Self {
        let nodes = NODES.map(|node| {
            let settings = Settings {
                node,
                heartbeat: Duration::from_millis(100),
                election: Duration::from_millis(500),
                seed: seed * 8 + node,
                peer_bytes_max: PEER_BYTES_MAX,
                uncommitted_bytes_max: UNCOMMITTED_BYTES_MAX,
            };
            G::start(settings, &NODES, Stored::default(), Duration::ZERO).expect("it is empty")
        });
        Trio {
            nodes: nodes.into(),
            commits: [0; 3],
        }
    }

    fn settle(&mut self) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for (at, own) in NODES.iter().enumerate() {
                let mut synced = None;
                while let Some(output) = self.nodes[at].poll_output() {
                    is_busy = true;
                    match output {
                        Output::Send { to, bytes } => {
                            let to = NODES.iter().position(|node| *node == to);
                            let to = &mut self.nodes[to.expect("a member")];
                            to.deliver(*own, &bytes).expect("it is valid");
                        }
                        Output::Vote { token, .. }
                        | Output::Append { token, .. }
                        | Output::Compact { token, .. } => synced = Some(token),
                        Output::Commit { index } => self.commits[at] = index,
                        _ => {}
                    }
                }
                if let Some(token) = synced {
                    self.nodes[at].synced(token);
                }
            }
        }
    }

    fn tick(&mut self, now: Duration) {
        for node in &mut self.nodes {
            node.tick(now);
        }
        self.settle();
    }

    fn round(&mut self) {
        let leader = self.nodes.iter_mut().find(|node| node.is_leader());
        let index = leader.expect("a leader").propose(&[7; 128]);
        let index = index.expect("it is not busy");
        self.settle();
        assert!(
            self.commits.iter().max() >= Some(&index),
            "{index} is not committed: {:?}",
            self.commits
        );
        // As a server does.
        if index.is_multiple_of(1000) {
            for (node, commit) in self.nodes.iter_mut().zip(self.commits) {
                node.compact(commit);
            }
            self.settle();
        }
    }
}

fn measure<G: Group>(name: &str) {
    let before = memory_kib();
    let mut idle: Vec<_> = (0..IDLE_GROUPS as u64).map(Trio::<G>::new).collect();
    for step in 0..IDLE_SECONDS * 1000 / TICK_MS {
        for group in &mut idle {
            group.tick(Duration::from_millis(step * TICK_MS));
        }
    }
    let after = memory_kib();
    let [resident, reserved] = [0, 1].map(|at| (after[at] - before[at]) / (IDLE_GROUPS as u64 * 3));
    println!(
        "{name}: {reserved} KiB reserved for an idle group on a node, of which {resident} KiB are in use after {IDLE_SECONDS} s"
    );
    idle.truncate(GROUPS);

    let mut now = Duration::from_secs(IDLE_SECONDS);
    let began = Instant::now();
    for _ in 0..1000 / TICK_MS {
        now += Duration::from_millis(TICK_MS);
        idle.iter_mut().for_each(|group| group.tick(now));
    }
    let per_mille = began.elapsed().as_micros() / 1000 / 3;
    println!("{name}: {per_mille} per mille of a core for {GROUPS} idle groups on a node");

    let began = Instant::now();
    let mut rounds = 0;
    for _ in 0..SECONDS * 1000 / TICK_MS {
        now += Duration::from_millis(TICK_MS);
        idle.iter_mut().for_each(|group| group.tick(now));
        for _ in 0..ROUNDS_PER_SECOND * TICK_MS / 1000 {
            rounds += 1;
            idle[rounds % GROUPS].round();
        }
    }
    let took = began.elapsed();
    println!(
        "{name}: {:.1} us for a round, its part of ticks included, on all three nodes; {:.1} % of a core on a node \
         at {ROUNDS_PER_SECOND} rounds/s over {GROUPS} groups",
        took.as_secs_f64() * 1e6 / rounds as f64,
        took.as_secs_f64() * 100.0 / SECONDS as f64 / 3.0,
    );
}

/// Returns the memory of this process: in use, and reserved.
fn memory_kib() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    ["VmRSS:", "VmData:"].map(|name| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse().ok()).expect("a number")
    })
}

fn main() {
    measure::<NoraftGroup>("noraft");
    #[cfg(feature = "openraft")]
    measure::<OpenraftGroup>("openraft");
}
