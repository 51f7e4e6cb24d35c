//! Reads that see everything that was committed before them.
//!
//! Another node may lead without this one's knowledge. So a leader asks the voters to confirm, after a read began, that they
//! know of no later term: a new leader needs the vote of one of them. Reads that begin during a round wait for the
//! next one. No clock is involved.

use std::collections::BTreeSet;

use noraft::{NodeId, Term};

use super::NoraftGroup;
use super::codec::Packet;
use crate::port::{Group as _, Output, Refused, Token};

/// The pending reads of a leader.
#[derive(Debug, Default)]
pub(super) struct Reads {
    last: u64,
    /// Number of the round.
    round: u64,
    /// The reads of the round under way, and the index that answers them.
    under_way: Vec<u64>,
    index: u64,
    confirmed: BTreeSet<NodeId>,
    /// Reads for the next round.
    waiting: Vec<u64>,
}

impl Reads {
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
        self.waiting.clear();
    }
}

impl NoraftGroup {
    pub(super) fn begin_read(&mut self) -> Result<u64, Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        // Entries of earlier terms are known as committed only with one of this term.
        if self.term_of(self.commit) != Some(self.term()) {
            return Err(Refused::Pending);
        }
        self.reads.last += 1;
        self.reads.waiting.push(self.reads.last);
        self.begin_round();
        Ok(self.reads.last)
    }

    fn begin_round(&mut self) {
        while self.reads.under_way.is_empty() && !self.reads.waiting.is_empty() {
            self.reads.round += 1;
            self.reads.under_way = std::mem::take(&mut self.reads.waiting);
            self.reads.index = self.commit;
            self.reads.confirmed.clear();
            self.ask_for_confirmation();
            self.end_round_if_confirmed();
        }
    }

    /// Asks all peers to confirm the round under way. Messages may have been lost, so each heartbeat asks again.
    pub(super) fn ask_for_confirmation(&mut self) {
        if self.reads.under_way.is_empty() {
            return;
        }
        let packet = Packet::Confirm(self.node.current_term(), self.reads.round);
        let peers: Vec<_> = self.node.peers().collect();
        for peer in peers {
            self.send(peer, &packet, Token(0));
        }
    }

    /// Confirms a round if this node knows of no later term.
    pub(super) fn answer_confirm(&mut self, from: NodeId, term: Term, round: u64) {
        if term == self.node.current_term() {
            self.send(from, &Packet::Confirmed(term, round), Token(0));
        }
    }

    pub(super) fn take_confirmation(&mut self, from: NodeId, term: Term, round: u64) {
        let is_current = term == self.node.current_term() && round == self.reads.round;
        if is_current && self.is_leader() {
            self.reads.confirmed.insert(from);
            self.end_round_if_confirmed();
            self.begin_round();
        }
    }

    fn end_round_if_confirmed(&mut self) {
        if self.is_majority(|node| self.reads.confirmed.contains(&node)) {
            let index = self.reads.index;
            for id in std::mem::take(&mut self.reads.under_way) {
                self.outputs.push_back(Output::Read { id, index });
            }
        }
    }
}
