//! Acknowledged changes of subscriptions apply to every connection of every shard.

use crate::raw::{SHARD_COUNTS, TestServer};

const ROUNDS: usize = 1500;

/// After the PONG that follows a SUB, the subscriber receives all messages that any client publishes.
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

/// All rounds use the same subject, so that every shard has a cached route when the subscription ends.
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
            // After these PONGs, each publisher's message has been processed. If it is on its way to another
            // shard, it arrives there before messages of the next round.
            for publisher in &mut clients {
                assert_eq!(publisher.settle(), [], "{shards} shards, round {round}");
            }
            assert_eq!(clients[subscriber].settle(), []);
        }
    }
}
