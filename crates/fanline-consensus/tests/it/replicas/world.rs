//! One run: faults for a while, then quiet, then the checks.

use std::collections::BTreeMap;

use super::app::{App, Clients};
use super::node::{Copy, Node};
use super::{Bug, Dice};
use fanline_consensus::port::NodeId;

const NODES: [NodeId; 3] = [1, 2, 3];
const STEP_MILLIS: u64 = 5;
const FAULTS_MILLIS: u64 = 6000;
const QUIET_MILLIS: u64 = 6000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) acknowledged: u64,
    pub(super) leaders: u64,
    pub(super) copies: u64,
}

struct World<A: App, C> {
    nodes: Vec<Node<A>>,
    clients: C,
    dice: Dice,
    now: u64,
    /// Messages under way, by time of arrival and number.
    under_way: BTreeMap<(u64, u64), (NodeId, NodeId, Vec<u8>)>,
    sent: u64,
    /// The node that is cut off.
    alone: Option<NodeId>,
    /// Whether some messages get lost.
    is_lossy: bool,
    restarts: Vec<(u64, usize)>,
}

/// Runs a seed.
pub(super) fn run<A: App, C: Clients<A>>(seed: u64, bug: Option<Bug>) -> Result<Summary, String> {
    let mut world = World::<A, C> {
        clients: C::default(),
        nodes: NODES.iter().map(|id| Node::new(*id, bug)).collect(),
        dice: Dice::new(seed),
        now: 0,
        under_way: BTreeMap::new(),
        sent: 0,
        alone: None,
        is_lossy: false,
        restarts: Vec::new(),
    };
    for node in &mut world.nodes {
        node.start(0, &NODES);
    }
    while world.now < FAULTS_MILLIS {
        world.disturb();
        world.step()?;
    }
    world.alone = None;
    world.is_lossy = false;
    while world.now < FAULTS_MILLIS + QUIET_MILLIS {
        world.step()?;
    }
    world.check()
}

impl<A: App, C: Clients<A>> World<A, C> {
    fn disturb(&mut self) {
        let place = self.dice.below(self.nodes.len());
        match self.dice.below(300) {
            0 => {
                self.nodes[place].crash(&mut self.dice);
                let pause = self.dice.below(1500) as u64;
                self.restarts.push((self.now + pause, place));
            }
            1 => self.alone = (!self.dice.one_in(3)).then_some(NODES[place]),
            2 => self.is_lossy = self.dice.one_in(2),
            3..8 => self.nodes[place].compact(),
            // The power of all nodes at once.
            8 if self.dice.one_in(4) => {
                for (place, node) in self.nodes.iter_mut().enumerate() {
                    node.crash(&mut self.dice);
                    self.restarts.push((self.now + 20, place));
                }
            }
            _ => {}
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += STEP_MILLIS;
        let due: Vec<_> = self
            .restarts
            .extract_if(.., |(at, _)| *at <= self.now)
            .collect();
        for (_, place) in due {
            if !self.nodes[place].is_running() {
                self.nodes[place].start(self.now, &NODES);
            }
        }
        let later = self.under_way.split_off(&(self.now + 1, 0));
        for (from, to, bytes) in std::mem::replace(&mut self.under_way, later).into_values() {
            self.node(to).deliver(from, &bytes);
        }
        // Clients reach each node that leads, or believes so. At the end they fetch, but publish nothing.
        let is_quiet = self.now > FAULTS_MILLIS;
        for place in 0..self.nodes.len() {
            if self.nodes[place].is_leading() {
                for request in self.clients.requests(self.now, is_quiet, &mut self.dice) {
                    self.nodes[place].handle_request(&request, self.now);
                }
            }
        }
        for place in 0..self.nodes.len() {
            let from = self.nodes[place].id;
            let step = self.nodes[place].step(self.now, &mut self.dice)?;
            for reply in step.replies {
                self.clients.receive(reply)?;
            }
            for (to, bytes) in step.messages {
                self.send(from, to, bytes);
            }
            if let Some(copy) = step.copy.filter(|copy| !self.is_cut(from, copy.to)) {
                self.install(copy);
            }
        }
        Ok(())
    }

    fn install(&mut self, copy: Copy) {
        let to = copy.to;
        self.node(to).install(copy);
    }

    fn node(&mut self, id: NodeId) -> &mut Node<A> {
        let place = NODES.iter().position(|node| *node == id);
        &mut self.nodes[place.expect("there are no other nodes")]
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.alone.is_some_and(|alone| alone == from || alone == to)
    }

    fn send(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        if self.is_cut(from, to) || self.is_lossy && self.dice.one_in(8) {
            return;
        }
        let delay = if self.dice.one_in(40) {
            self.dice.below(400)
        } else {
            self.dice.below(6)
        };
        self.sent += 1;
        let at = (self.now + 1 + delay as u64, self.sent);
        self.under_way.insert(at, (from, to, bytes));
    }

    /// After the quiet time there is one leader, its program passes the checks of the clients, and all nodes have the
    /// same files.
    fn check(mut self) -> Result<Summary, String> {
        let nodes = 0..self.nodes.len();
        let leaders: Vec<_> = nodes.filter(|at| self.nodes[*at].is_leading()).collect();
        let [leader] = leaders[..] else {
            return Err(format!("{} leaders after the quiet time", leaders.len()));
        };
        let content = self.nodes[leader].content();
        for node in &mut self.nodes {
            let found = node.content();
            let names = content.keys().chain(found.keys());
            let mut names = names.filter(|name| found.get(*name) != content.get(*name));
            if let Some(name) = names.next() {
                let (id, applied) = (node.id, node.applied());
                return Err(format!(
                    "node {id} has another {name} after entry {applied}"
                ));
            }
        }
        let app = self.nodes[leader]
            .take_app()
            .ok_or("the leader has ended")?;
        Ok(Summary {
            acknowledged: self.clients.check(app, self.now)?,
            leaders: self.nodes.iter().map(|node| node.leaders).sum(),
            copies: self.nodes.iter().map(|node| node.copies).sum(),
        })
    }
}
