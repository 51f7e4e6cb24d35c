//! The rules for starting an election, and for a leader that loses contact.
//!
//! *Pre-vote*: a node asks the voters before it raises its term, so that a node that was cut off disturbs no leader.
//! *Stickiness*: a node in contact with a leader ignores requests for votes, except those of a transfer.
//! *Check-quorum*: a leader without contact to a majority for an election time stops accepting proposals and
//! sending, so that its followers elect another one. It asks for pre-votes, too, and leads on if a majority grants
//! them: it may be the only node that can lead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use noraft::{LogPosition, Message, NodeId, Role};

use super::NoraftGroup;
use super::codec::Packet;
use crate::port::{Group as _, MessageError, Settings, Token};

/// Timers and contacts of a group.
#[derive(Debug)]
pub(super) struct Elections {
    settings: Settings,
    /// The time that passed, and the clock that measured it, which may jump.
    now: Duration,
    clock: Duration,
    random: u64,
    /// Time at which a follower asks for pre-votes, or a leader sends a heartbeat.
    due: Duration,
    /// Time of the last answer of each follower, as a leader.
    heard: BTreeMap<NodeId, Duration>,
    /// Time since which this node is the leader.
    leads_since: Option<Duration>,
    /// The leader of a term, and the time of its last message.
    leader: Option<(NodeId, u64, Duration)>,
    /// The voters that would vote for this node.
    granted: BTreeSet<NodeId>,
    /// The term for which a leader asked this node to start an election.
    transfer: Option<u64>,
    /// Whether this leader has lost contact with the majority, or waits for a sync for too long.
    pub is_suspended: bool,
}

impl Elections {
    pub(super) fn new(settings: Settings, now: Duration) -> Self {
        let mut elections = Elections {
            settings,
            now,
            clock: now,
            random: settings.seed | 1,
            due: now,
            heard: BTreeMap::new(),
            leads_since: None,
            leader: None,
            granted: BTreeSet::new(),
            transfer: None,
            is_suspended: false,
        };
        elections.restart_timer(Role::Follower);
        elections
    }

    pub(super) fn restart_timer(&mut self, role: Role) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let percent = u32::try_from(self.random % 100).unwrap_or(0);
        let delay = match role {
            Role::Leader => self.settings.heartbeat,
            Role::Follower | Role::Candidate => self.settings.election * (100 + percent) / 100,
        };
        self.due = self.now + delay;
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Returns the leader of a term, if known.
    pub(super) fn leader_of(&self, term: u64) -> Option<u64> {
        let leader = self.leader.filter(|(_, of, _)| *of == term);
        leader.map(|(node, ..)| node.get())
    }

    /// Whether this node starts the election of a term at a leader's request.
    pub(super) fn is_transfer(&self, term: u64) -> bool {
        self.transfer == Some(term)
    }

    fn has_recent_leader(&self) -> bool {
        self.leader
            .is_some_and(|(_, _, at)| self.now < at + self.settings.election)
    }
}

impl NoraftGroup {
    pub(super) fn tick_elections(&mut self, clock: Duration) {
        // While a clock goes back, no time passes. Without this, all timers would wait until it caught up.
        self.elections.now += clock.saturating_sub(self.elections.clock);
        self.elections.clock = clock;
        let now = self.elections.now;
        self.check_log(now);
        if !self.log_state.is_writable {
            return;
        }
        if self.node.role().is_leader() {
            self.elections.leads_since.get_or_insert(now);
            self.check_contacts();
            if now >= self.elections.due && self.elections.is_suspended {
                self.elections.restart_timer(Role::Follower);
                self.ask_peers();
            } else if now >= self.elections.due {
                self.node.heartbeat();
                self.take_actions(&[]);
                self.ask_for_confirmation();
            }
            return;
        }
        self.elections.leads_since = None;
        self.elections.is_suspended = false;
        if now >= self.elections.due {
            self.elections.restart_timer(Role::Follower);
            self.elections.granted.clear();
            self.withdraw_removal();
            if self.may_campaign() {
                self.ask_peers();
                self.campaign_if_granted();
            }
        }
    }

    /// Whether a set of nodes, with this one, is a majority of the voters.
    pub(super) fn is_majority(&self, is_in: impl Fn(NodeId) -> bool) -> bool {
        let config = self.node.config();
        let me = self.node.id();
        [&config.voters, &config.new_voters]
            .into_iter()
            .all(|voters| {
                let count = voters
                    .iter()
                    .filter(|node| **node == me || is_in(**node))
                    .count();
                voters.is_empty() || count > voters.len() / 2
            })
    }

    fn check_contacts(&mut self) {
        let elections = &self.elections;
        let since = elections.leads_since.unwrap_or(elections.now);
        let is_recent = |node: NodeId| {
            let at = elections
                .heard
                .get(&node)
                .copied()
                .unwrap_or(since)
                .max(since);
            elections.now < at + elections.settings.election
        };
        let has_contact = self.is_majority(is_recent);
        let is_well = has_contact && !self.log_state.is_stalled;
        if self.elections.is_suspended && is_well {
            self.elections.due = self.elections.now;
        }
        self.elections.is_suspended = !is_well;
    }

    fn may_campaign(&self) -> bool {
        let config = self.node.config();
        let me = self.node.id();
        let is_voter = config.voters.contains(&me) || config.new_voters.contains(&me);
        is_voter && !self.node.role().is_leader()
    }

    /// Removes the entry that removes this node from the voters, and all later ones, from the memory if no leader
    /// commits them.
    ///
    /// This node led when it wrote them, and did not count for them. The other nodes may lack them, and need
    /// its vote for an election in which this node may not take part with its longer log.
    fn withdraw_removal(&mut self) {
        let (index, _) = self.last_config(u64::MAX);
        if self.may_campaign() || index <= self.commit {
            return;
        }
        let before = self.last_config(index - 1).1;
        let me = self.node.id();
        if before.voters.contains(&me) || before.new_voters.contains(&me) {
            self.forget_entries(index);
        }
    }

    /// Asks all peers for pre-votes.
    fn ask_peers(&mut self) {
        let packet = Packet::PreVote(self.node.log().last_position());
        let peers: Vec<_> = self.node.peers().collect();
        for peer in peers {
            self.send(peer, &packet, Token(0));
        }
    }

    fn campaign_if_granted(&mut self) {
        let granted = std::mem::take(&mut self.elections.granted);
        if self.is_majority(|node| granted.contains(&node)) {
            self.node.handle_election_timeout();
            self.take_actions(&[]);
        } else {
            self.elections.granted = granted;
        }
    }

    pub(super) fn deliver_election(&mut self, from: u64, packet: &Packet) {
        let from = NodeId::new(from);
        match packet {
            Packet::PreVote(last) => self.answer_pre_vote(from, *last),
            Packet::Confirm(term, round) => self.answer_confirm(from, *term, *round),
            Packet::Confirmed(term, round) => self.take_confirmation(from, *term, *round),
            // A grant of an earlier question is as good: it only permits an election.
            Packet::PreVoteGranted
                if self.may_campaign() && !self.elections.has_recent_leader() =>
            {
                self.elections.granted.insert(from);
                self.campaign_if_granted();
            }
            Packet::PreVoteGranted if self.node.role().is_leader() => {
                let now = self.elections.now;
                self.elections.heard.insert(from, now);
            }
            Packet::StartElection(term)
                if *term == self.node.current_term() && self.may_campaign() =>
            {
                self.elections.transfer = Some(term.get() + 1);
                self.node.handle_election_timeout();
                self.take_actions(&[]);
            }
            _ => {}
        }
    }

    fn answer_pre_vote(&mut self, from: NodeId, last: LogPosition) {
        let is_behind = last < self.node.log().last_position();
        let is_led = self.elections.has_recent_leader() || self.is_leader();
        if !is_behind && !is_led {
            self.send(from, &Packet::PreVoteGranted, Token(0));
        }
    }

    pub(super) fn deliver_raft(
        &mut self,
        from: u64,
        message: &Message,
        is_transfer: bool,
        stored: Vec<Vec<u8>>,
    ) -> Result<(), MessageError> {
        let now = self.elections.now;
        let node = NodeId::new(from);
        match message {
            Message::RequestVoteCall { term, .. } => {
                let is_led = self.elections.has_recent_leader() || self.is_leader();
                if is_led && !is_transfer && *term > self.node.current_term() {
                    return Ok(());
                }
            }
            Message::AppendEntriesCall { term, entries, .. }
                if *term >= self.node.current_term() =>
            {
                self.elections.leader = Some((node, term.get(), now));
                let first = entries.prev_position().index.get() + 1;
                let fresh: Vec<_> = (first..).zip(stored).collect();
                return self.handle_raft(message, &fresh);
            }
            Message::AppendEntriesReply {
                term,
                last_position,
                ..
            } if *term == self.node.current_term() => {
                self.elections.heard.insert(node, now);
                let is_known = self.node.log().entries().contains(*last_position);
                let confirmed = is_known.then_some(last_position.index.get());
                self.flights.confirm(node, confirmed, now, &self.stored);
                if is_known && self.hold.hold_reply(from, message, last_position.index) {
                    return Ok(());
                }
            }
            _ => {}
        }
        self.handle_raft(message, &[])
    }
}
