//! Messages of one publisher arrive at one subscriber in the order in which they were published.

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, publish_frame};

/// Small ones are copied and large ones referred to, so they take different ways.
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
        // Writes of many sizes, so that frames are cut everywhere.
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
