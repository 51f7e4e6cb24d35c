//! The log and the state machine of the library. They decide nothing: writes become outputs, and syncs complete them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;

use futures_util::{Stream, StreamExt as _};
use openraft::async_runtime::{Oneshot as _, OneshotSender as _};
use openraft::storage::{EntryResponder, IOFlushed, RaftLogStorage, RaftStateMachine};
use openraft::{
    EntryPayload, LogState, OptionalSend, RaftLogReader, RaftSnapshotBuilder, Snapshot,
    SnapshotMeta, alias,
};

use super::codec::{self, Packet};
use super::runtime::{Oneshot, Shared};
use super::types::{
    Entry, LeaderId, LogId, Membership, StoredMembership, Types, Vote, log_id, term_of,
};
use crate::port::{NodeId, Output, Token};

type Sender<T> = alias::OneshotSenderOf<Types, T>;

/// A change of the log, for the group's own view of it.
pub(super) enum Change {
    Append(u64, u64, Rc<[u8]>),
    /// All entries above an index were removed.
    Truncate(u64),
    /// All entries up to an index were removed.
    Floor(u64),
}

/// A write that waits for a sync.
enum Waiting {
    Append(IOFlushed<Types>, u64),
    Other(Sender<()>),
}

/// What a group has stored, and what waits for syncs and answers.
pub(super) struct Store {
    /// Entries above those that the library has purged. It purges later than the log is compacted, because it may be
    /// sending them.
    log: BTreeMap<u64, Entry>,
    purged: LogId,
    /// The last compacted entry, and the members there.
    pub floor: LogId,
    members: Membership,
    pub vote: Option<Vote>,
    /// The term and the node of the last vote that was written.
    written_vote: (u64, Option<NodeId>),
    pub applied: LogId,
    pub outputs: VecDeque<Output>,
    pub changes: Vec<Change>,
    pub last_token: Token,
    pub synced_token: Token,
    waiting: VecDeque<(Token, Waiting)>,
    /// The last index that is synced.
    pub durable: u64,
    /// Requests without an answer, each with its receiver.
    pub requests: BTreeMap<u64, (NodeId, Sender<Packet>)>,
    pub next_request: u64,
    /// Whether entries and heartbeats may be sent.
    pub may_lead: bool,
    pub peer_bytes_max: usize,
}

impl Store {
    pub(super) fn new(
        node: NodeId,
        floor: LogId,
        members: Membership,
        (term, voted_for): (u64, Option<NodeId>),
        peer_bytes_max: usize,
    ) -> Self {
        use openraft::vote::{RaftLeaderId as _, RaftVote as _};
        let leader = |node| LeaderId::new(term, node);
        Store {
            log: BTreeMap::new(),
            purged: floor,
            floor,
            members,
            // A term without a vote counts as one for itself, which grants nothing to others.
            vote: (term > 0)
                .then(|| Vote::from_leader_id(leader(voted_for.unwrap_or(node)), false)),
            written_vote: (term, voted_for),
            applied: floor,
            outputs: VecDeque::new(),
            changes: Vec::new(),
            last_token: Token(0),
            synced_token: Token(0),
            waiting: VecDeque::new(),
            durable: floor.index,
            requests: BTreeMap::new(),
            next_request: 0,
            may_lead: true,
            peer_bytes_max,
        }
    }

    /// Adds an entry that was stored before the start.
    pub(super) fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let entry = codec::read_entry(self.last(), bytes)?;
        self.durable = entry.log_id.index;
        self.changes.push(Change::Append(
            entry.log_id.index,
            term_of(&entry.log_id),
            codec::write_entry(&entry),
        ));
        self.log.insert(entry.log_id.index, entry);
        Some(())
    }

    pub(super) fn last(&self) -> LogId {
        let last = self.log.last_key_value();
        last.map_or(self.purged, |(_, entry)| entry.log_id)
    }

    pub(super) fn send(&mut self, to: NodeId, number: u64, packet: &Packet) {
        let bytes = codec::write(number, packet);
        self.outputs.push_back(Output::Send { to, bytes });
    }

    fn next_token(&mut self) -> Token {
        self.last_token.0 += 1;
        self.last_token
    }

    /// Completes the writes that a sync covers.
    pub(super) fn synced(&mut self, token: Token) {
        self.synced_token = self.synced_token.max(token).min(self.last_token);
        while let Some((_, waiting)) = self
            .waiting
            .pop_front_if(|(token, _)| *token <= self.synced_token)
        {
            match waiting {
                Waiting::Append(flushed, index) => {
                    self.durable = self.durable.max(index);
                    flushed.io_completed(Ok(()));
                }
                Waiting::Other(done) => {
                    // The library may have stopped waiting.
                    let _ = done.send(());
                }
            }
        }
    }

    fn append(&mut self, entries: impl IntoIterator<Item = Entry>, flushed: IOFlushed<Types>) {
        let token = self.next_token();
        for entry in entries {
            let (index, term) = (entry.log_id.index, term_of(&entry.log_id));
            let bytes = codec::write_entry(&entry);
            self.outputs.push_back(Output::Append {
                index,
                term,
                bytes: bytes.to_vec(),
                token,
            });
            self.changes.push(Change::Append(index, term, bytes));
            self.log.insert(index, entry);
        }
        let last = self.last().index;
        self.waiting
            .push_back((token, Waiting::Append(flushed, last)));
    }

    fn truncate(&mut self, last: u64) {
        self.log.split_off(&(last + 1));
        self.durable = self.durable.min(last);
        for (_, waiting) in &mut self.waiting {
            if let Waiting::Append(_, index) = waiting {
                *index = (*index).min(last);
            }
        }
        self.changes.push(Change::Truncate(last));
    }

    /// Returns the members at an index.
    pub(super) fn members_at(&self, index: u64) -> Membership {
        let entries = self.log.range(..=index).rev();
        let mut found = entries.filter_map(|(_, entry)| match &entry.payload {
            EntryPayload::Membership(members) => Some(members.clone()),
            _ => None,
        });
        found.next().unwrap_or_else(|| self.members.clone())
    }

    /// Removes the entries up to an index, which a snapshot replaces.
    pub(super) fn move_floor(&mut self, floor: LogId, members: Membership) -> Token {
        let token = self.next_token();
        self.outputs.push_back(Output::Compact {
            index: floor.index,
            term: term_of(&floor),
            note: codec::write_members(&members),
            token,
        });
        self.changes.push(Change::Floor(floor.index));
        (self.floor, self.members) = (floor, members);
        token
    }

    fn snapshot(&self) -> alias::SnapshotOf<Types, ()> {
        Snapshot {
            meta: SnapshotMeta {
                last_log_id: Some(self.floor),
                last_membership: StoredMembership::new(Some(self.floor), self.members.clone()),
            },
            snapshot: (),
        }
    }
}

/// Waits for the sync of a token.
async fn sync(store: &Shared<Store>, token: Token) -> Result<(), io::Error> {
    let (done, wait) = Oneshot::channel();
    store
        .borrow_mut()
        .waiting
        .push_back((token, Waiting::Other(done)));
    wait.await.map_err(|_| io::ErrorKind::Interrupted.into())
}

/// The library's access to the log.
#[derive(Clone)]
pub(super) struct Log(pub Shared<Store>);

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, io::Error> {
        let store = self.0.borrow();
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        if let (Bound::Included(start), Bound::Excluded(end)) = bounds
            && start >= end
        {
            return Ok(Vec::new());
        }
        Ok(store
            .log
            .range(range)
            .map(|(_, entry)| entry.clone())
            .collect())
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        let store = self.0.borrow();
        let mut bytes = 0;
        let mut entries = Vec::new();
        for (_, entry) in store.log.range(start..end.max(start)) {
            bytes += match &entry.payload {
                EntryPayload::Normal(command) => command.0.len(),
                _ => 0,
            };
            if !entries.is_empty() && bytes > store.peer_bytes_max {
                break;
            }
            entries.push(entry.clone());
        }
        Ok(entries)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.0.borrow().vote)
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let store = self.0.borrow();
        Ok(LogState {
            last_purged_log_id: Some(store.purged),
            last_log_id: Some(store.last()),
        })
    }

    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }

    /// Writes a vote. Only the first vote of a term matters: a later one of the library states that the election was
    /// won, which need not be stored.
    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let token = {
            let mut store = self.0.borrow_mut();
            store.vote = Some(*vote);
            let (term, voted_for) = (vote.leader_id.term, vote.leader_id.voted_for);
            if store.written_vote.0 == term && store.written_vote.1.is_some() {
                return Ok(());
            }
            store.written_vote = (term, Some(voted_for));
            let token = store.next_token();
            store.outputs.push_back(Output::Vote {
                term,
                voted_for: Some(voted_for),
                token,
            });
            token
        };
        sync(&self.0, token).await
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.0.borrow_mut().append(entries, flushed);
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let last = last.map_or(0, |last| last.index);
        self.0.borrow_mut().truncate(last);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let mut store = self.0.borrow_mut();
        store.log = store.log.split_off(&(upto.index + 1));
        store.purged = upto;
        Ok(())
    }
}

/// The library's state machine. It only notes how far the caller may apply entries.
#[derive(Clone)]
pub(super) struct Machine(pub Shared<Store>);

impl RaftSnapshotBuilder<Types> for Machine {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> Result<alias::SnapshotOf<Types, ()>, io::Error> {
        Ok(self.0.borrow().snapshot())
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = ();
    type SnapshotBuilder = Machine;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let store = self.0.borrow();
        let members = StoredMembership::new(Some(store.floor), store.members.clone());
        Ok((Some(store.applied), members))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            self.0.borrow_mut().applied = entry.log_id;
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Machine {
        self.clone()
    }

    async fn install_snapshot(
        &mut self,
        meta: &alias::SnapshotMetaOf<Types>,
        (): (),
    ) -> Result<(), io::Error> {
        let token = {
            let mut store = self.0.borrow_mut();
            let floor = meta.last_log_id.unwrap_or_else(|| log_id(0, 0));
            let members = meta.last_membership.membership().clone();
            store.applied = floor;
            store.move_floor(floor, members)
        };
        sync(&self.0, token).await?;
        let mut store = self.0.borrow_mut();
        store.durable = store.durable.max(store.floor.index);
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<alias::SnapshotOf<Types, ()>>, io::Error> {
        Ok(Some(self.0.borrow().snapshot()))
    }
}
