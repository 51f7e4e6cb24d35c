//! A [`Group`] over openraft.
//!
//! openraft is a set of tasks that wait for each other, for the disk, and for other nodes. Here, an executor of the
//! group runs them within the calls of the interface (`runtime/`), until all of them wait. Its writes become outputs
//! that syncs complete (`store.rs`), and its requests messages that other messages answer (`network.rs`).
//!
//! openraft decides elections with pre-votes, replication, reads, changes of members by joint consensus, and transfers.
//! This module adds limits on bytes, completes a change of members that another leader began, and steps back while
//! the log cannot be written, or the majority does not answer.

mod codec;
mod deliver;
mod network;
mod runtime;
mod store;
mod types;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use openraft::{
    ChangeMembers, Config, EmptyNode, Raft, RaftMetrics, ReadPolicy, ServerState, SnapshotPolicy,
    alias,
};

use crate::port::{
    Entry, Group, Members, MessageError, NodeId, Output, Refused, Settings, Stored, Token,
};
use network::Network;
use runtime::{Executor, Instant, Shared, poll_once};
use store::{Change, Log, Machine, Store};
use types::{Command, LogId, Types, log_id, members, membership, term_of};

/// Requests of other nodes that are handled at the same time. More are ignored, as if they were lost.
const REQUESTS_MAX: usize = 64;

/// One group, decided by openraft.
pub struct OpenraftGroup {
    settings: Settings,
    executor: Rc<Executor>,
    raft: Raft<Types, Machine>,
    metrics: alias::WatchReceiverOf<Types, RaftMetrics<Types>>,
    store: Shared<Store>,
    /// The caller's clock, which may jump.
    clock: Duration,
    /// Stored entries above the floor: term and bytes.
    stored: BTreeMap<u64, (u64, Rc<[u8]>)>,
    floor: (u64, u64),
    outputs: VecDeque<Output>,
    commit: u64,
    uncommitted_bytes: usize,
    leader: (Option<NodeId>, u64),
    is_writable: bool,
    /// Since when a sync is the last one, although others wait.
    waits: Option<(Token, Instant)>,
    is_stalled: bool,
    leads_since: Option<Instant>,
    is_suspended: bool,
    /// The term in which this leader changes members.
    change: Rc<Cell<Option<u64>>>,
    reads: Reads,
    requests: Rc<Cell<usize>>,
    /// The leader's last offer of a snapshot: its number, its sender, and its floor.
    offer: Option<(u64, NodeId, LogId)>,
}

#[derive(Debug, Default)]
struct Reads {
    last: u64,
    /// Reads that a majority confirmed, with the index that answers them.
    confirmed: Rc<RefCell<Vec<(u64, u64)>>>,
    /// Reads that a change of leadership ended.
    ended: u64,
}

impl fmt::Debug for OpenraftGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenraftGroup")
            .field("raft", &self.raft)
            .field("commit", &self.commit)
            .field("leader", &self.leader)
            .finish_non_exhaustive()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the library's settings. A voter waits for as long as a leader may rely on it, and then for a drawn time. The
/// sum is between the election time and twice this time.
fn config(settings: &Settings) -> Option<Arc<Config>> {
    let election = millis(settings.election);
    let config = Config {
        heartbeat_interval: millis(settings.heartbeat),
        election_timeout_min: election / 2,
        election_timeout_max: election,
        install_snapshot_timeout: election * 4,
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 0,
        purge_batch_size: 1,
        // Only queues within this process, which grow as needed.
        api_channel_size: Some(1024),
        notification_channel_size: Some(1024),
        state_machine_channel_size: Some(1024),
        quorum_loss_probe_interval: Some(election * 2),
        enable_pre_vote: Some(true),
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    config.validate().ok().map(Arc::new)
}

impl OpenraftGroup {
    fn metrics(&self) -> impl std::ops::Deref<Target = RaftMetrics<Types>> + '_ {
        self.metrics.borrow_watched()
    }

    /// Runs the library's tasks, and takes over what they did.
    fn run(&mut self) {
        self.executor.run();
        self.take_changes();
        self.report();
    }

    fn take_changes(&mut self) {
        let mut store = self.store.borrow_mut();
        for change in std::mem::take(&mut store.changes) {
            match change {
                Change::Append(index, term, bytes) => {
                    self.uncommitted_bytes += bytes.len();
                    self.stored.insert(index, (term, bytes));
                }
                Change::Truncate(last) => {
                    let removed = self.stored.split_off(&(last + 1));
                    self.uncommitted_bytes -= bytes_of(removed.values());
                }
                Change::Floor(index) => {
                    let kept = self.stored.split_off(&(index + 1));
                    let uncommitted = self.stored.range(self.commit + 1..);
                    self.uncommitted_bytes -= bytes_of(uncommitted.map(|(_, entry)| entry));
                    self.stored = kept;
                    self.commit = self.commit.max(index);
                    self.floor = (index, term_of(&store.floor));
                }
            }
        }
        self.outputs.append(&mut store.outputs);
    }

    /// Reports commits, changes of leadership, and reads.
    fn report(&mut self) {
        let commit = {
            let store = self.store.borrow();
            store.applied.index.min(store.durable)
        };
        if commit > self.commit {
            let committed = self.stored.range(self.commit + 1..=commit);
            self.uncommitted_bytes -= bytes_of(committed.map(|(_, entry)| entry));
            self.commit = commit;
            self.outputs.push_back(Output::Commit { index: commit });
        }
        let (leader, term, leads) = {
            let metrics = self.metrics();
            let leads = metrics.state == ServerState::Leader;
            (metrics.current_leader, metrics.current_term, leads)
        };
        let node = match leads {
            true => self.is_leader().then_some(self.settings.node),
            false => leader.filter(|node| *node != self.settings.node),
        };
        if self.leader != (node, term) {
            self.leader = (node, term);
            self.reads.ended = self.reads.last;
            self.outputs.push_back(Output::Leader { node, term });
        }
        self.report_reads();
    }

    fn report_reads(&mut self) {
        let (ended, commit) = (self.reads.ended, self.commit);
        let mut confirmed = self.reads.confirmed.borrow_mut();
        confirmed.retain(|(id, _)| *id > ended);
        for (id, index) in confirmed.extract_if(.., |(_, index)| *index <= commit) {
            self.outputs.push_back(Output::Read { id, index });
        }
    }

    /// Notes whether syncs make progress, and whether a majority answers this leader.
    fn check_contacts(&mut self) {
        let now = self.executor.now();
        let election = self.settings.election;
        let (synced, last) = {
            let store = self.store.borrow();
            (store.synced_token, store.last_token)
        };
        self.waits = match self.waits {
            _ if synced == last => None,
            Some((before, since)) if before == synced => Some((before, since)),
            _ => Some((synced, now)),
        };
        let was_stalled = self.is_stalled;
        self.is_stalled = self.waits.is_some_and(|(_, since)| now - since >= election);
        if self.is_stalled && !was_stalled {
            self.hand_over();
        }
        let acked = {
            let metrics = self.metrics();
            let mut voters = metrics.membership_config.voter_ids();
            let acked = match voters.all(|node| node == self.settings.node) {
                true => Some(now),
                false => metrics.last_quorum_acked.as_deref().copied(),
            };
            (metrics.state == ServerState::Leader).then_some(acked)
        };
        let Some(acked) = acked else {
            self.leads_since = None;
            self.is_suspended = false;
            self.store.borrow_mut().may_lead = self.is_writable;
            return;
        };
        let since = *self.leads_since.get_or_insert(now);
        let acked = acked.map_or(since, |acked| acked.max(since));
        let is_lost = now - acked >= election;
        self.is_suspended = is_lost || self.is_stalled;
        // Heartbeats look for the majority again, in the library's rhythm.
        self.store.borrow_mut().may_lead = self.is_writable && !self.is_stalled;
    }

    /// As a leader, asks the voter with the most entries to start an election.
    fn hand_over(&mut self) {
        let me = self.settings.node;
        let to = {
            let metrics = self.metrics();
            let voters: BTreeSet<_> = metrics.membership_config.voter_ids().collect();
            let progress = metrics.replication.iter().flatten();
            let voters = progress.filter(|(node, _)| **node != me && voters.contains(node));
            voters
                .max_by_key(|(_, matched)| **matched)
                .map(|(node, _)| *node)
        };
        if let Some(to) = to {
            self.executor.enter(|| {
                poll_once(self.raft.trigger().transfer_leader(to));
            });
        }
    }

    /// Returns the index up to which a node has this leader's entries.
    fn matched(&self, node: NodeId) -> Option<u64> {
        let metrics = self.metrics();
        let matched = metrics.replication.as_ref()?.get(&node)?;
        matched.map(|id| id.index)
    }

    /// Whether the last change of members is complete, and an entry of this leader committed.
    fn is_settled(&self) -> bool {
        let metrics = self.metrics();
        let (last, committed) = (
            &metrics.membership_config,
            &metrics.committed_membership_config,
        );
        let is_joint = last.get_joint_config().len() > 1;
        self.term_of(self.commit) == Some(metrics.current_term)
            && last.log_id() == committed.log_id()
            && !is_joint
            && self.change.get() != Some(metrics.current_term)
    }

    fn begin_change(&self, changes: ChangeMembers<NodeId, EmptyNode>) {
        let term = self.term();
        self.change.set(Some(term));
        let (raft, change) = (self.raft.clone(), self.change.clone());
        self.executor.spawn_in(async move {
            // If it fails, this node does not lead any more, and the next leader completes it.
            let _ = raft.change_membership(changes, false).await;
            if change.get() == Some(term) {
                change.set(None);
            }
        });
    }

    /// Begins the second step of a change that another leader began.
    fn complete_change(&mut self) {
        let is_open = {
            let metrics = self.metrics();
            let last = &metrics.membership_config;
            last.get_joint_config().len() > 1
                && last.log_id() == metrics.committed_membership_config.log_id()
                && self.change.get() != Some(metrics.current_term)
        };
        if is_open && self.is_leader() {
            self.begin_change(ChangeMembers::AddVoterIds(BTreeSet::new()));
        }
    }
}

impl Drop for OpenraftGroup {
    fn drop(&mut self) {
        self.executor.clear();
    }
}

fn bytes_of<'a>(entries: impl Iterator<Item = &'a (u64, Rc<[u8]>)>) -> usize {
    entries.map(|(_, bytes)| bytes.len()).sum()
}

impl Group for OpenraftGroup {
    fn start(
        settings: Settings,
        founders: &[NodeId],
        stored: Stored,
        now: Duration,
    ) -> Option<Self> {
        let is_founder = founders.contains(&settings.node);
        let founders = founders.iter().copied().filter(|_| is_founder).collect();
        let members = match stored.note.is_empty() {
            true => membership(founders, BTreeSet::new(), BTreeSet::new()),
            false => codec::read_members(&stored.note)?,
        };
        let mut store = Store::new(
            settings.node,
            log_id(stored.floor.0, stored.floor.1),
            members,
            (stored.vote.term, stored.vote.voted_for),
            settings.peer_bytes_max,
        );
        for bytes in &stored.entries {
            store.restore(bytes)?;
        }
        store.next_request = settings.seed;
        let store = Rc::new(RefCell::new(store));
        let executor = Executor::new(settings.seed, now);
        let network = Network {
            store: store.clone(),
            heartbeat: settings.heartbeat,
            election: settings.election,
        };
        let (log, machine) = (Log(store.clone()), Machine(store.clone()));
        let raft = Raft::new(settings.node, config(&settings)?, network, log, machine);
        let raft = executor.complete(raft)?.ok()?;
        let metrics = raft.metrics();
        let mut group = OpenraftGroup {
            settings,
            executor,
            raft,
            metrics,
            store,
            clock: now,
            stored: BTreeMap::new(),
            floor: stored.floor,
            outputs: VecDeque::new(),
            commit: stored.floor.0,
            uncommitted_bytes: 0,
            leader: (None, stored.vote.term),
            is_writable: true,
            waits: None,
            is_stalled: false,
            leads_since: None,
            is_suspended: false,
            change: Rc::default(),
            reads: Reads::default(),
            requests: Rc::default(),
            offer: None,
        };
        group.run();
        Some(group)
    }

    fn propose(&mut self, command: &[u8]) -> Result<u64, Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        (self.settings).check_command(command, self.uncommitted_bytes)?;
        let command = Command(codec::write_command(command));
        let before = self.last().0;
        let bytes = command.0.clone();
        self.executor.enter(|| {
            poll_once(self.raft.client_write_ff(command, None));
        });
        self.run();
        // The library may have refused it, or have added an entry of its own before it.
        let mut added = self.stored.range(before + 1..);
        let added = added.find(|(_, (_, added))| Rc::ptr_eq(added, &bytes));
        added.map(|(index, _)| *index).ok_or(Refused::NotLeader)
    }

    fn read(&mut self) -> Result<u64, Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        if self.term_of(self.commit) != Some(self.term()) {
            return Err(Refused::Pending);
        }
        self.reads.last += 1;
        let id = self.reads.last;
        let (raft, confirmed) = (self.raft.clone(), self.reads.confirmed.clone());
        self.executor.spawn_in(async move {
            // Without an answer, this node loses its lead, which ends the read.
            if let Ok(read) = raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
                let index = read.read_log_id().index();
                confirmed.borrow_mut().push((id, index));
            }
        });
        self.run();
        Ok(id)
    }

    fn deliver(&mut self, from: NodeId, bytes: &[u8]) -> Result<(), MessageError> {
        let (number, packet) = codec::read(bytes).ok_or(MessageError::Malformed)?;
        // Any message may lead to a write. It may as well have been lost.
        if !self.is_writable {
            return Ok(());
        }
        self.deliver_packet(from, number, packet)?;
        self.run();
        match self.metrics().running_state {
            Ok(()) => Ok(()),
            Err(_) => Err(MessageError::Contradiction),
        }
    }

    fn synced(&mut self, token: Token) {
        self.executor.enter(|| {
            self.store.borrow_mut().synced(token);
        });
        self.run();
    }

    fn tick(&mut self, now: Duration) {
        // While a clock goes back, no time passes. Without this, all timers would wait until it caught up.
        let passed = now.saturating_sub(self.clock);
        self.clock = now;
        self.executor.enter(|| self.executor.pass(passed));
        self.check_contacts();
        self.complete_change();
        self.run();
    }

    fn set_writable(&mut self, is_writable: bool) {
        if self.is_writable == is_writable {
            return;
        }
        if !is_writable {
            self.hand_over();
        }
        self.is_writable = is_writable;
        self.run();
        self.store.borrow_mut().may_lead = is_writable;
        let raft = self.raft.clone();
        self.executor.enter(|| {
            raft.runtime_config().elect(is_writable);
            raft.runtime_config().heartbeat(is_writable);
        });
    }

    fn change_members(&mut self, wanted: &Members) -> Result<(), Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        if wanted.voters.is_empty() {
            return Err(Refused::NoVoters);
        }
        if !self.is_settled() {
            return Err(Refused::Pending);
        }
        let now = self.members();
        for node in &wanted.voters {
            let is_new = !now.voters.contains(node);
            if is_new && self.matched(*node).is_none_or(|index| index < self.commit) {
                return Err(Refused::Behind(*node));
            }
        }
        let voters: BTreeSet<_> = wanted.voters.iter().copied().collect();
        let learners = wanted.learners.iter();
        let all = now.voters.iter().chain(&wanted.voters).chain(learners);
        let nodes = all.map(|node| (*node, EmptyNode {})).collect();
        self.begin_change(ChangeMembers::Batch(vec![
            ChangeMembers::ReplaceAllNodes(nodes),
            ChangeMembers::ReplaceAllVoters(voters),
        ]));
        self.run();
        Ok(())
    }

    fn transfer(&mut self, to: NodeId) -> Result<(), Refused> {
        if !self.is_leader() {
            return Err(Refused::NotLeader);
        }
        let is_voter = self.members().voters.contains(&to);
        if !is_voter || self.matched(to) != Some(self.last().0) {
            return Err(Refused::Behind(to));
        }
        self.executor.enter(|| {
            poll_once(self.raft.trigger().transfer_leader(to));
        });
        self.run();
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn entry(&self, index: u64) -> Option<Entry<'_>> {
        match self.stored.get(&index)?.1.split_first()? {
            (0, command) => Some(Entry::Command(command)),
            _ => Some(Entry::Internal),
        }
    }

    fn compact(&mut self, index: u64) -> bool {
        if !self.is_writable || index > self.commit || index <= self.floor.0 {
            return false;
        }
        let Some(term) = self.term_of(index) else {
            return false;
        };
        {
            let mut store = self.store.borrow_mut();
            let members = store.members_at(index);
            store.move_floor(log_id(index, term), members);
        }
        self.take_changes();
        // The library purges its entries when it has this snapshot, and does not send them.
        self.executor.enter(|| {
            poll_once(self.raft.trigger().snapshot());
        });
        self.run();
        true
    }

    fn install(&mut self, index: u64, term: u64, note: &[u8]) -> bool {
        match codec::read_members(note) {
            Some(members) if self.is_writable && index > self.commit => {
                self.install_members(log_id(index, term), members)
            }
            _ => false,
        }
    }

    fn is_leader(&self) -> bool {
        let leads = self.metrics().state == ServerState::Leader;
        leads && self.is_writable && !self.is_suspended
    }

    fn term(&self) -> u64 {
        self.metrics().current_term
    }

    fn last(&self) -> (u64, u64) {
        let last = self.stored.last_key_value();
        last.map_or(self.floor, |(index, (term, _))| (*index, *term))
    }

    fn term_of(&self, index: u64) -> Option<u64> {
        if index == self.floor.0 {
            return Some(self.floor.1);
        }
        self.stored.get(&index).map(|(term, _)| *term)
    }

    fn stored(&self, index: u64) -> Option<&[u8]> {
        self.stored.get(&index).map(|(_, bytes)| &bytes[..])
    }

    fn members(&self) -> Members {
        members(self.metrics().membership_config.membership())
    }
}
