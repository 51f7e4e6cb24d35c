//! Cases of a shard, which turns the bytes of a publisher into the pending output of its subscribers.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{
    Auth, Batch, BatchCursor, Chunk, Limits, Peer, ServerInfo, SessionId, Shard, ShardConfig,
};

use super::cases::{Case, Target, Work, case};

const STEADY: &[Target] = &[Target::NoAllocation];

pub(super) const CASES: &[Case] = &[
    case("shard publish only, 16 B", "messages", STEADY, || {
        fan_out(0, 16)
    }),
    case("shard 1 to 1, 16 B", "deliveries", STEADY, || {
        fan_out(1, 16)
    }),
    case("shard 1 to 4, 128 B", "deliveries", STEADY, || {
        fan_out(4, 128)
    }),
    case("shard 1 to 1000, 128 B", "deliveries", STEADY, || {
        fan_out(1000, 128)
    }),
    case(
        "shard 1 to 1 of a queue group, 128 B",
        "deliveries",
        STEADY,
        group,
    ),
    case("two shards 1 to 1, 128 B", "deliveries", STEADY, crossing),
];

/// Number of bytes of the input, about as many as one read returns.
const INPUT_BYTES: usize = 64 * 1024;
const NOW: Duration = Duration::from_secs(1);
const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n";

fn shards(count: usize) -> Vec<Shard> {
    let config = Arc::new(ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: count,
        traces: false,
        leafs: None,
        routes: None,
    });
    let make = |index| Shard::new(index, config.clone(), ServerInfo::default(), 7);
    (0u16..).take(count).map(make).collect()
}

/// Creates a client that has sent `lines`.
fn client(shard: &mut Shard, lines: &str) -> SessionId {
    let id = shard.open(1, Peer::default(), false, NOW);
    let input = Chunk::new(format!("{CONNECT}{lines}").into_bytes().into());
    let receipt = shard.receive(id, &input, 0..input.len(), NOW);
    assert_eq!(receipt.consumed, input.len(), "a benchmark's own bytes");
    drain(shard);
    id
}

/// Returns a chunk of messages to one subject, and the number of messages.
fn messages(payload_bytes: usize) -> (Chunk, u64) {
    let payload = "x".repeat(payload_bytes);
    let frame = format!("PUB bench.orders.new {payload_bytes}\r\n{payload}\r\n");
    let count = INPUT_BYTES / frame.len();
    let input = Chunk::new(frame.repeat(count).into_bytes().into());
    (input, count as u64)
}

/// Passes a complete chunk to the shard. Then removes the pending output of each connection, as if it had
/// been written.
fn publish(shard: &mut Shard, publisher: SessionId, input: &Chunk) {
    let mut at = 0;
    while at < input.len() {
        let receipt = shard.receive(publisher, input, at..input.len(), NOW);
        assert!(receipt.consumed > 0, "a benchmark's own bytes");
        at += receipt.consumed;
        drain(shard);
    }
}

fn drain(shard: &mut Shard) {
    while let Some(id) = shard.next_dirty() {
        let outbox = shard.outbox(id);
        outbox.advance(outbox.pending_bytes());
        shard.written(id, NOW);
    }
}

/// Runs `batch` until enough operations were done. Each call does `done` operations.
fn in_batches(done: u64, mut batch: impl FnMut() + 'static) -> Box<Work> {
    Box::new(move |operations| {
        let batches = operations.div_ceil(done);
        for _ in 0..batches {
            batch();
        }
        batches * done
    })
}

fn fan_out(subscribers: u64, payload_bytes: usize) -> Box<Work> {
    let mut shard = shards(1).remove(0);
    let publisher = client(&mut shard, "");
    for _ in 0..subscribers {
        client(&mut shard, "SUB bench.orders.new 1\r\n");
    }
    let (input, count) = messages(payload_bytes);
    in_batches(count * subscribers.max(1), move || {
        publish(&mut shard, publisher, &input);
    })
}

fn group() -> Box<Work> {
    let mut shard = shards(1).remove(0);
    let publisher = client(&mut shard, "");
    for _ in 0..3 {
        client(&mut shard, "SUB bench.orders.* workers 1\r\n");
    }
    let (input, count) = messages(128);
    in_batches(count, move || publish(&mut shard, publisher, &input))
}

/// The publisher is on one shard, and the subscriber on another.
fn crossing() -> Box<Work> {
    let mut shards = shards(2);
    client(&mut shards[1], "SUB bench.orders.new 1\r\n");
    let mut crossed = Batch::default();
    exchange(&mut shards, 1, 0, &mut crossed);
    let publisher = client(&mut shards[0], "");
    let (input, count) = messages(128);
    in_batches(count, move || {
        publish(&mut shards[0], publisher, &input);
        exchange(&mut shards, 0, 1, &mut crossed);
        drain(&mut shards[1]);
    })
}

fn exchange(shards: &mut [Shard], from: usize, to: usize, crossed: &mut Batch) {
    crossed.append(shards[from].outgoing(to));
    assert!(
        !crossed.is_empty(),
        "the benchmark's shards report no events"
    );
    let mut cursor = BatchCursor::default();
    while shards[to].apply(crossed, &mut cursor).must_flush {}
    crossed.clear();
}
