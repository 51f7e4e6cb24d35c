//! A [`Group`] over noraft.
//!
//! noraft decides elections, replication, and changes of members by joint consensus. It knows entries by their
//! positions only, counts the leader's own entries before they are synced, and has no pre-vote, check-quorum, or
//! transfer. This module adds these: it holds back messages until the votes and entries that they confirm are synced (`hold.rs`),
//! decides when a node may start an election (`elections.rs`), and steps back while the log cannot be written
//! (`step_back.rs`).
//!
//! Not for large groups or logs yet: all entries above the floor are in memory, and a follower removes entries that
//! the leader does not have one by one, with a round trip each.

mod codec;
mod elections;
mod flight;
mod hold;
mod reads;
mod step_back;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use noraft::{
    Actions, ClusterConfig, Log, LogEntries, LogEntry, LogIndex, LogPosition, Message, Node, Term,
};

use crate::port::{
    Entry, Group, Members, MessageError, NodeId, Output, Refused, Settings, Stored, Token,
};
use crate::wal::Vote;
use codec::Packet;
use elections::Elections;
use flight::Flights;
use hold::Hold;
use reads::Reads;
use step_back::LogState;

/// One group, decided by noraft.
#[derive(Debug)]
pub struct NoraftGroup {
    node: Node,
    /// Stored entries above the floor.
    stored: BTreeMap<u64, Vec<u8>>,
    outputs: VecDeque<Output>,
    hold: Hold,
    elections: Elections,
    log_state: LogState,
    flights: Flights,
    reads: Reads,
    /// Bytes of the entries that are not committed.
    uncommitted_bytes: usize,
    settings: Settings,
    /// The vote that was requested to be stored.
    vote: Vote,
    commit: u64,
    leader: (Option<NodeId>, u64),
}

impl NoraftGroup {
    /// Returns the last entry that a peer has confirmed to this node as the leader; 0 if none.
    pub(crate) fn confirmed(&self, peer: NodeId) -> u64 {
        self.flights.confirmed(noraft::NodeId::new(peer))
    }

    /// Executes the library's actions. `fresh` are the stored bytes of the entries that a message or a
    /// proposal brought, with the index of the first.
    fn take_actions(&mut self, fresh: &[(u64, Vec<u8>)]) {
        let actions = std::mem::take(self.node.actions_mut());
        let Actions {
            set_election_timeout,
            save_current_term,
            save_voted_for,
            append_log_entries,
            broadcast_message,
            send_messages,
            install_snapshots,
        } = actions;
        if set_election_timeout {
            self.elections.restart_timer(self.node.role());
        }
        if save_current_term || save_voted_for {
            self.save_vote();
        }
        if let Some(entries) = append_log_entries {
            self.append(&entries, fresh);
        }
        if let Some(message) = broadcast_message {
            let peers: Vec<_> = self.node.peers().collect();
            for peer in peers {
                self.send_raft(peer, message.clone());
            }
        }
        for (to, message) in send_messages {
            self.send_raft(to, message);
        }
        for peer in install_snapshots {
            self.outputs
                .push_back(Output::NeedSnapshot { peer: peer.get() });
        }
        self.report();
    }

    /// Requests that term and vote are stored. The library also stores the leader of a term in place of the vote,
    /// and forgets the vote when a leader steps down; only the first vote of a term matters.
    fn save_vote(&mut self) {
        let vote = Vote {
            term: self.term(),
            voted_for: self.node.voted_for().map(noraft::NodeId::get),
        };
        let is_decided = self.vote.term == vote.term && self.vote.voted_for.is_some();
        if vote == self.vote || is_decided {
            return;
        }
        self.vote = vote;
        let token = self.hold.next_token();
        self.hold.note_vote();
        self.outputs.push_back(Output::Vote {
            term: vote.term,
            voted_for: vote.voted_for,
            token,
        });
    }

    fn append(&mut self, entries: &LogEntries, fresh: &[(u64, Vec<u8>)]) {
        let before = entries.prev_position().index.get();
        let replaced = self.stored.split_off(&(before + 1));
        self.uncommitted_bytes -= replaced.values().map(Vec::len).sum::<usize>();
        self.hold.truncate(before);
        let token = self.hold.next_token();
        for (position, entry) in entries.iter_with_positions() {
            let index = position.index.get();
            // They are in order, without gaps.
            let first = fresh.first().map_or(u64::MAX, |(first, _)| *first);
            let at = usize::try_from(index.wrapping_sub(first)).unwrap_or(usize::MAX);
            let bytes = match fresh.get(at) {
                Some((_, bytes)) => bytes.clone(),
                None => codec::write_entry(&entry, &[]),
            };
            self.uncommitted_bytes += bytes.len();
            self.stored.insert(index, bytes.clone());
            self.outputs.push_back(Output::Append {
                index,
                term: position.term.get(),
                bytes,
                token,
            });
        }
        self.hold.note_append(entries.last_position().index.get());
    }

    fn send_raft(&mut self, to: noraft::NodeId, mut message: Message) {
        let after = match &mut message {
            Message::RequestVoteCall { .. } | Message::RequestVoteReply { .. } => self.hold.vote(),
            // Entries may leave before they are synced here, but nothing before the vote for this term.
            Message::AppendEntriesCall {
                term,
                commit_index,
                entries,
                ..
            } => {
                *commit_index = LogIndex::new(commit_index.get().min(self.hold.durable()));
                if !entries.is_empty() {
                    let now = self.elections.now();
                    let admitted = self.flights.admit(to, *term, entries, now, &self.stored);
                    let Some(admitted) = admitted else { return };
                    *entries = admitted;
                }
                self.hold.vote()
            }
            Message::AppendEntriesReply { .. } => self.hold.last_token(),
        };
        let is_transfer = self.elections.is_transfer(message.term().get());
        self.send(
            to,
            &Packet::Raft {
                message,
                is_transfer,
            },
            after,
        );
    }

    fn send(&mut self, to: noraft::NodeId, packet: &Packet, after: Token) {
        // An entry that was compacted cannot be sent; the answer to a later message requests a snapshot.
        let Some(bytes) = codec::write(packet, |index| self.stored.get(&index).cloned()) else {
            return;
        };
        let output = Output::Send {
            to: to.get(),
            bytes,
        };
        self.outputs.extend(self.hold.hold(after, output));
    }

    /// Reports commits and changes of leadership.
    fn report(&mut self) {
        let commit = self.node.commit_index().get().min(self.hold.durable());
        if commit > self.commit {
            let committed = self.stored.range(self.commit + 1..=commit);
            self.uncommitted_bytes -= committed.map(|(_, bytes)| bytes.len()).sum::<usize>();
            self.commit = commit;
            self.outputs.push_back(Output::Commit { index: commit });
        }
        let term = self.term();
        let node = match self.node.role().is_leader() {
            true => self.is_leader().then_some(self.node.id().get()),
            false => self.elections.leader_of(term),
        };
        if self.leader != (node, term) {
            self.reads.clear();
            self.leader = (node, term);
            self.outputs.push_back(Output::Leader { node, term });
        }
    }

    fn handle_raft(
        &mut self,
        message: &Message,
        fresh: &[(u64, Vec<u8>)],
    ) -> Result<(), MessageError> {
        let result = self.node.handle_message(message);
        self.take_actions(fresh);
        result.map_err(|_| MessageError::Contradiction)
    }

    /// Handles the answers of followers that waited for this node's own sync.
    fn handle_waiting_replies(&mut self) {
        for reply in self.hold.take_replies() {
            // It was checked when it came, and replies cannot contradict a snapshot.
            let _ = self.handle_raft(&reply, &[]);
        }
    }

    /// Returns the members at an index, and the index of the entry that made them members.
    fn last_config(&self, index: u64) -> (u64, ClusterConfig) {
        let entries = self.stored.range(..=index).rev();
        let mut configs = entries.filter_map(|(index, bytes)| match codec::read_entry(bytes)? {
            LogEntry::ClusterConfig(config) => Some((*index, config)),
            LogEntry::Term(_) | LogEntry::Command => None,
        });
        let floor = || (0, self.node.log().snapshot_config().clone());
        configs.next().unwrap_or_else(floor)
    }

    /// Removes the entries up to an index, or all if this node has another entry of that index.
    fn move_floor(&mut self, index: u64, term: Option<u64>, config: ClusterConfig) -> bool {
        let Some(term) = term else { return false };
        let note = codec::write_config(&config);
        let position = LogPosition::new(Term::new(term), LogIndex::new(index));
        if !self.node.handle_snapshot_installed(position, config) {
            return false;
        }
        let last = self.node.log().last_position().index.get();
        self.stored = self.stored.split_off(&(index + 1));
        self.stored.split_off(&(last + 1));
        self.hold.truncate(last);
        let token = self.hold.next_token();
        self.hold
            .note_append(last.min(self.hold.durable().max(index)));
        self.commit = self.commit.max(index);
        self.count_uncommitted();
        self.outputs.push_back(Output::Compact {
            index,
            term,
            note,
            token,
        });
        true
    }

    /// Removes the entries from an index on from the memory. The log replaces them with the next append.
    fn forget_entries(&mut self, index: u64) {
        let log = self.node.log();
        let (config, mut entries) = (log.snapshot_config().clone(), log.entries().clone());
        let count = index - 1 - entries.prev_position().index.get();
        entries.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        self.node = Node::restart(
            self.node.id(),
            self.node.current_term(),
            self.node.voted_for(),
            Log::new(config, entries),
        );
        self.stored.split_off(&index);
        self.count_uncommitted();
        self.hold.truncate(index - 1);
    }

    fn count_uncommitted(&mut self) {
        let entries = self.stored.range(self.commit + 1..);
        self.uncommitted_bytes = entries.map(|(_, bytes)| bytes.len()).sum();
    }

    fn config_is_committed(&self) -> bool {
        let first_of_term = self.node.log().entries().get_term(self.node.commit_index());
        let is_own = first_of_term == Some(self.node.current_term());
        is_own
            && !self.node.config().is_joint_consensus()
            && self.last_config(u64::MAX).0 <= self.commit
    }
}

impl Group for NoraftGroup {
    fn start(
        settings: Settings,
        founders: &[NodeId],
        stored: Stored,
        now: Duration,
    ) -> Option<Self> {
        let floor = LogPosition::new(Term::new(stored.floor.1), LogIndex::new(stored.floor.0));
        let is_founder = founders.contains(&settings.node);
        let config = match stored.note.is_empty() {
            true => ClusterConfig {
                voters: founders[..if is_founder { founders.len() } else { 0 }]
                    .iter()
                    .copied()
                    .map(noraft::NodeId::new)
                    .collect(),
                ..ClusterConfig::new()
            },
            false => codec::read_config(&stored.note)?,
        };
        let mut entries = LogEntries::new(floor);
        let mut by_index = BTreeMap::new();
        for (index, bytes) in (stored.floor.0 + 1..).zip(stored.entries) {
            entries.push(codec::read_entry(&bytes)?);
            by_index.insert(index, bytes);
        }
        let last = entries.last_position();
        let voted_for = stored.vote.voted_for.map(noraft::NodeId::new);
        let id = noraft::NodeId::new(settings.node);
        let node = Node::restart(
            id,
            Term::new(stored.vote.term),
            voted_for,
            Log::new(config, entries),
        );
        let mut group = NoraftGroup {
            node,
            stored: by_index,
            outputs: VecDeque::new(),
            hold: Hold::new(last.index.get()),
            elections: Elections::new(settings, now),
            log_state: LogState::new(settings.election),
            flights: Flights::new(settings.peer_bytes_max, settings.heartbeat * 2),
            reads: Reads::default(),
            uncommitted_bytes: 0,
            settings,
            vote: stored.vote,
            commit: stored.floor.0,
            leader: (None, stored.vote.term),
        };
        group.count_uncommitted();
        group.take_actions(&[]);
        Some(group)
    }

    fn propose(&mut self, command: &[u8]) -> Result<u64, Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        (self.settings).check_command(command, self.uncommitted_bytes)?;
        let index = self.node.propose_command().index.get();
        let bytes = codec::write_entry(&LogEntry::Command, command);
        self.take_actions(&[(index, bytes)]);
        Ok(index)
    }

    fn read(&mut self) -> Result<u64, Refused> {
        self.begin_read()
    }

    fn deliver(&mut self, from: NodeId, bytes: &[u8]) -> Result<(), MessageError> {
        let (packet, stored) =
            codec::read(noraft::NodeId::new(from), bytes).ok_or(MessageError::Malformed)?;
        // Any message may lead to a write. It may as well have been lost.
        if !self.log_state.is_writable {
            return Ok(());
        }
        match packet {
            Packet::Raft {
                message,
                is_transfer,
            } => self.deliver_raft(from, &message, is_transfer, stored),
            other => {
                self.deliver_election(from, &other);
                Ok(())
            }
        }
    }

    fn synced(&mut self, token: Token) {
        self.outputs.extend(self.hold.synced(token));
        self.handle_waiting_replies();
        self.report();
    }

    fn tick(&mut self, now: Duration) {
        self.tick_elections(now);
        self.report();
    }

    fn set_writable(&mut self, is_writable: bool) {
        if self.log_state.is_writable && !is_writable {
            self.hand_over();
        }
        self.log_state.is_writable = is_writable;
        self.report();
    }

    fn change_members(&mut self, members: &Members) -> Result<(), Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        if members.voters.is_empty() {
            return Err(Refused::NoVoters);
        }
        if !self.config_is_committed() {
            return Err(Refused::Pending);
        }
        let mut config = self.node.config().clone();
        let wanted: std::collections::BTreeSet<_> = members
            .voters
            .iter()
            .copied()
            .map(noraft::NodeId::new)
            .collect();
        for node in wanted.difference(&config.voters) {
            let has_all = self
                .node
                .follower_match_index(*node)
                .is_some_and(|index| index.get() >= self.commit);
            if !has_all {
                return Err(Refused::Behind(node.get()));
            }
        }
        let learners = members.learners.iter().copied().map(noraft::NodeId::new);
        config.non_voters = learners
            .filter(|node| !config.voters.contains(node) && !wanted.contains(node))
            .collect();
        if wanted != config.voters {
            config.new_voters = wanted;
        }
        self.node.propose_config(config);
        self.take_actions(&[]);
        Ok(())
    }

    fn transfer(&mut self, to: NodeId) -> Result<(), Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        let node = noraft::NodeId::new(to);
        let has_all =
            self.node.follower_match_index(node) == Some(self.node.log().last_position().index);
        if !has_all || !self.node.config().voters.contains(&node) {
            return Err(Refused::Behind(to));
        }
        self.send(
            node,
            &Packet::StartElection(self.node.current_term()),
            self.hold.vote(),
        );
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn entry(&self, index: u64) -> Option<Entry<'_>> {
        match self.stored.get(&index)?.split_first()? {
            (0, command) => Some(Entry::Command(command)),
            _ => Some(Entry::Internal),
        }
    }

    fn compact(&mut self, index: u64) -> bool {
        if !self.log_state.is_writable
            || index > self.commit
            || index <= self.node.log().snapshot_position().index.get()
        {
            return false;
        }
        let config = self.last_config(index).1;
        self.move_floor(index, self.term_of(index), config)
    }

    fn install(&mut self, index: u64, term: u64, note: &[u8]) -> bool {
        let is_new = self.log_state.is_writable && index > self.commit;
        let config = codec::read_config(note).filter(|_| is_new);
        config.is_some_and(|config| self.move_floor(index, Some(term), config))
    }

    fn is_leader(&self) -> bool {
        self.node.role().is_leader() && !self.elections.is_suspended && self.log_state.is_writable
    }

    fn term(&self) -> u64 {
        self.node.current_term().get()
    }

    fn last(&self) -> (u64, u64) {
        let last = self.node.log().last_position();
        (last.index.get(), last.term.get())
    }

    fn term_of(&self, index: u64) -> Option<u64> {
        let term = self.node.log().entries().get_term(LogIndex::new(index));
        term.map(Term::get)
    }

    fn stored(&self, index: u64) -> Option<&[u8]> {
        self.stored.get(&index).map(Vec::as_slice)
    }

    fn members(&self) -> Members {
        let config = self.node.config();
        Members {
            voters: config.voters.iter().map(|node| node.get()).collect(),
            learners: config.non_voters.iter().map(|node| node.get()).collect(),
        }
    }
}
