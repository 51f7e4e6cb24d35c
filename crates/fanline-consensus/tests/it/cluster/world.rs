//! The cluster, its faults, and its checks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fanline_consensus::port::{Group, NodeId};
use fanline_engine::store::simulated_disk::Dice;

use super::network::{Envelope, Network};
use super::node::Node;
use super::record::{Record, Violation};
use super::{Bug, LANES, UNDER_WAY_BYTES_MAX};

/// Nodes with which the groups begin as voters; the last node is a learner.
const VOTERS: usize = 3;
const NODES: usize = 4;
/// Milliseconds with faults, and within which everything must be well after them.
const FAULTS_MS: u64 = 4000;
const QUIET_MS: u64 = 15_000;
const STEP_MS: u64 = 2;

pub(crate) struct World<G> {
    dice: Dice,
    now: u64,
    nodes: Vec<Node<G>>,
    network: Network,
    record: Record,
    bug: Option<Bug>,
    commands: u64,
    bytes_max: usize,
    stuck: usize,
    messages: DefaultHasher,
    /// The node whose disk is damaged or lost; only a minority may be.
    victim: usize,
}

/// Counts of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    pub acknowledged: usize,
    pub elections: usize,
    pub committed: u64,
    pub reads: usize,
    /// The most bytes of a lane that were under way between two nodes.
    pub bytes_max: usize,
    /// Whether the group was stuck at the end: see `may_be_stuck`.
    pub stuck: usize,
    /// Hash of all messages, in order.
    pub messages: u64,
}

/// Runs a seed.
pub(crate) fn run<G: Group>(seed: u64, bug: Option<Bug>) -> Result<Summary, Violation> {
    let mut dice = Dice::new(seed);
    let nodes = (0..NODES)
        .map(|place| Node::new(place, bug, &mut dice))
        .collect();
    let mut world: World<G> = World {
        victim: dice.below(VOTERS),
        dice,
        now: 0,
        nodes,
        network: Network::default(),
        record: Record::default(),
        bug,
        commands: 0,
        bytes_max: 0,
        stuck: 0,
        messages: DefaultHasher::new(),
    };
    world.restart_all()?;
    while world.now < FAULTS_MS {
        world.inject_faults()?;
        world.step()?;
    }
    world.settle()?;
    Ok(Summary {
        acknowledged: world.record.acknowledged,
        elections: world.record.elections,
        reads: world.record.reads,
        bytes_max: world.bytes_max,
        stuck: world.stuck,
        committed: (0..LANES).map(|lane| world.record.last(lane)).sum(),
        messages: world.messages.finish(),
    })
}

fn founders() -> Vec<NodeId> {
    (1..=VOTERS as u64).collect()
}

impl<G: Group> World<G> {
    fn step(&mut self) -> Result<(), Violation> {
        self.now += STEP_MS;
        for envelope in self.network.arrive(self.now) {
            self.deliver(&envelope)?;
        }
        for place in 0..NODES {
            if self.nodes[place].asleep_until > self.now {
                continue;
            }
            let step = self.nodes[place].step(self.now, &mut self.record, &mut self.dice)?;
            for (lane, index, bytes) in &step.acknowledged {
                self.check_durable(place, *lane, *index, bytes)?;
            }
            for envelope in step.messages {
                (envelope.from, envelope.to, &envelope.bytes).hash(&mut self.messages);
                self.network.send(self.now, envelope, &mut self.dice);
            }
        }
        let bytes = self.network.bytes_max();
        self.bytes_max = self.bytes_max.max(bytes);
        if bytes > UNDER_WAY_BYTES_MAX {
            return Err(format!("{bytes} bytes are under way between two nodes"));
        }
        if self.dice.one_in(20) {
            let (lane, place) = (self.any_lane(), self.dice.below(NODES));
            self.nodes[place].read(lane, self.record.last(lane))?;
        }
        if self.dice.one_in(10) {
            self.propose();
        }
        Ok(())
    }

    fn deliver(&mut self, envelope: &Envelope) -> Result<(), Violation> {
        let from = envelope.ids.0;
        let to = &mut self.nodes[envelope.to];
        if to.asleep_until > self.now {
            // A socket's buffer is not endless.
            return Ok(());
        }
        to.deliver(from, envelope)?;
        if self.bug == Some(Bug::CountLearner) && envelope.from >= VOTERS {
            let other = (0..VOTERS)
                .find(|place| *place != envelope.to)
                .expect("there are three voters");
            to.deliver(other as u64 + 1, envelope)?;
        }
        Ok(())
    }

    fn propose(&mut self) {
        let lane = self.any_lane();
        let place = self.dice.below(NODES);
        self.commands += 1;
        let command = vec![self.commands.to_le_bytes()[0]; 8 + self.dice.below(200)];
        self.nodes[place].propose(lane, &[&self.commands.to_le_bytes()[..], &command].concat());
    }

    /// Durable before acknowledged: a majority of the voters have the entry on their disks.
    fn check_durable(
        &self,
        leader: usize,
        lane: u16,
        index: u64,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let Some(group) = self.nodes[leader].group(lane) else {
            return Ok(());
        };
        let voters = group.members().voters;
        let has = |id: &&NodeId| {
            let mut nodes = self.nodes.iter();
            nodes.any(|node| node.has(lane, **id, index, bytes))
        };
        let count = voters.iter().filter(has).count();
        match count > voters.len() / 2 {
            true => Ok(()),
            false => Err(format!(
                "entry {index} of lane {lane} was acknowledged with {count} copies on disks"
            )),
        }
    }

    fn inject_faults(&mut self) -> Result<(), Violation> {
        let place = self.dice.below(NODES);
        match self.dice.below(600) {
            0 | 1 => self.network.disturb(NODES, &mut self.dice),
            2 => self.network.heal(),
            3 => self.crash(place, true),
            4 => self.crash(place, false),
            5 => (0..NODES).for_each(|place| self.crash(place, true)),
            6 => self.nodes[place].asleep_until = self.now + self.dice.below(1500) as u64,
            7 => self.nodes[place].disk.set_failing_syncs(20),
            // One wrong bit at a time: the next start repairs it, if the disk has room.
            8 if self.nodes[self.victim].is_running() && !self.nodes[self.victim].has_limit => {
                let victim = self.victim;
                self.nodes[victim].disk.flip(&mut self.dice);
                self.crash(victim, false);
            }
            9 | 39 | 40 => self.change_members(),
            10 => self.transfer(),
            41 | 42 => {
                let lane = self.any_lane();
                self.nodes[place].compact(lane);
            }
            11..39 => self.start(place)?,
            43 | 44 => {
                let node = &mut self.nodes[place];
                let bytes = node.disk.used_bytes() + self.dice.below(3000);
                node.disk.set_room(Some(bytes));
                node.has_limit = true;
            }
            45..50 => {
                self.nodes[place].disk.set_room(None);
                self.nodes[place].has_limit = false;
            }
            50 if self.dice.one_in(2) => self.nodes[self.victim].lose_disk(),
            51 => self.nodes[self.victim].damage_sector(&mut self.dice),
            57 | 58 => (0..2000).for_each(|_| self.propose()),
            59 | 60 => self.nodes[place].jump(&mut self.dice),
            52..57 => self.change_members(),
            _ => {}
        }
        Ok(())
    }

    fn crash(&mut self, place: usize, is_power_cut: bool) {
        let dice = is_power_cut.then_some(&mut self.dice);
        self.nodes[place].crash(dice);
    }

    fn start(&mut self, place: usize) -> Result<(), Violation> {
        if self.nodes[place].is_running() {
            return Ok(());
        }
        let mut node = self.nodes.remove(place);
        // Another node's copy of an entry: equal index and term mean equal bytes.
        let copy_of = |lane: u16, index: u64, term: u64| {
            self.nodes.iter().find_map(|other| {
                let group = other.group(lane)?;
                let bytes = group.stored(index);
                bytes
                    .filter(|_| group.term_of(index) == Some(term))
                    .map(<[u8]>::to_vec)
            })
        };
        let result = node.start(self.now, &founders(), copy_of);
        self.nodes.insert(place, node);
        result.map(|_| ())
    }

    fn leader(&mut self, lane: u16) -> Option<&mut G> {
        let mut groups = self
            .nodes
            .iter_mut()
            .filter_map(|node| node.group_mut(lane));
        groups.find(|group| group.is_leader())
    }

    fn any_lane(&mut self) -> u16 {
        u16::try_from(self.dice.below(usize::from(LANES))).expect("few lanes")
    }

    /// Adds nodes as learners, makes learners voters in place of those that they were before a loss, or removes a
    /// voter.
    fn change_members(&mut self) {
        let lane = self.any_lane();
        let removed = self.dice.below(NODES);
        let ids: Vec<_> = self
            .nodes
            .iter()
            .map(|node| node.ids[usize::from(lane)])
            .collect();
        let Some(group) = self.leader(lane) else {
            return;
        };
        let mut members = group.members();
        let is_missing =
            |id: &NodeId| !members.voters.contains(id) && !members.learners.contains(id);
        let missing: Vec<_> = ids.iter().copied().filter(is_missing).collect();
        members.learners.retain(|id| ids.contains(id));
        if !missing.is_empty() {
            members.learners.extend(missing);
        } else if members.learners.is_empty() {
            members.voters.remove(removed);
        } else {
            members.voters.retain(|id| ids.contains(id));
            members.voters.append(&mut members.learners);
        }
        // It may be refused.
        let _ = group.change_members(&members);
    }

    fn transfer(&mut self) {
        let lane = self.any_lane();
        let to = self.nodes[self.dice.below(NODES)].ids[usize::from(lane)];
        if let Some(group) = self.leader(lane) {
            let _ = group.transfer(to);
        }
    }

    /// Ends all faults. Then all voters must apply everything that was ever committed and one more entry. Each
    /// node applies its log from the first entry on after each start, and is compared with all commits so far.
    fn settle(&mut self) -> Result<(), Violation> {
        self.network.heal();
        for node in &mut self.nodes {
            node.disk.set_failing_syncs(0);
            node.disk.set_room(None);
            node.asleep_until = 0;
        }
        let end = self.now + QUIET_MS;
        let mut goals = [None; LANES as usize];
        while self.now < end {
            if self.now.is_multiple_of(100) {
                self.restart_all()?;
            }
            self.step()?;
            for lane in 0..LANES {
                let goal = &mut goals[usize::from(lane)];
                // A committed entry of after the faults.
                if goal.is_none() && self.now > end - QUIET_MS + 2000 {
                    *goal = Some(self.record.last(lane) + 1);
                }
            }
            if self.is_well(&goals) {
                return Ok(());
            }
        }
        if self.may_be_stuck() {
            self.stuck += 1;
            return Ok(());
        }
        Err(format!(
            "not well {QUIET_MS} ms after all faults: {:?} of {goals:?}",
            self.least_applied()
        ))
    }

    /// Whether a disk was lost during a change of members. Then a learner whose log is newer than that of all voters
    /// may be needed for the change and refuse its vote, and the library does not let it be elected. No data is
    /// lost; an operator has to rescue the group.
    fn may_be_stuck(&self) -> bool {
        let has_loss = self.nodes[self.victim].has_loss();
        has_loss
            && (0..LANES).any(|lane| {
                let groups = self.nodes.iter().filter_map(|node| node.group(lane));
                let members: Vec<_> = groups
                    .map(Group::members)
                    .filter(|members| !members.voters.is_empty())
                    .collect();
                members.iter().any(|other| *other != members[0])
            })
    }

    fn is_well(&mut self, goals: &[Option<u64>; LANES as usize]) -> bool {
        let applied = self.least_applied();
        let mut lanes = applied.iter().zip(goals);
        lanes.all(|(applied, goal)| goal.is_some_and(|goal| *applied >= goal))
    }

    /// Returns the index that all voters have applied, for each lane. The damaged node does not count while it is
    /// down: it may have been the only one with the entry that is damaged.
    fn least_applied(&mut self) -> [u64; LANES as usize] {
        let mut least = [0; LANES as usize];
        for lane in 0..LANES {
            let Some(leader) = self.leader(lane) else {
                continue;
            };
            let voters = leader.members().voters;
            let counted = self.nodes.iter().filter(|node| {
                voters.contains(&node.ids[usize::from(lane)])
                    && (node.is_running() || node.place != self.victim)
            });
            let applied = counted.map(|node| node.applied()[usize::from(lane)]);
            least[usize::from(lane)] = applied.min().unwrap_or(0);
        }
        least
    }

    fn restart_all(&mut self) -> Result<(), Violation> {
        (0..NODES).try_for_each(|place| self.start(place))
    }
}
