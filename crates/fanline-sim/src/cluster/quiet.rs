//! Quiet moments: all servers run and have routes to each other, everything has arrived, and then what servers know
//! must be what clients have.

use std::collections::BTreeMap;
use std::time::Duration;

use fanline_engine::auth::AccountId;

use super::clients::SUBJECTS;
use super::frames::Interest;
use super::setup::{ACCOUNTS, account_id};
use super::{Cluster, Invariant, Outcome, Violation, violation};
use crate::client::ClientKey;

/// Rounds after which everything must be quiet.
const ROUNDS_MAX: usize = 4000;

/// Bytes that are moved at once.
const ALL: usize = usize::MAX;

impl Cluster {
    /// Lets everything end, compares what servers know with what clients have, and publishes to each subject at each
    /// server.
    pub(super) fn settle(&mut self) -> Outcome {
        self.note(|| "everything ends".into());
        for node in 0..self.nodes.len() {
            if self.nodes[node].running.is_none() {
                self.start(node);
            }
        }
        self.end_actions()?;
        self.check_interest()?;
        self.step += 1;
        for node in 0..self.nodes.len() {
            for account in 0..ACCOUNTS.len() {
                self.probe(node, account);
            }
        }
        self.end_actions()
    }

    /// Lets all that clients have begun end, and checks that all messages have arrived.
    fn end_actions(&mut self) -> Outcome {
        for at in 0..self.clients.len() {
            self.ping(at);
        }
        self.quiesce()?;
        self.check_servers()?;
        let keys: Vec<ClientKey> = self.clients.iter().map(|client| client.key).collect();
        let step = self.step;
        self.model.check_quiet(step, |key| keys.contains(&key))
    }

    /// Lets a client of an account publish to each subject at a server.
    fn probe(&mut self, node: usize, account: usize) {
        let is_there = |cluster: &Self| {
            let mut clients = cluster.clients.iter();
            clients.position(|it| (it.home.node, it.home.account) == (node, account))
        };
        if is_there(self).is_none() {
            self.connect(node, account);
        }
        if let Some(at) = is_there(self) {
            for subject in SUBJECTS {
                self.publish(at, subject);
            }
        }
    }

    /// Performs everything that can be performed, until all servers have all routes to each other.
    pub(super) fn quiesce(&mut self) -> Outcome {
        for _ in 0..ROUNDS_MAX {
            if self.turn()? {
                continue;
            }
            if self.has_all_routes() {
                return Ok(());
            }
            let millis = 20 + self.dice.below(60) as u64;
            self.wait(Duration::from_millis(millis));
        }
        let routes: Vec<String> = (self.nodes.iter().filter_map(|node| node.running.as_ref()))
            .map(|running| format!("{}: {:?}", running.id, running.server.count_routes()))
            .collect();
        let text = format!("the cluster does not become quiet; its routes are {routes:?}");
        violation(Invariant::Liveness, text)
    }

    /// Performs everything once. Returns whether there was anything.
    fn turn(&mut self) -> Result<bool, Violation> {
        let mut is_busy = false;
        for at in 0..self.clients.len() {
            is_busy |= self.write(at, ALL);
        }
        for node in 0..self.nodes.len() {
            is_busy |= self.turn_server(node);
            self.notice_closed()?;
        }
        for at in 0..self.wires.len() {
            for end in 0..2 {
                is_busy |= self.tell(at, end);
                is_busy |= self.carry(at, end, ALL)?;
            }
        }
        for node in 0..self.nodes.len() {
            is_busy |= self.dial(node);
        }
        for at in 0..self.clients.len() {
            is_busy |= self.read(at, ALL)?;
        }
        Ok(is_busy)
    }

    /// Lets all threads of a server act once. Returns whether there was anything.
    fn turn_server(&mut self, node: usize) -> bool {
        let Some(server) = self.server(node) else {
            return false;
        };
        let mut is_busy = false;
        for key in server.connection_keys() {
            is_busy |= server.receive(key, ALL);
        }
        for shard in 0..server.shards() {
            is_busy |= server.take_mailbox(shard);
            is_busy |= server.handle_shard_timeout(shard);
        }
        for shard in 0..server.shards() {
            server.flush(shard);
        }
        for key in server.connection_keys() {
            is_busy |= server.wake(key);
        }
        is_busy || server.has_news_of_routes() || !server.is_idle()
    }

    /// Returns whether each server has exactly the routes to each other one that the settings require.
    fn has_all_routes(&self) -> bool {
        let running = |node: usize| self.nodes[node].running.as_ref();
        let is_complete = |node: usize| {
            let Some(own) = running(node) else {
                return false;
            };
            let (all, by_peer) = own.server.count_routes();
            let others = (0..self.nodes.len()).filter(|other| *other != node);
            let expected: BTreeMap<String, usize> = others
                .filter_map(|other| {
                    let id = running(other)?.id.clone();
                    Some((id, self.setup.routes_between(node, other)))
                })
                .collect();
            all == expected.values().sum::<usize>() && by_peer == expected
        };
        (0..self.nodes.len()).all(is_complete)
    }

    /// Checks that nothing is pending.
    fn check_servers(&mut self) -> Outcome {
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(running) = &node.running else {
                continue;
            };
            let pending = running.server.pending_bytes_most();
            if pending > 0 || !running.server.is_idle() {
                let text = format!("{pending} bytes or batches of server {number} are pending");
                return violation(Invariant::Memory, text);
            }
            let (sessions, _) = running.server.sessions_and_subscriptions();
            let clients = self.clients.iter();
            let clients = clients.filter(|client| client.home.node == number).count();
            if sessions != clients {
                let text = format!("server {number} has {sessions} sessions of {clients} clients");
                return violation(Invariant::Memory, text);
            }
        }
        match self.clients.iter().find(|client| client.is_waiting()) {
            None => Ok(()),
            Some(client) => {
                let text = format!("{:?} waits for a PONG", client.key);
                violation(Invariant::Liveness, text)
            }
        }
    }

    /// Checks that each server knows exactly the interest of the clients of each other one.
    fn check_interest(&mut self) -> Outcome {
        for from in 0..self.nodes.len() {
            let expected = self.model.interest_of(from);
            for to in (0..self.nodes.len()).filter(|to| *to != from) {
                self.check_announced(from, to, &expected)?;
                self.check_known(from, to, &expected)?;
            }
        }
        Ok(())
    }

    /// Checks the interest that has arrived on the routes from one server to another.
    fn check_announced(&self, from: usize, to: usize, expected: &Interest) -> Outcome {
        let mut announced = Interest::new();
        for wire in &self.wires {
            let is_from = |end: usize| wire.ends[end].node == from && wire.ends[1 - end].node == to;
            if let Some(end) = (0..2).find(|end| is_from(*end)) {
                for (place, weight) in &wire.directions[end].interest {
                    *announced.entry(place.clone()).or_default() += weight;
                }
            }
        }
        if announced == *expected {
            return Ok(());
        }
        let text = format!(
            "server {from} has announced {announced:?} to server {to}, and its clients have {expected:?}"
        );
        violation(Invariant::Interest, text)
    }

    /// Checks the interest of one server that another one knows.
    fn check_known(&self, from: usize, to: usize, expected: &Interest) -> Outcome {
        let running = |node: usize| self.nodes[node].running.as_ref();
        let (Some(own), Some(other)) = (running(to), running(from)) else {
            return Ok(());
        };
        let of_peer = own.server.known_interest();
        let of_peer = of_peer.into_iter().filter(|(id, ..)| *id == other.id);
        let known: Vec<(AccountId, String, String)> = of_peer
            .map(|(_, account, filter, queue)| (account, filter, queue))
            .collect();
        let places = expected.keys().cloned();
        let mut wanted: Vec<(AccountId, String, String)> = places
            .map(|(name, filter, queue)| (account_id(&self.access, &name), filter, queue))
            .collect();
        wanted.sort();
        if known == wanted {
            return Ok(());
        }
        let text =
            format!("server {to} knows {known:?} of server {from}, whose clients have {wanted:?}");
        violation(Invariant::Interest, text)
    }
}
