//! Allocations between publish and delivery.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{
    Auth, BatchCursor, Chunk, Limits, Peer, SHARED_BYTES_MIN, ServerInfo, SessionId, Shard,
    ShardConfig,
};

use crate::allocations;

const MESSAGES: usize = 100_000;
const FRAMES_PER_READ: usize = 20;

/// Shards with clients. The publisher is on the first shard. The subscribers are distributed over all shards,
/// beginning with the last one.
struct Simulation {
    shards: Vec<Shard>,
    publisher: SessionId,
    delivered_bytes: usize,
}

impl Simulation {
    fn new(shards: usize, subscribers: &[&str]) -> Self {
        let config = Arc::new(ShardConfig {
            limits: Limits::default(),
            auth: Auth::Open,
            shards,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        });
        let indexes = 0..u16::try_from(shards).expect("few shards");
        let info = ServerInfo::default;
        let mut shards: Vec<_> = indexes
            .map(|index| Shard::new(index, Arc::clone(&config), info(), 7))
            .collect();
        for (number, subscribe) in subscribers.iter().enumerate() {
            let shard = shards.len() - 1 - number % shards.len();
            open(&mut shards[shard], subscribe);
        }
        let publisher = open(&mut shards[0], "");
        let mut simulation = Simulation {
            shards,
            publisher,
            delivered_bytes: 0,
        };
        simulation.exchange();
        simulation
    }

    fn publish(&mut self, frames: &Chunk) {
        let mut from = 0;
        while from < frames.len() {
            let range = from..frames.len();
            let receipt = self.shards[0].receive(self.publisher, frames, range, Duration::ZERO);
            from += receipt.consumed;
            self.exchange();
        }
    }

    /// Exchanges batches between shards, and discards the pending output of clients.
    fn exchange(&mut self) {
        for from in 0..self.shards.len() {
            for to in 0..self.shards.len() {
                let mut batch = std::mem::take(self.shards[from].outgoing(to));
                let mut cursor = BatchCursor::default();
                while self.shards[to].apply(&batch, &mut cursor).must_flush {}
                batch.clear();
                *self.shards[from].outgoing(to) = batch;
            }
        }
        for shard in &mut self.shards {
            while let Some(id) = shard.next_dirty() {
                let out = shard.outbox(id);
                let bytes = out.pending_bytes();
                out.advance(bytes);
                self.delivered_bytes += bytes;
                shard.written(id, Duration::ZERO);
            }
        }
    }
}

fn open(shard: &mut Shard, subscribe: &str) -> SessionId {
    let id = shard.open(1, Peer::default(), false, Duration::ZERO);
    let text = format!("CONNECT {{\"verbose\":false,\"headers\":true}}\r\n{subscribe}");
    let input = Chunk::new(text.into_bytes().into());
    let receipt = shard.receive(id, &input, 0..input.len(), Duration::ZERO);
    assert_eq!(receipt.consumed, input.len());
    id
}

#[track_caller]
fn check(shards: usize, subscribers: &[&str], frame: &str, deliveries_per_message: usize) {
    let mut simulation = Simulation::new(shards, subscribers);
    let frames = Chunk::new(frame.repeat(FRAMES_PER_READ).into_bytes().into());
    // The warm-up uses larger reads than the measurement. Otherwise a buffer could still grow during the
    // measurement, when one member of a queue group is chosen often.
    let warm_up = Chunk::new(frame.repeat(8 * FRAMES_PER_READ).into_bytes().into());
    for _ in 0..100 {
        simulation.publish(&warm_up);
    }
    simulation.delivered_bytes = 0;
    let allocations = allocations(|| {
        for _ in 0..MESSAGES / FRAMES_PER_READ {
            simulation.publish(&frames);
        }
    });
    let body_bytes = frame.split_once("\r\n").expect("a line").1.len();
    assert!(simulation.delivered_bytes > MESSAGES * deliveries_per_message * body_bytes);
    assert_eq!(allocations, 0, "{shards} shards, {subscribers:?}");
}

const PLAIN: &str = "PUB a.b 5\r\nhello\r\n";

#[test]
fn publish_to_one_allocates_nothing() {
    check(1, &["SUB a.b 1\r\n"], PLAIN, 1);
    check(1, &["SUB a.* 1\r\n"], PLAIN, 1);
}

#[test]
fn publish_to_eight_allocates_nothing() {
    check(1, &["SUB a.> 1\r\n"; 8], PLAIN, 8);
}

#[test]
fn publish_to_queue_groups_allocates_nothing() {
    check(1, &["SUB a.b workers 1\r\n"; 3], PLAIN, 1);
    check(1, &["SUB a.b workers 1\r\nSUB a.b 2\r\n"; 3], PLAIN, 4);
}

#[test]
fn publish_with_reply_and_headers_allocates_nothing() {
    let reply = "PUB a.b _INBOX.x.1 5\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"], reply, 1);
    let headers = "HPUB a.b 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"; 2], headers, 2);
    let both = "HPUB a.b _INBOX.x.1 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"; 2], both, 2);
}

/// Large bodies are referenced in the input buffer rather than copied.
#[test]
fn publish_of_large_bodies_allocates_nothing() {
    let body = "x".repeat(SHARED_BYTES_MIN);
    let frame = format!("PUB a.b {}\r\n{body}\r\n", body.len());
    check(1, &["SUB a.b 1\r\n"; 8], &frame, 8);
    check(2, &["SUB a.b 1\r\n"; 4], &frame, 4);
}

#[test]
fn publish_across_shards_allocates_nothing() {
    check(2, &["SUB a.b 1\r\n"], PLAIN, 1);
    check(4, &["SUB a.b 1\r\n"; 8], PLAIN, 8);
    check(2, &["SUB a.b workers 1\r\n"; 4], PLAIN, 1);
}
