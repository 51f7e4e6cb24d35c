//! Clients in the server's own process, together with clients over TCP.

use std::time::Duration;

use fanline_server::client::{Client, ClientError, ConnectOptions, Disconnect};
use fanline_server::{Auth, Handle, Options, Server};
use tokio::time::timeout;

use crate::raw::{SHARD_COUNTS, WAIT_MAX, options};

fn start(shards: usize) -> Handle {
    Server::start(options(shards)).expect("the server starts")
}

async fn over_tcp(server: &Handle) -> Client {
    let address = server.addresses().clients.to_string();
    let options = ConnectOptions::new(&address).expect("an address");
    Client::connect(&options).await.expect("connected")
}

async fn in_process(server: &Handle) -> Client {
    server.client().await.expect("connected")
}

async fn stop(server: &Handle) {
    server.shutdown();
    let stopped = timeout(WAIT_MAX, server.wait()).await;
    stopped.expect("the server stops");
}

#[tokio::test]
async fn messages_go_both_ways_whatever_their_size() {
    for shards in SHARD_COUNTS {
        let server = start(shards);
        // There are two clients of each kind, so that some are on the same shard and others are not.
        let clients = [
            in_process(&server).await,
            over_tcp(&server).await,
            in_process(&server).await,
            over_tcp(&server).await,
        ];
        for (at, subscriber) in clients.iter().enumerate() {
            let subject = format!("to.{at}");
            let mut messages = subscriber.subscribe(&subject).await.expect("subscribed");
            subscriber.flush().await.expect("flushed");
            for publisher in &clients {
                // 1 MiB exceeds the pipe's capacity, and is the largest payload.
                for bytes in [0, 5, 70_000, 1024 * 1024] {
                    let payload = vec![b'x'; bytes];
                    publisher.publish(&subject, payload).await.expect("sent");
                    let got = timeout(WAIT_MAX, messages.next()).await.expect("in time");
                    let got = got.expect("a message");
                    assert_eq!(got.payload().len(), bytes, "{shards} shards");
                    assert!(got.payload().iter().all(|byte| *byte == b'x'));
                }
            }
        }
        stop(&server).await;
    }
}

#[tokio::test]
async fn requests_go_both_ways() {
    for shards in SHARD_COUNTS {
        let server = start(shards);
        let (inside, outside) = (in_process(&server).await, over_tcp(&server).await);
        for (service, requester) in [(&inside, &outside), (&outside, &inside)] {
            let mut requests = service.subscribe("double").await.expect("subscribed");
            service.flush().await.expect("flushed");
            let serve = async {
                for _ in 0..20 {
                    let request = requests.next().await.expect("a request");
                    let reply = request.reply().expect("somebody waits");
                    let answer = [request.payload(), request.payload()].concat();
                    service.publish(reply, answer).await.expect("sent");
                }
            };
            let ask = async {
                for number in 0..20 {
                    let text = number.to_string();
                    let answer = requester.request("double", text.clone(), WAIT_MAX).await;
                    let answer = answer.expect("an answer");
                    assert_eq!(answer.payload(), text.repeat(2).as_bytes());
                }
            };
            tokio::join!(serve, ask);
            drop(requests);
            service.flush().await.expect("flushed");
            let nobody = requester.request("double", "1", WAIT_MAX).await;
            assert!(
                matches!(nobody, Err(ClientError::NoResponders)),
                "{nobody:?}"
            );
        }
        stop(&server).await;
    }
}

#[tokio::test]
async fn a_drain_gets_everything_that_was_published_before() {
    const MESSAGES: usize = 5000;
    for shards in SHARD_COUNTS {
        let server = start(shards);
        let (inside, outside) = (in_process(&server).await, over_tcp(&server).await);
        for (subscriber, publisher) in [(inside.clone(), &outside), (outside.clone(), &inside)] {
            let mut messages = subscriber.subscribe("load").await.expect("subscribed");
            subscriber.flush().await.expect("flushed");
            for number in 0..MESSAGES {
                let sent = publisher.publish("load", number.to_string()).await;
                sent.expect("sent");
            }
            publisher.flush().await.expect("flushed");
            messages.drain().await.expect("drained");
            for number in 0..MESSAGES {
                let message = messages.next().await.expect("a message");
                assert_eq!(message.payload(), number.to_string().as_bytes());
            }
            assert!(messages.next().await.is_none());
        }
        inside.drain().await.expect("drained");
        assert_eq!(inside.disconnect(), Some(Disconnect::Closed));
        assert!(outside.flush().await.is_ok());
        stop(&server).await;
    }
}

#[tokio::test]
async fn a_client_learns_that_its_server_has_stopped() {
    for shards in SHARD_COUNTS {
        let server = start(shards);
        let (inside, outside) = (in_process(&server).await, over_tcp(&server).await);
        let waiting = tokio::spawn({
            let server = server.clone();
            async move { server.wait().await }
        });
        stop(&server).await;
        waiting.await.expect("it ends");
        assert_eq!(inside.closed().await, Disconnect::ServerClosed);
        assert_eq!(outside.closed().await, Disconnect::ServerClosed);
        let late = server.client().await;
        assert!(late.is_err(), "a server that is gone takes nobody");
        // Waiting for a server that has already stopped returns at once.
        timeout(WAIT_MAX, server.wait()).await.expect("stopped");
    }
}

#[tokio::test]
async fn in_process_clients_need_credentials() {
    let server = Server::start(Options {
        auth: Auth::Token("s3cret".into()),
        ..options(2)
    });
    let server = server.expect("the server starts");
    let refused = server.client().await.err().expect("refused");
    assert!(
        matches!(&refused, ClientError::Refused(why) if why == "Authorization Violation"),
        "{refused}"
    );
    let options = ConnectOptions::default().token("s3cret");
    let admitted = server.client_with(&options).await.expect("admitted");
    admitted.flush().await.expect("flushed");
    stop(&server).await;
}

#[tokio::test]
async fn many_servers_in_one_process_know_nothing_of_each_other() {
    let servers: Vec<Handle> = (0..10).map(|n| start(1 + n % 3)).collect();
    let mut subscriptions = Vec::new();
    for server in &servers {
        let client = in_process(server).await;
        let messages = client.subscribe("who").await.expect("subscribed");
        client.flush().await.expect("flushed");
        subscriptions.push((client, messages));
    }
    for (number, server) in servers.iter().enumerate() {
        let client = over_tcp(server).await;
        client
            .publish("who", number.to_string())
            .await
            .expect("sent");
        client.flush().await.expect("flushed");
    }
    for (number, (client, mut messages)) in subscriptions.into_iter().enumerate() {
        client.flush().await.expect("flushed");
        let message = timeout(WAIT_MAX, messages.next()).await.expect("in time");
        assert_eq!(
            message.expect("a message").payload(),
            number.to_string().as_bytes()
        );
        let more = timeout(Duration::ZERO, messages.next()).await;
        assert!(more.is_err(), "another server's message");
    }
    for server in &servers {
        stop(server).await;
    }
}
