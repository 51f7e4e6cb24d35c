//! Cases of a shard, which turns the bytes of a publisher into the pending output of its subscribers.

use fanline_engine::{Batch, BatchCursor, Chunk, Peer, SessionId, Shard};

use super::{Case, NO_ALLOCATION, Work, case, in_batches};
use crate::engine;
use crate::report::target::Limit;

const STEADY: &[Limit] = &[NO_ALLOCATION];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("shard publish only, 16 B", "messages", STEADY, || fan_out(0, 16)),
    case("shard 1 to 1, 16 B", "deliveries", STEADY, || fan_out(1, 16)),
    case("shard 1 to 4, 128 B", "deliveries", STEADY, || fan_out(4, 128)),
    case("shard 1 to 1000, 128 B", "deliveries", STEADY, || fan_out(1000, 128)),
    case("shard 1 to 1 of a queue group, 128 B", "deliveries", STEADY, group),
    case("two shards 1 to 1, 128 B", "deliveries", STEADY, crossing),
];

/// Number of bytes of the input, about as many as one read returns.
const INPUT_BYTES: usize = 64 * 1024;
const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n";

fn shards(count: u16) -> Vec<Shard> {
    let config = engine::config(usize::from(count));
    (0..count)
        .map(|index| engine::shard(index, &config))
        .collect()
}

fn client(shard: &mut Shard, lines: &str) -> SessionId {
    engine::client(shard, Peer::default(), format!("{CONNECT}{lines}").into())
}

/// Returns a chunk of messages to one subject, and the number of messages.
fn messages(payload_bytes: usize) -> (Chunk, u64) {
    let payload = "x".repeat(payload_bytes);
    let frame = format!("PUB bench.orders.new {payload_bytes}\r\n{payload}\r\n");
    let count = INPUT_BYTES / frame.len();
    let input = Chunk::new(frame.repeat(count).into_bytes().into());
    (input, count as u64)
}

fn fan_out(subscribers: u64, payload_bytes: usize) -> Box<Work> {
    let mut shard = shards(1).remove(0);
    let publisher = client(&mut shard, "");
    for _ in 0..subscribers {
        client(&mut shard, "SUB bench.orders.new 1\r\n");
    }
    let (input, count) = messages(payload_bytes);
    in_batches(count * subscribers.max(1), move || {
        engine::receive(&mut shard, publisher, &input);
    })
}

fn group() -> Box<Work> {
    let mut shard = shards(1).remove(0);
    let publisher = client(&mut shard, "");
    for _ in 0..3 {
        client(&mut shard, "SUB bench.orders.* workers 1\r\n");
    }
    let (input, count) = messages(128);
    in_batches(count, move || {
        engine::receive(&mut shard, publisher, &input);
    })
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
        engine::receive(&mut shards[0], publisher, &input);
        exchange(&mut shards, 0, 1, &mut crossed);
        engine::drain(&mut shards[1]);
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
