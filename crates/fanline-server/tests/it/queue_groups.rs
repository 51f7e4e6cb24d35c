//! Queue groups with members on several shards.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::raw::{Message, RawClient, SHARD_COUNTS, TestServer};

const PUBLISHERS: usize = 2;
const BATCHES: usize = 150;
const BATCH: usize = 50;

#[test]
fn each_message_goes_to_one_member_while_members_come_and_go() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut staying = server.client();
        staying.subscribe("work workers", "1");
        let leaving = server.clients(2 * shards);
        let publishers = server.clients(PUBLISHERS);
        let is_over = AtomicBool::new(false);
        let mut got = std::thread::scope(|scope| {
            let mut members = Vec::new();
            for member in leaving {
                members.push(scope.spawn(|| come_and_go(member, &is_over)));
            }
            let mut publishing = Vec::new();
            for (number, client) in publishers.into_iter().enumerate() {
                publishing.push(scope.spawn(move || publish_all(client, number)));
            }
            let are_done = publishing.into_iter().all(|p| p.join().is_ok());
            is_over.store(true, Ordering::Relaxed);
            assert!(are_done);
            let got = members.into_iter().map(|m| m.join().expect("a member"));
            collect(staying, got.collect())
        });
        got.sort_unstable();
        let mut all: Vec<_> = (0..PUBLISHERS)
            .flat_map(|publisher| (0..BATCHES * BATCH).map(move |n| format!("{publisher}.{n}")))
            .collect();
        all.sort_unstable();
        assert!(got == all, "{shards} shards: {}", difference(&got, &all));
    }
}

/// Returns the members' messages, including messages in flight. Several rounds are needed, because a shard
/// forwards messages if its last member has left.
fn collect(mut staying: RawClient, members: Vec<(RawClient, Vec<Message>)>) -> Vec<String> {
    let mut clients = Vec::new();
    let mut got = Vec::new();
    for (client, messages) in members {
        clients.push(client);
        got.extend(messages);
    }
    for _ in 0..6 {
        got.extend(staying.settle());
        for client in &mut clients {
            got.extend(client.settle());
        }
    }
    let mut texts = Vec::new();
    for message in got {
        texts.push(String::from_utf8(message.payload).expect("text"));
    }
    texts
}

/// Subscribes and unsubscribes repeatedly. After an unsubscription, messages before the PONG are still
/// counted, as in a client that drains.
fn come_and_go(mut client: RawClient, is_over: &AtomicBool) -> (RawClient, Vec<Message>) {
    let mut got = Vec::new();
    let mut sid = 0;
    while !is_over.load(Ordering::Relaxed) {
        sid += 1;
        client.send(format!("SUB work workers {sid}\r\n"));
        got.extend(client.settle());
        got.extend(client.settle());
        client.send(format!("UNSUB {sid}\r\n"));
        got.extend(client.settle());
    }
    (client, got)
}

fn publish_all(mut client: RawClient, publisher: usize) {
    for batch in 0..BATCHES {
        let frames = (batch * BATCH..(batch + 1) * BATCH).map(|number| {
            let payload = format!("{publisher}.{number}");
            format!("PUB work {}\r\n{payload}\r\n", payload.len())
        });
        client.send(frames.collect::<String>());
        client.settle();
    }
}

fn difference(got: &[String], all: &[String]) -> String {
    let lost: Vec<_> = all.iter().filter(|m| !got.contains(m)).take(5).collect();
    let twice: Vec<_> = got.windows(2).filter(|w| w[0] == w[1]).take(5).collect();
    format!(
        "{} of {}; lost {lost:?}, twice {twice:?}",
        got.len(),
        all.len()
    )
}
