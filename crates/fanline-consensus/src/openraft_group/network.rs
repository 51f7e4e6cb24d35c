//! Requests of the library to other nodes. Each is a message, and its answer another one.

use std::future::Future;
use std::time::Duration;

use openraft::async_runtime::Oneshot as _;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AsyncRuntime as _, EmptyNode, RaftNetworkFactory, RaftNetworkV2, alias};

use super::codec::{Appended, Packet, VoteKind};
use super::runtime::{Oneshot, Runtime, Shared};
use super::store::Store;
use super::types::{LogId, Types, Vote, log_id};
use crate::port::{NodeId, Output};

/// Access to the other nodes.
pub(super) struct Network {
    pub store: Shared<Store>,
    pub heartbeat: Duration,
    pub election: Duration,
}

/// Access to another node.
pub(super) struct Peer {
    store: Shared<Store>,
    node: NodeId,
    heartbeat: Duration,
    election: Duration,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, node: NodeId, _: &EmptyNode) -> Peer {
        Peer {
            store: self.store.clone(),
            node,
            heartbeat: self.heartbeat,
            election: self.election,
        }
    }
}

/// Forgets a request when its answer, or the end of the waiting, came.
struct Request {
    store: Shared<Store>,
    number: u64,
}

impl Drop for Request {
    fn drop(&mut self) {
        // While the group is dropped, the store may be in use.
        if let Ok(mut store) = self.store.try_borrow_mut() {
            store.requests.remove(&self.number);
        }
    }
}

fn lost() -> NetworkError<Types> {
    NetworkError::from_string("no answer")
}

impl Peer {
    /// Sends a request, and waits for its answer.
    async fn call(&self, packet: Packet, wait: Duration) -> Result<Packet, NetworkError<Types>> {
        let (sender, answer) = Oneshot::channel();
        let request = {
            let mut store = self.store.borrow_mut();
            store.next_request = store.next_request.wrapping_add(1);
            let number = store.next_request;
            store.requests.insert(number, (self.node, sender));
            // A leader that must not lead is silent, so that the others elect another one.
            let is_silent = !store.may_lead
                && matches!(packet, Packet::Append { .. } | Packet::OfferSnapshot { .. });
            if !is_silent {
                store.send(self.node, number, &packet);
            }
            Request {
                store: self.store.clone(),
                number,
            }
        };
        drop(packet);
        let answer = Runtime::timeout(wait, answer).await;
        drop(request);
        answer.map_err(|_| lost())?.map_err(|_| lost())
    }
}

impl RaftNetworkV2<Types> for Peer {
    type SnapshotData = ();

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        let expected = (
            request.vote,
            request
                .entries
                .last()
                .map(|entry| entry.log_id)
                .or(request.prev_log_id),
        );
        let packet = Packet::Append {
            vote: request.vote,
            prev: request.prev_log_id,
            commit: request.leader_commit,
            entries: request.entries,
        };
        match self.call(packet, self.heartbeat * 2).await? {
            Packet::Appended { vote, last, result } if (vote, last) == expected => {
                Ok(match result {
                    Appended::Success => AppendEntriesResponse::Success,
                    Appended::Conflict if request.prev_log_id.is_some() => {
                        AppendEntriesResponse::Conflict
                    }
                    Appended::Conflict => return Err(lost().into()),
                    Appended::HigherVote(vote) => AppendEntriesResponse::HigherVote(vote),
                })
            }
            _ => Err(lost().into()),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let kind = match request.leadership_transfer {
            true => VoteKind::Transfer,
            false => VoteKind::Election,
        };
        self.request_vote(request, kind).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.request_vote(request, VoteKind::Pre).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: alias::SnapshotOf<Types, ()>,
        _: impl Future<Output = ReplicationClosed> + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let floor: LogId = snapshot.meta.last_log_id.unwrap_or_else(|| log_id(0, 0));
        let peer = self.node;
        self.store
            .borrow_mut()
            .outputs
            .push_back(Output::NeedSnapshot { peer });
        let offer = Packet::OfferSnapshot { vote, floor };
        match self.call(offer, self.election * 2).await? {
            Packet::Installed { vote, floor: at } if at == floor => Ok(SnapshotResponse::new(vote)),
            _ => Err(lost().into()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        let packet = Packet::Transfer {
            vote: *request.from_leader(),
            to: *request.to_node_id(),
            last: request.last_log_id().copied(),
        };
        self.store.borrow_mut().send(self.node, 0, &packet);
        Ok(Ok(()))
    }

    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(self.heartbeat)))
    }
}

impl Peer {
    async fn request_vote(
        &self,
        request: VoteRequest<Types>,
        kind: VoteKind,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let packet = Packet::RequestVote {
            vote: request.vote,
            last: request.last_log_id,
            kind,
        };
        match self.call(packet, self.election).await? {
            Packet::Voted {
                vote,
                last,
                is_granted,
            } => Ok(VoteResponse::new(vote, last, is_granted)),
            _ => Err(lost().into()),
        }
    }
}
