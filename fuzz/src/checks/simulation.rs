//! Clients on the shards of one server, without sockets and threads. A check decides when a client reads, and
//! when the shards exchange their batches.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{
    Auth, Batch, BatchCursor, Chunk, CloseReason, Limits, Peer, ServerInfo, SessionId, Shard,
    ShardConfig,
};

struct Client {
    id: SessionId,
    /// Bytes that the client has sent, and the shard has not consumed yet.
    unread: Vec<u8>,
    received: Vec<u8>,
}

/// Client `n` is connected to shard `n % shards`.
pub(super) struct Simulation {
    pub(super) shards: Vec<Shard>,
    clients: Vec<Option<Client>>,
    pub(super) now: Duration,
}

impl Simulation {
    pub(super) fn new(shards: usize, clients: usize, limits: Limits) -> Self {
        let config = Arc::new(ShardConfig {
            limits,
            auth: Auth::Open,
            shards,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        });
        let make = |i| Shard::new(i, config.clone(), ServerInfo::default(), 7);
        Simulation {
            shards: (0u16..).take(shards).map(make).collect(),
            clients: std::iter::repeat_with(|| None).take(clients).collect(),
            now: Duration::ZERO,
        }
    }

    pub(super) fn shard_of(&self, at: usize) -> usize {
        at % self.shards.len()
    }

    pub(super) fn is_connected(&self, at: usize) -> bool {
        self.clients[at].is_some()
    }

    /// Passes on a client's bytes. The client connects first if it is not connected.
    pub(super) fn send_from(&mut self, at: usize, bytes: &[u8]) {
        let index = self.shard_of(at);
        let shard = &mut self.shards[index];
        let now = self.now;
        let client = self.clients[at].get_or_insert_with(|| Client {
            id: shard.open(at as u64, Peer::default(), false, now),
            unread: Vec::new(),
            received: Vec::new(),
        });
        client.unread.extend_from_slice(bytes);
        loop {
            let chunk = Chunk::new(client.unread[..].into());
            let receipt = shard.receive(client.id, &chunk, 0..chunk.len(), now);
            assert!(receipt.consumed <= chunk.len());
            client.unread.drain(..receipt.consumed);
            if !receipt.must_flush {
                let rest = client.unread.len();
                assert!(receipt.frame_bytes == 0 || receipt.frame_bytes > rest);
                return;
            }
        }
    }

    /// Lets a client read up to this many bytes of its pending output.
    pub(super) fn read(&mut self, at: usize, bytes_max: usize) {
        let index = self.shard_of(at);
        let Some(client) = &mut self.clients[at] else {
            return;
        };
        let shard = &mut self.shards[index];
        let outbox = shard.outbox(client.id);
        let mut left = bytes_max;
        while left > 0 && !outbox.is_empty() {
            let mut parts = [IoSlice::new(&[]); 4];
            let count = outbox.parts(&mut parts);
            let before = client.received.len();
            for part in &parts[..count] {
                let taken = part.len().min(left);
                client.received.extend_from_slice(&part[..taken]);
                left -= taken;
            }
            assert!(
                client.received.len() > before,
                "an outbox without bytes to write"
            );
            outbox.advance(client.received.len() - before);
        }
        shard.written(client.id, self.now);
    }

    /// Takes the bytes that a client has read since the last call.
    pub(super) fn take_received(&mut self, at: usize) -> Vec<u8> {
        let client = self.clients[at].as_mut();
        client.map_or_else(Vec::new, |client| std::mem::take(&mut client.received))
    }

    pub(super) fn pending_bytes(&self, at: usize) -> usize {
        let client = self.clients[at].as_ref();
        client.map_or(0, |client| {
            self.shards[self.shard_of(at)].pending_bytes(client.id)
        })
    }

    /// Closes a client's connection, and returns what it has read. If the server has not closed it, the client
    /// does.
    pub(super) fn disconnect(&mut self, at: usize) -> Option<Vec<u8>> {
        self.read(at, usize::MAX);
        let client = self.clients[at].take()?;
        let index = self.shard_of(at);
        let ended = self.shards[index].remove(client.id, CloseReason::ClientClosed);
        assert!(ended.is_some(), "it was open");
        Some(client.received)
    }

    /// Performs what the runtime does after each call, except for writing the output. Returns a client whose
    /// connection the server has ended; the caller then disconnects it, and calls again.
    pub(super) fn next_ended(&mut self) -> Option<usize> {
        for index in 0..self.shards.len() {
            while self.shards[index].next_dirty().is_some() {}
            if let Some((id, _)) = self.shards[index].next_ended() {
                let mut indices = (index..self.clients.len()).step_by(self.shards.len());
                let is_ended = |at: &usize| self.clients[*at].as_ref().is_some_and(|c| c.id == id);
                return Some(indices.find(is_ended).expect("only open sessions end"));
            }
        }
        None
    }

    /// Passes on the batches of all shards once. Returns whether there were none.
    pub(super) fn exchange_once(&mut self) -> bool {
        let mut is_quiet = true;
        for from in 0..self.shards.len() {
            assert!(self.shards[from].outgoing(from).is_empty());
            for to in (0..self.shards.len()).filter(|to| *to != from) {
                let mut batch = Batch::default();
                batch.append(self.shards[from].outgoing(to));
                is_quiet &= batch.is_empty();
                let mut cursor = BatchCursor::default();
                while self.shards[to].apply(&batch, &mut cursor).must_flush {}
            }
        }
        is_quiet
    }
}
