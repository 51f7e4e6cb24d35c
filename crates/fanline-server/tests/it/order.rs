//! Messages of one publisher arrive at one subscriber in order.

use fanline_server::Limits;

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, WAIT_MAX, publish_frame};

/// Payload sizes in bytes. Small payloads are copied and large ones are referenced, so they take different
/// paths.
const SIZES: [usize; 6] = [0, 16, 4000, 64 * 1024, 100, 5000];
const LARGEST: usize = 1024 * 1024;
const MESSAGES: usize = 3000;

#[test]
fn order_holds_across_shards_sizes_and_subjects() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut subscribers = server.clients(shards);
        for subscriber in &mut subscribers {
            subscriber.send("SUB odd 1\r\nSUB even 2\r\n");
            subscriber.settle();
        }
        let publisher = server.client();
        std::thread::scope(|scope| {
            scope.spawn(|| publish_all(publisher));
            for subscriber in &mut subscribers {
                scope.spawn(move || expect_all(subscriber, shards));
            }
        });
    }
}

/// All shards fill each other's mailboxes. No shard may wait forever.
#[test]
fn order_holds_when_all_flood_all() {
    const EACH: usize = 600;
    for shards in SHARD_COUNTS {
        let limits = Limits {
            // The limits are so large that no subscriber is disconnected for reading slowly.
            pending_bytes_max: 1 << 30,
            write_deadline: WAIT_MAX * 10,
            ..Limits::default()
        };
        let server = TestServer::with_limits(shards, limits);
        let mut readers = server.clients(2 * shards);
        for reader in &mut readers {
            reader.subscribe("flood.*", "1");
        }
        let writers = server.clients(2 * shards);
        let writer_count = writers.len();
        std::thread::scope(|scope| {
            for (name, writer) in writers.into_iter().enumerate() {
                scope.spawn(move || flood(writer, name, EACH));
            }
            for reader in &mut readers {
                scope.spawn(move || expect_flood(reader, writer_count, EACH));
            }
        });
    }
}

fn flood(mut writer: RawClient, name: usize, messages: usize) {
    let subject = format!("flood.{name}");
    let mut payload = vec![b'x'; 16 * 1024];
    for number in 0..messages {
        payload[..8].copy_from_slice(&number.to_le_bytes());
        writer.publish(&subject, &payload);
    }
    writer.settle();
}

fn expect_flood(reader: &mut RawClient, writers: usize, messages: usize) {
    let mut next = vec![0_usize; writers];
    for _ in 0..writers * messages {
        let message = reader.message();
        let name = message.subject.strip_prefix("flood.");
        let name: usize = name.and_then(|n| n.parse().ok()).expect("a writer");
        assert_eq!(message.payload[..8], next[name].to_le_bytes());
        next[name] += 1;
    }
}

fn size_of(number: usize) -> usize {
    if number % 300 == 299 {
        LARGEST - 8
    } else {
        SIZES[number % SIZES.len()]
    }
}

fn publish_all(mut publisher: RawClient) {
    let filler = vec![b'x'; LARGEST];
    let mut frames = Vec::new();
    for number in 0..MESSAGES {
        let mut payload = number.to_le_bytes().to_vec();
        payload.extend_from_slice(&filler[..size_of(number)]);
        let subject = if number % 2 == 0 { "even" } else { "odd" };
        frames.extend(publish_frame(subject, &payload));
        // Writes have many sizes, so that frames are split at many positions.
        if frames.len() > 1000 * (number % 70) {
            publisher.send(&frames);
            frames.clear();
        }
    }
    publisher.send(&frames);
    publisher.settle();
}

fn expect_all(subscriber: &mut RawClient, shards: usize) {
    for number in 0..MESSAGES {
        let message = subscriber.message();
        let (head, rest) = message.payload.split_at(8);
        let got = usize::from_le_bytes(head.try_into().expect("eight bytes"));
        assert_eq!(got, number, "{shards} shards");
        assert_eq!(rest.len(), size_of(number), "message {number}");
        assert!(rest.iter().all(|byte| *byte == b'x'), "message {number}");
        let subject = if number % 2 == 0 { "even" } else { "odd" };
        assert_eq!(message.subject, subject);
    }
}
