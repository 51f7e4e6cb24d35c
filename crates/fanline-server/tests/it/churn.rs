//! Subscriptions that come and go during publishing.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::raw::{RawClient, SHARD_COUNTS, TestServer};

const MESSAGES: usize = 20_000;
/// Smallest number of subscriptions that each client creates and removes.
const CHANGES: usize = 10_000;
const BATCH: usize = 100;

#[test]
fn churn_loses_no_messages() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let churners = server.clients(shards + 1);
        let mut subscribers = server.clients(shards);
        for subscriber in &mut subscribers {
            subscriber.subscribe("load.>", "1");
        }
        let publishers = server.clients(2);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (number, churner) in churners.into_iter().enumerate() {
                let is_over = &is_over;
                scope.spawn(move || churn(churner, number, is_over));
            }
            let mut readers = Vec::new();
            for subscriber in subscribers {
                readers.push(scope.spawn(move || expect_all(subscriber)));
            }
            for (number, publisher) in publishers.into_iter().enumerate() {
                scope.spawn(move || publish_all(publisher, number));
            }
            let have_all = readers.into_iter().all(|reader| reader.join().is_ok());
            is_over.store(true, Ordering::Relaxed);
            assert!(have_all, "{shards} shards");
        });
    }
}

/// Subscribes and unsubscribes in batches. The filters are of several kinds: an unused inbox, the published
/// subjects, wildcards that match them, and a queue group.
fn churn(mut client: RawClient, number: usize, is_over: &AtomicBool) {
    let mut sid = 0;
    while sid < CHANGES || !is_over.load(Ordering::Relaxed) {
        let mut batch = String::new();
        for _ in 0..BATCH {
            sid += 1;
            let filter = match sid % 5 {
                0 => format!("load.{}", sid % 2),
                1 => "load.*".into(),
                2 => format!("load.{} group-{number}", sid % 2),
                _ => format!("_INBOX.{number}.{sid}"),
            };
            batch += &format!("SUB {filter} {sid}\r\nUNSUB {sid}\r\n");
        }
        client.send(batch);
        client.settle();
    }
}

fn publish_all(mut client: RawClient, publisher: usize) {
    for from in (0..MESSAGES).step_by(BATCH) {
        let frames = (from..from + BATCH).map(|number| {
            let payload = number.to_string();
            format!("PUB load.{publisher} {}\r\n{payload}\r\n", payload.len())
        });
        client.send(frames.collect::<String>());
        client.settle();
    }
}

fn expect_all(mut client: RawClient) {
    let mut next = [0; 2];
    for _ in 0..2 * MESSAGES {
        let message = client.message();
        let publisher = usize::from(message.subject == "load.1");
        assert_eq!(message.payload, next[publisher].to_string().as_bytes());
        next[publisher] += 1;
    }
}
