//! This node's member of a lane: its files, and what it has recorded if it leads.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use fanline_consensus::folders::{Applier, ApplyError, Journal};
use fanline_consensus::node::Node;
use fanline_consensus::port::NodeId;
use fanline_engine::jetstream::Follower;
use fanline_engine::store::DiskError;
use tracing::{error, info};

use super::super::disk::{FolderDisk, OpenFiles};
use super::super::syncer::{Job, SyncOf, SyncOfReplicas};
use super::copies::{Receiving, Sending};
use super::replication::Change;
use super::store::{COPY, JournaledFolders, LaneStore};
use crate::identity;

/// Time without a message of a member after which it does not count as current.
const CURRENT_SILENCE_MAX: Duration = Duration::from_secs(10);
/// Time after a failed write before it is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Bytes of executed entries of a lane after which its files are synced and its log is compacted. The entries are in
/// memory until then. A member that lacks more of them needs a copy of the files.
const COMPACTED_BYTES: usize = 16 << 20;

/// Bytes of entries that wait until fewer are uncommitted, above which a leader refuses messages.
const WAITING_BYTES_MAX: usize = 64 << 20;

pub(super) struct LaneMember {
    lane: u16,
    store: LaneStore,
    applier: Applier<LaneStore>,
    /// Committed entries that are not executed yet, with their indices.
    committed: VecDeque<(u64, Vec<u8>)>,
    /// When to execute them again, after a failure.
    retry_at: Option<Duration>,
    /// Index of the last executed entry.
    executed: u64,
    /// Bytes of executed entries since the last compaction.
    bytes: usize,
    compaction: Compaction,
    /// Whether this node was elected, but has entries to execute first.
    is_elected: bool,
    leading: Option<Leading>,
    sending: Option<Sending>,
    /// The folder for copies from other members, and the copy in it.
    copies: LaneStore,
    receiving: Option<Receiving>,
    /// Index of the last committed entry at the last report to clients.
    reported: u64,
    /// When the last message of each other member arrived.
    heard: BTreeMap<NodeId, Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compaction {
    Idle,
    Syncing,
    /// A sync failed: the system may have dropped what was written, so the log stays until the next start.
    Failed,
}

/// What a leader has recorded.
struct Leading {
    journal: Journal,
    /// Entries that are not proposed yet.
    recorded: VecDeque<(u64, Vec<u8>)>,
    recorded_bytes: usize,
    /// Indices of proposed entries, with their numbers in the journal.
    proposed: VecDeque<(u64, u64)>,
    /// Numbers of the last recorded and of the last executed entry.
    last: u64,
    executed: u64,
}

impl LaneMember {
    /// Opens the files, in which the effects of all entries up to an index are complete.
    pub(super) fn open(
        lane: u16,
        folder: &Path,
        files: &OpenFiles,
        executed: u64,
    ) -> Result<Self, DiskError> {
        let store = LaneStore::open(folder, &lane.to_string(), files)?;
        Ok(LaneMember {
            lane,
            applier: Applier::new(store.clone()),
            store,
            committed: VecDeque::new(),
            retry_at: None,
            executed,
            bytes: 0,
            compaction: Compaction::Idle,
            is_elected: false,
            leading: None,
            sending: None,
            copies: LaneStore::open(folder, &format!("{lane}.{COPY}"), files)?,
            receiving: None,
            reported: 0,
            heard: BTreeMap::new(),
        })
    }

    /// Notes a message of another member.
    pub(super) fn hear(&mut self, from: NodeId, now: Duration) {
        self.heard.insert(from, now);
    }

    /// Describes the other members as the leader knows them. A member is current if it votes and has
    /// confirmed what was committed at the last call.
    pub(super) fn followers(
        &mut self,
        others: Vec<(String, NodeId, bool)>,
        node: &Node<FolderDisk>,
        now: Duration,
    ) -> Vec<Follower> {
        let committed = node.committed(self.lane);
        let voters = node.members(self.lane).unwrap_or_default().voters;
        let before = std::mem::replace(&mut self.reported, committed);
        let followers = others.into_iter().map(|(name, id, is_there)| {
            let confirmed = node.confirmed(self.lane, id);
            let silence = self.heard.get(&id).map(|at| now.saturating_sub(*at));
            let is_heard = silence.is_some_and(|silence| silence < CURRENT_SILENCE_MAX);
            Follower {
                name,
                current: is_there && is_heard && confirmed >= before && voters.contains(&id),
                offline: !is_there,
                active: silence.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)),
                lag: committed.saturating_sub(confirmed),
            }
        });
        followers.collect()
    }

    /// Takes a committed entry, which [`execute`](Self::execute) executes.
    pub(super) fn commit(&mut self, index: u64, entry: Vec<u8>) {
        self.committed.push_back((index, entry));
    }

    /// Notes that this node was elected. It leads when all entries are executed.
    pub(super) fn elect(&mut self) {
        self.is_elected = true;
    }

    /// Executes committed entries. Returns what the lane's service has to do.
    pub(super) fn execute(&mut self, now: Duration) -> Option<Change> {
        if self.retry_at.is_some_and(|at| now < at) {
            return None;
        }
        while let Some((index, entry)) = self.committed.front() {
            if let Err(error) = self.applier.apply(entry) {
                self.note_failure(*index, error, now);
                return None;
            }
            if self.retry_at.take().is_some() {
                info!(
                    "lane {} of replicated streams: the disk accepts writes again",
                    self.lane
                );
            }
            let (index, bytes) = (*index, entry.len());
            self.committed.pop_front();
            self.executed = index;
            self.bytes += bytes;
            if let Some(leading) = &mut self.leading
                && let Some((_, entry)) = leading.proposed.pop_front_if(|(at, _)| *at == index)
            {
                leading.journal.set_applied(entry);
                leading.executed = entry;
                return Some(Change::Executed(self.lane));
            }
        }
        let is_ready = std::mem::take(&mut self.is_elected);
        is_ready.then_some(Change::Lead(self.lane))
    }

    fn note_failure(&mut self, index: u64, error: ApplyError, now: Duration) {
        if self.retry_at.is_none() {
            let lane = self.lane;
            error!("lane {lane} of replicated streams: entry {index} is not executed: {error}");
        }
        self.retry_at = Some(now + RETRY_DELAY);
    }

    /// Begins to record what the lane's service writes, and returns its folders.
    pub(super) fn lead(&mut self) -> Result<JournaledFolders, DiskError> {
        let mut found = BTreeMap::new();
        for folder in self.store.list()? {
            let names = self.applier.names(&folder)?;
            // A folder without files is one that is not complete.
            if names.iter().next().is_some() {
                found.insert(folder, names);
            }
        }
        let journal = Journal::new();
        self.leading = Some(Leading {
            journal: journal.clone(),
            recorded: VecDeque::new(),
            recorded_bytes: 0,
            proposed: VecDeque::new(),
            last: 0,
            executed: 0,
        });
        Ok(JournaledFolders {
            journal,
            store: self.store.clone(),
            found,
        })
    }

    /// Stops to record. Returns whether it did.
    pub(super) fn depose(&mut self) -> bool {
        self.is_elected = false;
        self.sending = None;
        let leading = self.leading.take();
        if let Some(leading) = &leading {
            leading.journal.end();
        }
        leading.is_some()
    }

    pub(super) fn is_leading(&self) -> bool {
        self.leading.is_some()
    }

    /// Returns whether so many entries wait for others to be committed that the lane takes no more messages.
    pub(super) fn is_full(&self) -> bool {
        let leading = self.leading.as_ref();
        leading.is_some_and(|leading| leading.recorded_bytes > WAITING_BYTES_MAX)
    }

    /// Proposes what was recorded. Returns the numbers of the last recorded and of the last executed entry.
    pub(super) fn propose(&mut self, node: &mut Node<FolderDisk>) -> (u64, u64) {
        let Some(leading) = &mut self.leading else {
            return (0, 0);
        };
        while let Some(recorded) = leading.journal.take() {
            leading.last = recorded.0;
            leading.recorded_bytes += recorded.1.len();
            leading.recorded.push_back(recorded);
        }
        while let Some((number, entry)) = leading.recorded.front() {
            // It is refused while the node is out of contact. A later entry must not overtake it.
            let Ok(index) = node.propose(self.lane, entry) else {
                break;
            };
            leading.proposed.push_back((index, *number));
            leading.recorded_bytes -= entry.len();
            leading.recorded.pop_front();
        }
        (leading.last, leading.executed)
    }

    /// Returns the names of the lane's streams, with their accounts.
    pub(super) fn streams(&self) -> Vec<(String, String)> {
        let folders = self.store.list().unwrap_or_default().into_iter();
        let parts = folders.filter_map(|name| {
            let (account, stream) = name.rsplit_once('/')?;
            Some((account.to_owned(), stream.to_owned()))
        });
        parts.collect()
    }

    /// Returns the files to sync before the next compaction, if it is time for it, or those of a copy.
    pub(super) fn poll_job(&mut self, files: &OpenFiles) -> Option<Job> {
        let of = |index| {
            let lane = self.lane;
            SyncOf::Replicas(SyncOfReplicas::Lane { lane, index })
        };
        if let Some(receiving) = self
            .receiving
            .as_mut()
            .filter(|it| it.is_complete && !it.is_syncing)
        {
            receiving.is_syncing = true;
            let of = of(None);
            let (files, folders) = receiving.unsynced().ok()?;
            return Some(Job { of, files, folders });
        }
        let is_busy = self.compaction != Compaction::Idle
            || self.sending.is_some()
            || self.retry_at.is_some();
        if self.bytes < COMPACTED_BYTES || is_busy {
            return None;
        }
        let of = of(Some(self.executed));
        let unsynced = match self.applier.unsynced() {
            Ok(unsynced) => unsynced,
            Err(error) => {
                error!(
                    "lane {} of replicated streams: cannot write names: {error}",
                    self.lane
                );
                self.bytes = 0;
                return None;
            }
        };
        self.bytes = 0;
        self.compaction = Compaction::Syncing;
        let (mut opened, mut folders) = (Vec::new(), Vec::new());
        for folder in unsynced {
            opened.extend(folder.files.iter().filter_map(|id| files.get(*id)));
            if folder.is_folder_dirty {
                folders.extend(self.store.folder(&folder.folder));
            }
        }
        let files = opened;
        Some(Job { of, files, folders })
    }

    /// Takes the result of a sync: compacts the log up to an index, or uses a copy.
    pub(super) fn handle_synced(
        &mut self,
        index: Option<u64>,
        result: Result<(), DiskError>,
        node: &mut Node<FolderDisk>,
    ) {
        let Some(index) = index else {
            if let Some(received) = self.receiving.take()
                && result.is_ok()
                && let Err(error) = self.install(&received, node)
            {
                error!(
                    "lane {} of replicated streams: a copy is not used: {error}",
                    self.lane
                );
            }
            return;
        };
        self.compaction = match result {
            Ok(()) => Compaction::Idle,
            Err(_) => Compaction::Failed,
        };
        if result.is_ok() {
            self.applier.close_synced();
            node.compact(self.lane, index);
        }
    }

    /// Uses a copy of another member's files.
    fn install(&mut self, received: &Receiving, node: &mut Node<FolderDisk>) -> io::Result<()> {
        let (lane, floor) = (self.lane, &received.floor);
        if node.committed(lane) >= floor.index {
            return self.copies.clear();
        }
        self.applier = Applier::new(self.store.clone());
        self.store.replace_by(&self.copies)?;
        self.compaction = Compaction::Idle;
        self.committed.retain(|(index, _)| *index > floor.index);
        self.executed = self.executed.max(floor.index);
        match node.install(lane, floor) {
            true => info!("lane {lane} of replicated streams has a copy of another member's files"),
            // The member that sent it begins again.
            false => return Err(io::Error::other("the log cannot be written")),
        }
        Ok(())
    }

    /// Begins a copy for another member, unless one is under way.
    pub(super) fn begin_copy(&mut self, to: NodeId, node: &mut Node<FolderDisk>, now: Duration) {
        if self.sending.is_some() || self.compaction == Compaction::Syncing {
            return;
        }
        let floor = node.wal().floor(self.lane);
        match Sending::new(to, identity::random_u64(), &self.store, floor, now) {
            Ok(sending) => self.sending = Some(sending),
            Err(error) => error!(
                "lane {} of replicated streams cannot be copied: {error}",
                self.lane
            ),
        }
    }

    /// Returns the next message of the copy for another member, and its receiver.
    pub(super) fn poll_copy(&mut self, now: Duration) -> Option<(NodeId, Vec<u8>)> {
        if self
            .receiving
            .as_ref()
            .is_some_and(|receiving| receiving.is_lost(now))
        {
            self.receiving = None;
        }
        let sending = self.sending.as_mut()?;
        if sending.is_lost(now) {
            self.sending = None;
            return None;
        }
        let to = sending.to;
        match sending.poll() {
            Ok(message) => message.map(|message| (to, message)),
            Err(error) => {
                error!(
                    "lane {} of replicated streams cannot be copied: {error}",
                    self.lane
                );
                self.sending = None;
                None
            }
        }
    }

    /// Handles a part of a copy from another member. Returns the answer.
    pub(super) fn receive_copy(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        now: Duration,
    ) -> Option<Vec<u8>> {
        if self.is_leading() || self.receiving.as_ref().is_some_and(|it| it.is_syncing) {
            return None;
        }
        match Receiving::receive(&mut self.receiving, &self.copies, from, bytes, now) {
            Ok(answer) => answer,
            Err(error) => {
                error!(
                    "lane {} of replicated streams: cannot store a copy: {error}",
                    self.lane
                );
                self.receiving = None;
                None
            }
        }
    }

    /// Handles the answer to a part of a copy.
    pub(super) fn receive_copied(&mut self, from: NodeId, bytes: &[u8], now: Duration) {
        if let Some(sending) = self.sending.as_mut().filter(|sending| sending.to == from)
            && sending.receive(bytes, now)
        {
            self.sending = None;
        }
    }
}
