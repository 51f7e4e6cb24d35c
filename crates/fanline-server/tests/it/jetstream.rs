//! JetStream through clients.

use std::fs;

use fanline_server::client::{Client, Message, OutgoingMessage};
use fanline_server::{Handle, JetStreamOptions, Options, Server};
use tokio::time::timeout;

use crate::folder::TempFolder;
use crate::raw::{SHARD_COUNTS, WAIT_MAX, options};

fn with_store(shards: usize, folder: &TempFolder) -> Options {
    Options {
        jetstream: Some(JetStreamOptions {
            store_dir: Some(folder.0.clone()),
            domain: Some("hub".into()),
            ..JetStreamOptions::default()
        }),
        ..options(shards)
    }
}

pub(crate) async fn ask(client: &Client, subject: &str, payload: &str) -> String {
    let reply = client.request(subject, payload.to_owned(), WAIT_MAX).await;
    let reply = reply.unwrap_or_else(|error| panic!("{subject}: {error}"));
    String::from_utf8_lossy(reply.payload()).into_owned()
}

/// Returns the next message of a stream's consumer `d`.
async fn next(client: &Client, stream: &str) -> Message {
    let inbox = client.new_inbox();
    let mut records = client.subscribe(&inbox).await.expect("subscribed");
    let pull = OutgoingMessage {
        subject: format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.d"),
        reply: Some(inbox),
        payload: "1".into(),
        ..OutgoingMessage::default()
    };
    client.publish_message(&pull).await.expect("published");
    let next = timeout(WAIT_MAX, records.next()).await.expect("in time");
    next.expect("a record")
}

pub(crate) async fn stop(server: &Handle) {
    server.shutdown();
    let stopped = timeout(WAIT_MAX, server.wait()).await;
    stopped.expect("the server stops");
}

#[tokio::test]
async fn published_messages_are_stored_and_delivered() {
    for shards in SHARD_COUNTS {
        let folder = TempFolder::new(&format!("kept-{shards}"));
        let server = Server::start(with_store(shards, &folder)).expect("the server starts");
        let client = server.client().await.expect("connected");
        for storage in ["memory", "file"] {
            let config = format!(
                r#"{{"name":"{storage}","subjects":["{storage}.>"],"storage":"{storage}"}}"#
            );
            let made = ask(
                &client,
                &format!("$JS.API.STREAM.CREATE.{storage}"),
                &config,
            )
            .await;
            assert!(made.contains(r#""did_create":true"#), "{made}");
            for sequence in 1..=3 {
                let publisher = server.client().await.expect("connected");
                let ack = ask(&publisher, &format!("{storage}.cup"), "tea").await;
                assert!(ack.contains(&format!(r#""seq":{sequence}"#)), "{ack}");
            }
            let path = format!("$JS.hub.API.STREAM.INFO.{storage}");
            let info = ask(&client, &path, "").await;
            assert!(info.contains(r#""messages":3"#), "{info}");
            let config = format!(
                r#"{{"stream_name":"{storage}","config":{{"durable_name":"d","ack_policy":"explicit"}}}}"#
            );
            let path = format!("$JS.API.CONSUMER.DURABLE.CREATE.{storage}.d");
            let made = ask(&client, &path, &config).await;
            assert!(!made.contains("error"), "{made}");
            // A delivered message has its own subject, not that of the inbox.
            let next = next(&client, storage).await;
            assert_eq!(next.payload(), b"tea");
            assert_eq!(next.subject(), format!("{storage}.cup"));
        }
        stop(&server).await;
    }
}

/// As in nats-server, a client is notified when the server stops. So it need not wait until a heartbeat is
/// missing.
#[tokio::test]
async fn waiting_pull_gets_409_when_the_server_stops() {
    for shards in SHARD_COUNTS {
        let folder = TempFolder::new(&format!("goodbye-{shards}"));
        let server = Server::start(with_store(shards, &folder)).expect("the server starts");
        let client = server.client().await.expect("connected");
        let config = r#"{"name":"S","storage":"memory"}"#;
        ask(&client, "$JS.API.STREAM.CREATE.S", config).await;
        let config = r#"{"stream_name":"S","config":{"durable_name":"d","ack_policy":"explicit"}}"#;
        ask(&client, "$JS.API.CONSUMER.DURABLE.CREATE.S.d", config).await;
        let inbox = client.new_inbox();
        let mut records = client.subscribe(&inbox).await.expect("subscribed");
        let pull = OutgoingMessage {
            subject: "$JS.API.CONSUMER.MSG.NEXT.S.d".into(),
            reply: Some(inbox),
            payload: r#"{"batch":5,"expires":60000000000}"#.into(),
            ..OutgoingMessage::default()
        };
        client.publish_message(&pull).await.expect("published");
        let info = ask(&client, "$JS.API.CONSUMER.INFO.S.d", "").await;
        assert!(info.contains(r#""num_waiting":1"#), "{info}");
        stop(&server).await;
        let status = timeout(WAIT_MAX, records.next()).await.expect("in time");
        let status = status.expect("a last word");
        assert_eq!(status.status(), Some(409));
        let left = status
            .headers()
            .and_then(|headers| headers.get("Nats-Pending-Messages"));
        assert_eq!(left, Some("5"));
    }
}

#[tokio::test]
async fn a_store_folder_is_for_one_server() {
    let folder = TempFolder::new("shared");
    let first = Server::start(with_store(1, &folder)).expect("the server starts");
    let second = Server::start(with_store(1, &folder)).expect_err("it is in use");
    let expected = format!(
        "the store folder {} is in use by another server (process {})",
        folder.0.join("jetstream/fanline").display(),
        std::process::id(),
    );
    assert_eq!(second.to_string(), expected);
    stop(&first).await;
    let third = Server::start(with_store(1, &folder)).expect("it is free again");
    stop(&third).await;
}

#[test]
fn a_domain_is_one_token() {
    for domain in ["", "a.b", "*", "a>", "a b"] {
        let jetstream = JetStreamOptions {
            domain: Some(domain.into()),
            ..JetStreamOptions::default()
        };
        let options = Options {
            jetstream: Some(jetstream),
            ..options(1)
        };
        let error = Server::start(options).expect_err(domain).to_string();
        assert!(error.starts_with("invalid domain name"), "{error}");
    }
}

/// Creates a stream with 100 messages.
async fn fill(client: &Client, name: &str) {
    let config = format!(r#"{{"name":"{name}","subjects":["{name}"],"storage":"file"}}"#);
    let made = ask(client, &format!("$JS.API.STREAM.CREATE.{name}"), &config).await;
    assert!(made.contains("did_create"), "{made}");
    for number in 1..=100 {
        let ack = ask(client, name, &format!("record {number} of {name}")).await;
        assert!(ack.contains(&format!(r#""seq":{number}"#)), "{ack}");
    }
}

/// Returns how many of the stream's 100 messages can be read.
async fn readable(client: &Client, name: &str) -> usize {
    let mut count = 0;
    for number in 1..=100 {
        let request = format!(r#"{{"seq":{number}}}"#);
        let found = ask(client, &format!("$JS.API.STREAM.MSG.GET.{name}"), &request).await;
        count += usize::from(!found.contains("error"));
    }
    count
}

#[tokio::test]
async fn damage_costs_one_record_or_one_stream() {
    let folder = TempFolder::new("damage");
    let server = Server::start(with_store(1, &folder)).expect("the server starts");
    let client = server.client().await.expect("connected");
    for name in ["sound", "flipped", "broken"] {
        fill(&client, name).await;
    }
    drop(client);
    stop(&server).await;
    let streams = folder.0.join("jetstream/fanline/streams/$G");
    let log = streams.join("flipped/0000000001-00000.log");
    let mut bytes = fs::read(&log).expect("a log");
    let text = b"record 50 of flipped";
    let at = bytes.windows(text.len()).position(|part| part == text);
    bytes[at.expect("it is there")] ^= 4;
    fs::write(&log, bytes).expect("written");
    for document in ["stream.doc", "copy%2estream.doc"] {
        fs::write(streams.join("broken").join(document), "nothing").expect("written");
    }
    let server = Server::start(with_store(1, &folder)).expect("the server starts");
    let client = server.client().await.expect("connected");
    assert_eq!(readable(&client, "sound").await, 100);
    assert_eq!(readable(&client, "flipped").await, 99);
    let info = ask(&client, "$JS.API.STREAM.INFO.flipped", "").await;
    assert!(info.contains(r#""messages":99"#), "{info}");
    assert!(info.contains(r#""lost":"#), "{info}");
    let info = ask(&client, "$JS.API.STREAM.INFO.broken", "").await;
    assert!(info.contains("10194"), "{info}");
    let names = ask(&client, "$JS.API.STREAM.NAMES", "").await;
    assert!(
        names.contains("sound") && names.contains("flipped"),
        "{names}"
    );
    for name in ["sound", "flipped"] {
        let ack = ask(&client, name, "one more").await;
        assert!(ack.contains(r#""seq":101"#), "{ack}");
    }
    stop(&server).await;
}

#[tokio::test]
async fn streams_and_consumers_survive_a_restart() {
    let folder = TempFolder::new("again");
    for round in 0..3 {
        let server = Server::start(with_store(2, &folder)).expect("the server starts");
        let client = server.client().await.expect("connected");
        if round == 0 {
            fill(&client, "kept").await;
            let config =
                r#"{"stream_name":"kept","config":{"durable_name":"d","ack_policy":"explicit"}}"#;
            let made = ask(&client, "$JS.API.CONSUMER.CREATE.kept.d", config).await;
            assert!(!made.contains("error"), "{made}");
        }
        assert_eq!(readable(&client, "kept").await, 100);
        for number in 1..=10 {
            let next = next(&client, "kept").await;
            let expected = format!("record {} of kept", round * 10 + number);
            assert_eq!(next.payload(), expected.as_bytes());
            ask(&client, next.reply().expect("an address"), "+ACK").await;
        }
        stop(&server).await;
    }
}

/// Returns whether a push consumer has a subscriber.
async fn is_bound(client: &Client) -> bool {
    let info = ask(client, "$JS.API.CONSUMER.INFO.S.d", "").await;
    assert!(!info.contains("error"), "{info}");
    info.contains(r#""push_bound":true"#)
}

/// A client that subscribes to `>` must not activate a push consumer. Otherwise the consumer would deliver
/// messages, and perhaps count them as acknowledged, without its receiver.
#[tokio::test]
async fn wildcard_observer_does_not_activate_a_push_consumer() {
    for shards in SHARD_COUNTS {
        let folder = TempFolder::new(&format!("watched-{shards}"));
        let server = Server::start(with_store(shards, &folder)).expect("the server starts");
        let client = server.client().await.expect("connected");
        ask(
            &client,
            "$JS.API.STREAM.CREATE.S",
            r#"{"name":"S","subjects":["s"],"storage":"memory"}"#,
        )
        .await;
        let _watching = client.subscribe("d.>").await.expect("subscribed");
        let consumer = r#"{"stream_name":"S","config":{"durable_name":"d","deliver_subject":"d.x","ack_policy":"none"}}"#;
        let made = ask(&client, "$JS.API.CONSUMER.DURABLE.CREATE.S.d", consumer).await;
        assert!(!made.contains("error"), "{made}");
        ask(&client, "s", "tea").await;
        assert!(!is_bound(&client).await);
        let mut receiver = client.subscribe("d.x").await.expect("subscribed");
        let record = timeout(WAIT_MAX, receiver.next()).await.expect("in time");
        assert_eq!(record.expect("a record").payload(), b"tea");
        assert!(is_bound(&client).await);
        stop(&server).await;
    }
}
