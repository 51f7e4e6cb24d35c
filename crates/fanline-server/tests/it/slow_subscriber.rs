//! A subscriber that does not read is disconnected. Other subscribers are not affected.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fanline_server::Limits;

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, WAIT_MAX};

const PAYLOAD_BYTES: usize = 16 * 1024;
/// Number of messages. They are far more than the buffers of both sockets and the lowered limit can contain.
const MESSAGES: usize = 3000;
/// Largest number of messages that the publisher is ahead of its readers.
const WINDOW: usize = 64;

/// The subscriber is disconnected because of its pending bytes.
#[test]
fn stuck_subscriber_is_dropped_and_others_get_everything() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with_limits(
            shards,
            Limits {
                pending_bytes_max: 4 * 1024 * 1024,
                write_deadline: WAIT_MAX * 10,
                ..Limits::default()
            },
        );
        // There is one slow subscriber on each shard, including the publisher's.
        let mut slow = subscribed(&server, shards);
        publish_to_readers(&server, shards);
        for slow in &mut slow {
            let mut got = 0;
            while slow.next().is_some() {
                got += 1;
            }
            assert!(got < MESSAGES, "{shards} shards: it was not dropped");
        }
    }
}

/// The subscriber is disconnected because of the write deadline. All messages fit into the limit of pending
/// bytes.
#[test]
fn stuck_subscriber_is_dropped_at_the_write_deadline() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with_limits(
            shards,
            Limits {
                pending_bytes_max: 2 * MESSAGES * PAYLOAD_BYTES,
                write_deadline: Duration::from_millis(200),
                ..Limits::default()
            },
        );
        let slow = subscribed(&server, shards);
        publish_to_readers(&server, shards);
        for slow in slow {
            wait_until_refused(slow);
        }
    }
}

fn subscribed(server: &TestServer, count: usize) -> Vec<RawClient> {
    let mut clients = server.clients(count);
    for client in &mut clients {
        client.subscribe("load", "1");
    }
    clients
}

/// Publishes to one reader on each shard, and checks that they receive everything in order. On a busy machine
/// readers may be slow, so the publisher waits if it is too far ahead.
fn publish_to_readers(server: &TestServer, shards: usize) {
    let readers = subscribed(server, shards);
    let mut publisher = server.client();
    let have_read: Vec<_> = readers.iter().map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for (mut reader, has_read) in readers.into_iter().zip(&have_read) {
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let payload = reader.message().payload;
                    assert_eq!(payload[..8], number.to_le_bytes());
                    has_read.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut payload = vec![0; PAYLOAD_BYTES];
        let start = Instant::now();
        for number in 0..MESSAGES {
            payload[..8].copy_from_slice(&number.to_le_bytes());
            publisher.publish("load", &payload);
            let is_behind = |read: &AtomicUsize| read.load(Ordering::Relaxed) + WINDOW < number;
            while have_read.iter().any(is_behind) && start.elapsed() < WAIT_MAX {
                std::thread::yield_now();
            }
        }
        publisher.settle();
    });
}

/// Writes without reading until the peer accepts no more.
fn wait_until_refused(mut client: RawClient) {
    let start = Instant::now();
    while client.stream.write_all(b"PING\r\n").is_ok() {
        assert!(start.elapsed() < WAIT_MAX, "it is still connected");
        std::thread::sleep(Duration::from_millis(5));
    }
}
