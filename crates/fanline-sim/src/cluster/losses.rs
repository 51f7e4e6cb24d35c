//! Lost connections and servers, and what must be gone with them.

use super::setup::{ACCOUNTS, account_id};
use super::wire::End;
use super::{Cluster, Invariant, Outcome, violation};
use crate::cluster::clients::SUBJECTS;
use crate::model::matches;
use crate::server::Socket;

impl Cluster {
    /// Returns the socket of an end, while its server runs and has it.
    pub(super) fn socket(&mut self, end: End) -> Option<&mut Socket> {
        self.is_running(end)
            .then(|| self.nodes[end.node].running.as_mut())??
            .server
            .socket(end.key)
    }

    /// Returns whether the server of an end still runs.
    fn is_running(&self, end: End) -> bool {
        let node = &self.nodes[end.node];
        node.running.is_some() && node.epoch == end.epoch
    }

    /// Tells the server of an end that the other side is gone.
    pub(super) fn hang_up_end(&mut self, end: End, abrupt: bool) {
        if self.is_running(end)
            && let Some(server) = self.server(end.node)
        {
            server.hang_up(end.key, abrupt);
        }
    }

    /// Cuts one connection between servers. Each end learns of it later, unless the dice say at once.
    pub(super) fn cut_one(&mut self) {
        if self.wires.is_empty() {
            return;
        }
        let at = self.dice.below(self.wires.len());
        // One accident may hit all connections of a server.
        let node = self.wires[at].ends[0].node;
        let all = self.dice.one_in(4);
        for other in 0..self.wires.len() {
            let is_hit =
                other == at || all && self.wires[other].ends.iter().any(|end| end.node == node);
            if is_hit {
                self.cut(other);
            }
        }
    }

    fn cut(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        if wire.is_cut {
            return;
        }
        wire.is_cut = true;
        let (number, pair) = (wire.number, wire.pair());
        self.model.cut(pair);
        self.covered.cuts += 1;
        self.note(|| format!("wire {number} between {pair:?} is cut"));
    }

    /// Lets one end of a cut connection learn of it.
    pub(super) fn tell_some(&mut self) -> Outcome {
        if !self.wires.is_empty() {
            let at = self.dice.below(self.wires.len());
            let end = self.dice.below(2);
            self.tell(at, end);
        }
        self.notice_closed()
    }

    /// Lets an end of a cut connection learn of it. Returns whether it did.
    pub(super) fn tell(&mut self, at: usize, end: usize) -> bool {
        let abrupt = self.dice.one_in(2);
        let wire = &mut self.wires[at];
        if !wire.is_cut || wire.is_told[end] {
            return false;
        }
        wire.is_told[end] = true;
        let (number, end) = (wire.number, wire.ends[end]);
        self.note(|| format!("server {} learns that wire {number} is cut", end.node));
        self.hang_up_end(end, abrupt);
        true
    }

    /// Ends one server with all its connections.
    pub(super) fn crash_one(&mut self) {
        if let Some(node) = self.some_node() {
            self.crash(node);
        }
    }

    pub(super) fn crash(&mut self, node: usize) {
        self.note(|| format!("server {node} ends by accident"));
        self.nodes[node].running = None;
        let leaving = self
            .clients
            .extract_if(.., |client| client.home.node == node);
        for client in leaving {
            self.model.disconnect(client.key);
        }
        let nodes = self.nodes.len();
        self.model.crash(node, nodes);
        for at in 0..self.wires.len() {
            if self.wires[at].ends.iter().any(|end| end.node == node) {
                self.cut(at);
            }
        }
        self.covered.restarts += 1;
    }

    /// Starts one server that does not run.
    pub(super) fn start_one(&mut self) {
        let node = self.dice.below(self.nodes.len());
        if self.nodes[node].running.is_none() {
            self.start(node);
        }
    }

    /// Notes which servers have closed their ends of connections, removes connections without ends, and checks that
    /// servers do not know the interest of peers that they have lost.
    pub(super) fn notice_closed(&mut self) -> Outcome {
        let mut at = 0;
        while at < self.wires.len() {
            for end in 0..2 {
                let place = self.wires[at].ends[end];
                let is_running = self.is_running(place);
                let is_open = is_running
                    && self
                        .server(place.node)
                        .is_some_and(|server| server.has_route(place.key));
                if !is_open && !self.wires[at].is_closed[end] {
                    self.wires[at].is_closed[end] = true;
                    // Nothing that either side has yet to send arrives at this end.
                    let (number, pair) = (self.wires[at].number, self.wires[at].pair());
                    self.model.cut(pair);
                    self.note(|| format!("wire {number} is closed at server {}", place.node));
                    if is_running {
                        self.check_lost(at, end)?;
                    }
                }
            }
            let wire = &self.wires[at];
            let (is_over, ends) = (wire.is_closed == [true; 2], wire.ends);
            if is_over {
                // The sockets are released.
                for end in ends {
                    self.hang_up_end(end, true);
                }
                self.wires.remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Checks that a server that has closed its last route to a peer knows nothing of that peer's interest.
    fn check_lost(&mut self, at: usize, end: usize) -> Outcome {
        let [own, lost] = [self.wires[at].ends[end], self.wires[at].ends[1 - end]];
        let leads_to_lost = |number: usize| {
            let (ends, is_closed) = (&self.wires[number].ends, &self.wires[number].is_closed);
            (0..2).any(|here| {
                let [near, far] = [ends[here], ends[1 - here]];
                (near.node, near.epoch, far.node, far.epoch)
                    == (own.node, own.epoch, lost.node, lost.epoch)
                    && !is_closed[here]
            })
        };
        if (0..self.wires.len()).any(leads_to_lost) {
            return Ok(());
        }
        // Interest of clients and of other peers.
        let mut others = self.model.possible_interest_of(own.node);
        for wire in &self.wires {
            for here in 0..2 {
                if wire.ends[here].node == own.node && !wire.is_closed[here] {
                    others.extend(wire.directions[1 - here].ever.iter().cloned());
                }
            }
        }
        let access = std::sync::Arc::clone(&self.access);
        let shards = self.setup.nodes[own.node].shards;
        let Some(server) = self.server(own.node) else {
            return Ok(());
        };
        // Each shard has the announcements of the others in its mailbox.
        for _ in 0..2 {
            for shard in 0..shards {
                server.take_mailbox(shard);
            }
        }
        for name in ACCOUNTS {
            let account = account_id(&access, name);
            for subject in SUBJECTS {
                let mut places = others.iter();
                let is_allowed =
                    places.any(|(of, filter, _)| of == name && matches(filter, subject));
                if !is_allowed && server.has_subscriber(account, subject) {
                    let text = format!(
                        "server {} has lost server {}, and has interest in {subject} of {name}",
                        own.node, lost.node
                    );
                    return violation(Invariant::Interest, text);
                }
            }
        }
        Ok(())
    }
}
