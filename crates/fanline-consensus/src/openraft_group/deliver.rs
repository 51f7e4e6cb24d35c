//! Messages of other nodes: their requests, and their answers to requests of this node.

use std::future::Future;

use openraft::SnapshotMeta;
use openraft::async_runtime::OneshotSender as _;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest,
};

use super::codec::{Appended, Packet, VoteKind};
use super::types::{LogId, Membership, StoredMembership, Types, Vote, term_of};
use super::{OpenraftGroup, REQUESTS_MAX};
use crate::port::{MessageError, NodeId};

impl OpenraftGroup {
    pub(super) fn deliver_packet(
        &mut self,
        from: NodeId,
        number: u64,
        packet: Packet,
    ) -> Result<(), MessageError> {
        match packet {
            // Only a leader sends these, in its own name.
            Packet::Append { vote, .. }
            | Packet::OfferSnapshot { vote, .. }
            | Packet::Transfer { vote, .. }
                if vote.leader_id.voted_for != from =>
            {
                return Err(MessageError::Malformed);
            }
            Packet::Append {
                vote,
                prev,
                commit,
                entries,
            } => {
                let request = AppendEntriesRequest {
                    vote,
                    prev_log_id: prev,
                    leader_commit: commit,
                    entries,
                };
                self.answer_append(from, number, request);
            }
            Packet::RequestVote { vote, last, kind } => {
                let mut request = VoteRequest::new(vote, last);
                request.leadership_transfer = kind == VoteKind::Transfer;
                self.answer_vote(from, number, request, kind);
            }
            Packet::Transfer { vote, to, last } => {
                let raft = self.raft.clone();
                let request = TransferLeaderRequest::new(vote, to, last);
                self.handle(async move {
                    let _ = raft.handle_transfer_leader(request).await;
                });
            }
            Packet::OfferSnapshot { vote, floor } => self.note_offer(from, number, vote, floor),
            Packet::Appended { .. } | Packet::Voted { .. } | Packet::Installed { .. } => {
                self.take_answer(from, number, packet);
            }
        }
        Ok(())
    }

    fn take_answer(&self, from: NodeId, number: u64, packet: Packet) {
        let mut store = self.store.borrow_mut();
        let is_expected = store
            .requests
            .get(&number)
            .is_some_and(|(node, _)| *node == from);
        let request = is_expected.then(|| store.requests.remove(&number));
        drop(store);
        if let Some((_, sender)) = request.flatten() {
            // The library may have stopped waiting.
            let _ = sender.send(packet);
        }
    }

    /// Runs a request of another node.
    fn handle(&self, request: impl Future<Output = ()> + 'static) {
        if self.requests.get() >= REQUESTS_MAX {
            return;
        }
        let count = self.requests.clone();
        count.set(count.get() + 1);
        self.executor.spawn_in(async move {
            request.await;
            count.set(count.get() - 1);
        });
    }

    fn answer_append(&self, from: NodeId, number: u64, request: AppendEntriesRequest<Types>) {
        let vote = request.vote;
        let last = request.entries.last().map(|entry| entry.log_id);
        let last = last.or(request.prev_log_id);
        let (raft, store) = (self.raft.clone(), self.store.clone());
        self.handle(async move {
            let result = match raft.append_entries(request).await {
                Ok(AppendEntriesResponse::Success) => Appended::Success,
                Ok(AppendEntriesResponse::Conflict) => Appended::Conflict,
                Ok(AppendEntriesResponse::HigherVote(vote)) => Appended::HigherVote(vote),
                Ok(AppendEntriesResponse::PartialSuccess(_)) | Err(_) => return,
            };
            let answer = Packet::Appended { vote, last, result };
            store.borrow_mut().send(from, number, &answer);
        });
    }

    fn answer_vote(&self, from: NodeId, number: u64, request: VoteRequest<Types>, kind: VoteKind) {
        let (raft, store) = (self.raft.clone(), self.store.clone());
        self.handle(async move {
            let answer = match kind {
                VoteKind::Pre => raft.pre_vote(request).await,
                VoteKind::Election | VoteKind::Transfer => raft.vote(request).await,
            };
            if let Ok(answer) = answer {
                let answer = Packet::Voted {
                    vote: answer.vote,
                    last: answer.last_log_id,
                    is_granted: answer.vote_granted,
                };
                store.borrow_mut().send(from, number, &answer);
            }
        });
    }

    /// Notes a snapshot that the caller will install. If this node has its entries already, the leader learns so.
    fn note_offer(&mut self, from: NodeId, number: u64, vote: Vote, floor: LogId) {
        if floor.index <= self.commit {
            let answer = Packet::Installed { vote, floor };
            self.store.borrow_mut().send(from, number, &answer);
        } else {
            self.offer = Some((number, from, floor));
        }
    }

    /// Installs a snapshot that is on the disk, in the name of the leader.
    pub(super) fn install_members(&mut self, floor: LogId, members: Membership) -> bool {
        let vote = self.store.borrow().vote;
        let is_led = |vote: &Vote| {
            let is_other = vote.leader_id.voted_for != self.settings.node;
            vote.committed && is_other && term_of(&floor) <= vote.leader_id.term
        };
        let Some(vote) = vote.filter(is_led) else {
            return false;
        };
        let meta = SnapshotMeta {
            last_log_id: Some(floor),
            last_membership: StoredMembership::new(Some(floor), members),
        };
        let snapshot = openraft::Snapshot { meta, snapshot: () };
        let offer = self.offer.take_if(|(.., offered)| *offered == floor);
        let (raft, store) = (self.raft.clone(), self.store.clone());
        self.executor.spawn_in(async move {
            let installed = raft.install_full_snapshot(vote, snapshot).await;
            if let (Ok(installed), Some((number, from, _))) = (installed, offer) {
                let vote = installed.vote;
                let answer = Packet::Installed { vote, floor };
                store.borrow_mut().send(from, number, &answer);
            }
        });
        self.run();
        self.floor.0 == floor.index
    }
}
