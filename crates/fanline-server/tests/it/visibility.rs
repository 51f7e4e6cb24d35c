//! Acknowledged changes apply to every connection of every shard.

use crate::raw::{SHARD_COUNTS, TestServer};

const ROUNDS: usize = 1500;

/// A PONG after a SUB promises that messages published later, anywhere, arrive.
#[test]
fn a_subscription_is_visible_everywhere_once_acknowledged() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut clients = server.clients(shards + 1);
        for round in 0..ROUNDS {
            let subscriber = round % clients.len();
            let sid = round.to_string();
            clients[subscriber].subscribe(&format!("round.{round}"), &sid);
            for (number, publisher) in clients.iter_mut().enumerate() {
                publisher.publish(&format!("round.{round}"), number.to_string());
            }
            let mut from: Vec<_> = (0..clients.len())
                .map(|_| clients[subscriber].message())
                .map(|message| String::from_utf8(message.payload).unwrap())
                .collect();
            from.sort_unstable();
            let all: Vec<_> = (0..clients.len()).map(|n| n.to_string()).collect();
            assert_eq!(from, all, "{shards} shards, round {round}");
            clients[subscriber].send(format!("UNSUB {sid}\r\n"));
        }
    }
}

/// The same subject each time, so that every shard has a cached route when it changes.
#[test]
fn an_unsubscription_is_visible_everywhere_once_acknowledged() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut clients = server.clients(shards + 1);
        for round in 0..ROUNDS {
            let subscriber = round % clients.len();
            clients[subscriber].subscribe("same", "1");
            for publisher in &mut clients {
                publisher.publish("same", "wanted");
            }
            for _ in 0..clients.len() {
                assert_eq!(clients[subscriber].message().payload, b"wanted");
            }
            clients[subscriber].send("UNSUB 1\r\n");
            assert_eq!(clients[subscriber].settle(), []);
            for publisher in &mut clients {
                publisher.publish("same", "unwanted");
            }
            // Each publisher's message is processed. On its way to another shard, it precedes the next round's
            // messages.
            for publisher in &mut clients {
                assert_eq!(publisher.settle(), [], "{shards} shards, round {round}");
            }
            assert_eq!(clients[subscriber].settle(), []);
        }
    }
}
