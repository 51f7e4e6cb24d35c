//! From publish to delivery.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::jetstream::consumer::{Consumers, Context};
use fanline_engine::jetstream::stream::Stream;
use fanline_engine::jetstream::{
    AckPolicy, ConsumerConfig, Message, Now, Port, Retention, StreamConfig,
};
use fanline_engine::store::{NewRecord, Store, StoreLimits};
use fanline_engine::{
    Auth, Chunk, Limits, Peer, Place, SHARED_BYTES_MIN, ServerInfo, SessionId, Shard, ShardConfig,
};

use crate::allocations;

const MESSAGES: usize = 100_000;
const FRAMES_PER_READ: usize = 20;

/// Shards, with the publisher on the first and the subscribers dealt out from the last.
struct World {
    shards: Vec<Shard>,
    publisher: SessionId,
    delivered_bytes: usize,
}

impl World {
    fn new(shards: usize, subscribers: &[&str]) -> Self {
        let config = Arc::new(ShardConfig {
            limits: Limits::default(),
            auth: Auth::Open,
            shards,
            traces: false,
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
        let mut world = World {
            shards,
            publisher,
            delivered_bytes: 0,
        };
        world.exchange();
        world
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

    /// Hands on what is for other shards, and writes what is for clients.
    fn exchange(&mut self) {
        for from in 0..self.shards.len() {
            for to in 0..self.shards.len() {
                let mut batch = std::mem::take(self.shards[from].outgoing(to));
                let mut place = Place::default();
                while self.shards[to].apply(&batch, &mut place).must_flush {}
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
    let mut world = World::new(shards, subscribers);
    let frames = Chunk::new(frame.repeat(FRAMES_PER_READ).into_bytes().into());
    // In larger reads, so that no buffer has to grow when chance favours one member of a group.
    let warm_up = Chunk::new(frame.repeat(8 * FRAMES_PER_READ).into_bytes().into());
    for _ in 0..100 {
        world.publish(&warm_up);
    }
    world.delivered_bytes = 0;
    let allocations = allocations(|| {
        for _ in 0..MESSAGES / FRAMES_PER_READ {
            world.publish(&frames);
        }
    });
    let body_bytes = frame.split_once("\r\n").expect("a line").1.len();
    assert!(world.delivered_bytes > MESSAGES * deliveries_per_message * body_bytes);
    assert_eq!(allocations, 0, "{shards} shards, {subscribers:?}");
}

const PLAIN: &str = "PUB a.b 5\r\nhello\r\n";

#[test]
fn one_to_one() {
    check(1, &["SUB a.b 1\r\n"], PLAIN, 1);
    check(1, &["SUB a.* 1\r\n"], PLAIN, 1);
}

#[test]
fn one_to_eight() {
    check(1, &["SUB a.> 1\r\n"; 8], PLAIN, 8);
}

#[test]
fn queue_groups() {
    check(1, &["SUB a.b workers 1\r\n"; 3], PLAIN, 1);
    check(1, &["SUB a.b workers 1\r\nSUB a.b 2\r\n"; 3], PLAIN, 4);
}

#[test]
fn reply_and_headers() {
    let reply = "PUB a.b _INBOX.x.1 5\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"], reply, 1);
    let headers = "HPUB a.b 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"; 2], headers, 2);
    let both = "HPUB a.b _INBOX.x.1 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n";
    check(1, &["SUB a.b 1\r\n"; 2], both, 2);
}

/// These are referred to where they were read.
#[test]
fn large_bodies() {
    let body = "x".repeat(SHARED_BYTES_MIN);
    let frame = format!("PUB a.b {}\r\n{body}\r\n", body.len());
    check(1, &["SUB a.b 1\r\n"; 8], &frame, 8);
    check(2, &["SUB a.b 1\r\n"; 4], &frame, 4);
}

#[test]
fn across_shards() {
    check(2, &["SUB a.b 1\r\n"], PLAIN, 1);
    check(4, &["SUB a.b 1\r\n"; 8], PLAIN, 8);
    check(2, &["SUB a.b workers 1\r\n"; 4], PLAIN, 1);
}

/// Everybody listens; what is delivered last can be acknowledged.
#[derive(Default)]
struct Listener {
    acks: Vec<Vec<u8>>,
    delivered: usize,
}

impl Port for Listener {
    fn publish(&mut self, _message: &Message<'_>) {}

    fn deliver(&mut self, _to: &[u8], message: &Message<'_>) {
        if let Some(ack) = self.acks.get_mut(self.delivered) {
            ack.clear();
            ack.extend_from_slice(message.reply);
        }
        self.delivered += 1;
    }

    fn has_interest(&mut self, topic: &[u8]) -> bool {
        !topic.starts_with(b"$JS.EVENT.")
    }

    fn subscribe(&mut self, _filter: &[u8]) {}

    fn unsubscribe(&mut self, _filter: &[u8]) {}
}

/// Pulled in batches, acknowledged one by one: a pull request is kept, a delivery costs nothing.
#[test]
fn deliveries_of_a_consumer() {
    const BATCH: usize = 100;
    const BATCHES: usize = 200;
    let mut store = Store::memory(&StoreLimits::default());
    for _ in 0..2 * BATCH * BATCHES {
        let record = NewRecord {
            subject: b"orders.new",
            payload: b"hello",
            ..NewRecord::default()
        };
        store.append(&record).expect("memory takes it");
    }
    let mut consumers = Consumers::new("S", "$G", Retention::Limits);
    let mut port = Listener {
        acks: vec![vec![0; 100]; BATCH],
        delivered: 0,
    };
    let config = ConsumerConfig {
        name: "C".into(),
        durable_name: "C".into(),
        ack_policy: AckPolicy::Explicit,
        filter_subject: "orders.*".into(),
        ..ConsumerConfig::default()
    };
    let mut context = Context {
        now: Now::default(),
        store: &mut store,
        port: &mut port,
    };
    let id = consumers
        .create(config, 0, &mut context)
        .expect("memory is read");
    let mut run = |consumers: &mut Consumers| {
        for _ in 0..BATCHES {
            let now = Now::default();
            port.delivered = 0;
            let pull = Message {
                reply: b"_INBOX.x",
                payload: b"100",
                ..Message::default()
            };
            let mut context = Context {
                now,
                store: &mut store,
                port: &mut port,
            };
            consumers.handle_pull(id, &pull, &mut context);
            consumers.settle(&mut context);
            assert_eq!(port.delivered, BATCH);
            let acks = std::mem::take(&mut port.acks);
            for topic in &acks {
                let ack = Message {
                    topic,
                    payload: b"+ACK",
                    ..Message::default()
                };
                let mut context = Context {
                    now,
                    store: &mut store,
                    port: &mut port,
                };
                assert!(consumers.handle_ack(&ack, &mut context));
            }
            port.acks = acks;
        }
    };
    run(&mut consumers);
    let before = ALLOCATIONS.get();
    run(&mut consumers);
    // The inbox of each request.
    let allocations = ALLOCATIONS.get() - before;
    assert!(allocations <= BATCHES as u64, "{allocations}");
}

/// The outside of a stream: whoever published hears of it.
struct Told(u64);

impl Port for Told {
    fn publish(&mut self, message: &Message<'_>) {
        self.0 += u64::from(message.payload.starts_with(b"{\"stream\""));
    }

    fn deliver(&mut self, _to: &[u8], _message: &Message<'_>) {}

    fn has_interest(&mut self, _topic: &[u8]) -> bool {
        false
    }

    fn subscribe(&mut self, _filter: &[u8]) {}

    fn unsubscribe(&mut self, _filter: &[u8]) {}
}

#[test]
fn a_publish_into_a_stream_allocates_nothing() {
    let json = r#"{"name":"S","subjects":["s.*"],"max_msgs":10000,"duplicate_window":1000000}"#;
    let config: StreamConfig = serde_json::from_str(json).expect("a configuration");
    let store = Store::memory(&StoreLimits::default());
    let place = fanline_engine::jetstream::stream::Place::default();
    let mut now = Now::default();
    let stream = Stream::new(config, store, 0, &place, now);
    let mut stream = stream.unwrap_or_else(|error| panic!("{error}"));
    let mut port = Told(0);
    let headers: [&[u8]; 2] = [b"", b"NATS/1.0\r\nMine: x\r\nNats-Msg-Id: \r\n\r\n"];
    let mut allocated = Vec::new();
    for _round in 0..2 {
        let before = ALLOCATIONS.with(Cell::get);
        for number in 0..MESSAGES {
            now.unix_nanos += 1_000;
            now.since_start += Duration::from_micros(1);
            let message = Message {
                topic: b"s.a",
                reply: b"_INBOX.abcdefghijklmnop.1",
                headers: headers[number % 2],
                payload: &[b'x'; 128],
            };
            stream.publish(&message, now, &mut port);
            if number % 20 == 0 {
                stream.settle(now, &mut port);
                let _ = stream.next_timeout();
            }
        }
        allocated.push(ALLOCATIONS.with(Cell::get) - before);
    }
    assert_eq!(port.0, 2 * MESSAGES as u64);
    // The first round makes room; what the log of a million records needs now and then is not counted
    // per message.
    assert!(allocated[1] * 1_000 < MESSAGES as u64, "{allocated:?}");
}
