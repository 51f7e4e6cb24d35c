//! Allocations of publishes to streams, and of deliveries.

use std::time::Duration;

use fanline_engine::jetstream::consumer::{Consumers, Context};
use fanline_engine::jetstream::stream::Stream;
use fanline_engine::jetstream::{
    AckPolicy, ConsumerConfig, Message, Now, Port, Retention, StreamConfig,
};
use fanline_engine::store::{NewRecord, Store, StoreLimits};

use crate::allocations_so_far;

const MESSAGES: usize = 100_000;

/// A port on which all subjects have subscribers. It stores the latest acknowledgement subjects.
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

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        !subject.starts_with(b"$JS.EVENT.")
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        group.is_empty() && self.has_interest(subject)
    }

    fn subscribe(&mut self, _filter: &[u8]) {}

    fn unsubscribe(&mut self, _filter: &[u8]) {}
}

/// Records are pulled in batches and acknowledged one by one. A pull request allocates, but a delivery does
/// not.
#[test]
fn deliveries_allocate_nothing() {
    const BATCH: usize = 100;
    const BATCHES: usize = 200;
    let mut store = Store::memory(&StoreLimits::default());
    for _ in 0..2 * BATCH * BATCHES {
        let record = NewRecord {
            subject: b"orders.new",
            payload: b"hello",
            ..NewRecord::default()
        };
        store.append(&record).expect("writing to memory succeeds");
    }
    let mut consumers = Consumers::new("S", "$G", Retention::Limits, 7.into());
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
            for subject in &acks {
                let ack = Message {
                    subject,
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
    let before = allocations_so_far();
    run(&mut consumers);
    // Each request allocates its inbox.
    let allocations = allocations_so_far() - before;
    assert!(allocations <= BATCHES as u64, "{allocations}");
}

/// A port that counts acknowledgements.
struct AckCounter(u64);

impl Port for AckCounter {
    fn publish(&mut self, message: &Message<'_>) {
        self.0 += u64::from(message.payload.starts_with(b"{\"stream\""));
    }

    fn deliver(&mut self, _to: &[u8], _message: &Message<'_>) {}

    fn has_interest(&mut self, _subject: &[u8]) -> bool {
        false
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        group.is_empty() && self.has_interest(subject)
    }

    fn subscribe(&mut self, _filter: &[u8]) {}

    fn unsubscribe(&mut self, _filter: &[u8]) {}
}

#[test]
fn publish_into_stream_allocates_nothing() {
    let json = r#"{"name":"S","subjects":["s.*"],"max_msgs":10000,"duplicate_window":1000000}"#;
    let config: StreamConfig = serde_json::from_str(json).expect("a configuration");
    let store = Store::memory(&StoreLimits::default());
    let place = fanline_engine::jetstream::stream::StreamContext {
        account: "",
        domain: None,
        seed: 7.into(),
    };
    let mut now = Now::default();
    let stream = Stream::new(config, store, 0, &place, now);
    let mut stream = stream.unwrap_or_else(|error| panic!("{error}"));
    let mut port = AckCounter(0);
    let headers: [&[u8]; 2] = [b"", b"NATS/1.0\r\nMine: x\r\nNats-Msg-Id: \r\n\r\n"];
    let mut allocated = Vec::new();
    for _round in 0..2 {
        let before = allocations_so_far();
        for number in 0..MESSAGES {
            now.unix_nanos += 1_000;
            now.since_start += Duration::from_micros(1);
            let message = Message {
                subject: b"s.a",
                reply: b"_INBOX.abcdefghijklmnop.1",
                headers: headers[number % 2],
                payload: &[b'x'; 128],
                ..Message::default()
            };
            stream.publish(&message, now, &mut port);
            if number % 20 == 0 {
                stream.settle(now, &mut port);
                let _ = stream.next_timeout();
            }
        }
        allocated.push(allocations_so_far() - before);
    }
    assert_eq!(port.0, 2 * MESSAGES as u64);
    // The first round allocates buffers. Later the log of a million records allocates occasionally, less than
    // once per thousand messages.
    assert!(allocated[1] * 1_000 < MESSAGES as u64, "{allocated:?}");
}
