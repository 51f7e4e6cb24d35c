//! Messages under way: lost, duplicated, delayed, and cut off.

use std::collections::BTreeMap;

use fanline_consensus::port::NodeId;
use fanline_engine::store::simulated_disk::Dice;

/// A snapshot of a lane: index, term, and note of its floor. The state itself is not simulated.
pub(crate) type Snapshot = (u64, u64, Vec<u8>);

/// A message to a node.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub from: usize,
    pub to: usize,
    /// Ids of sender and receiver in the group.
    pub ids: (NodeId, NodeId),
    pub lane: u16,
    pub bytes: Vec<u8>,
    pub snapshot: Option<Snapshot>,
}

/// All messages under way, by the time of their arrival in milliseconds.
#[derive(Default)]
pub(crate) struct Network {
    under_way: BTreeMap<(u64, u64), Envelope>,
    count: u64,
    /// Bytes under way from a node to another one, for each lane.
    bytes: BTreeMap<(usize, usize, u16), usize>,
    /// Pairs of sender and receiver that are cut.
    cuts: Vec<(usize, usize)>,
    /// One in how many messages is lost; 0 for none.
    loss: usize,
}

impl Network {
    /// Draws new faults between nodes.
    pub(crate) fn disturb(&mut self, nodes: usize, dice: &mut Dice) {
        self.loss = [0, 0, 30, 5][dice.below(4)];
        self.cuts.clear();
        match dice.below(4) {
            // One node alone.
            0 => {
                let alone = dice.below(nodes);
                let others = (0..nodes).filter(|node| *node != alone);
                self.cuts
                    .extend(others.flat_map(|node| [(alone, node), (node, alone)]));
            }
            // Some directions.
            1 => self
                .cuts
                .extend((0..dice.below(4)).map(|_| (dice.below(nodes), dice.below(nodes)))),
            _ => {}
        }
    }

    pub(crate) fn heal(&mut self) {
        self.loss = 0;
        self.cuts.clear();
    }

    pub(crate) fn send(&mut self, now: u64, envelope: Envelope, dice: &mut Dice) {
        let is_cut = self.cuts.contains(&(envelope.from, envelope.to));
        if is_cut || (self.loss > 0 && dice.one_in(self.loss)) {
            return;
        }
        for _ in 0..if dice.one_in(50) { 2 } else { 1 } {
            let delay = if dice.one_in(40) {
                dice.below(400)
            } else {
                dice.below(6)
            };
            self.count += 1;
            *self.bytes.entry(path(&envelope)).or_default() += envelope.bytes.len();
            self.under_way
                .insert((now + 1 + delay as u64, self.count), envelope.clone());
        }
    }

    /// Returns the messages that arrive until `now`.
    pub(crate) fn arrive(&mut self, now: u64) -> Vec<Envelope> {
        let later = self.under_way.split_off(&(now + 1, 0));
        let arrived: Vec<_> = std::mem::replace(&mut self.under_way, later)
            .into_values()
            .collect();
        for envelope in &arrived {
            *self.bytes.entry(path(envelope)).or_default() -= envelope.bytes.len();
        }
        arrived
    }

    /// Returns the most bytes of a lane that are under way between two nodes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes.values().copied().max().unwrap_or(0)
    }
}

fn path(envelope: &Envelope) -> (usize, usize, u16) {
    (envelope.from, envelope.to, envelope.lane)
}
