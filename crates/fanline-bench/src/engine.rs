//! Shards of the engine in this process, without sockets.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, SessionId, Shard, ShardConfig};

const NOW: Duration = Duration::from_secs(1);

pub(crate) fn config(shards: usize) -> Arc<ShardConfig> {
    Arc::new(ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards,
        traces: false,
        leafs: None,
        routes: None,
        gateways: None,
    })
}

pub(crate) fn shard(index: u16, config: &Arc<ShardConfig>) -> Shard {
    Shard::new(index, config.clone(), ServerInfo::default(), 7)
}

/// Opens a connection on which the client has sent `bytes`.
pub(crate) fn client(shard: &mut Shard, peer: Peer, bytes: Vec<u8>) -> SessionId {
    let id = shard.open(1, peer, false, NOW);
    receive(shard, id, &Chunk::new(bytes.into()));
    id
}

/// Passes a complete chunk to the shard. Returns the number of bytes that all connections had to write.
pub(crate) fn receive(shard: &mut Shard, client: SessionId, input: &Chunk) -> usize {
    let (mut at, mut written) = (0, 0);
    while at < input.len() {
        let receipt = shard.receive(client, input, at..input.len(), NOW);
        assert!(receipt.consumed > 0, "a benchmark's own bytes");
        at += receipt.consumed;
        written += drain(shard);
    }
    written
}

/// Removes the pending output of each connection, as if it had been written. Returns its bytes.
pub(crate) fn drain(shard: &mut Shard) -> usize {
    let mut written = 0;
    while let Some(id) = shard.next_dirty() {
        let outbox = shard.outbox(id);
        let bytes = outbox.pending_bytes();
        outbox.advance(bytes);
        written += bytes;
        shard.written(id, NOW);
    }
    written
}
