//! Streams, reached by a client.

use std::fs;
use std::path::PathBuf;

use fanline_server::client::{Client, OutgoingMessage};
use fanline_server::{Handle, JetStreamOptions, Options, Server};
use tokio::time::timeout;

use crate::raw::{PATIENCE, SHARD_COUNTS, options};

/// A folder that is gone when the test is.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new(name: &str) -> Self {
        let name = format!("fanline-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What an earlier process of this number left.
        let _ = fs::remove_dir_all(&path);
        TempFolder(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

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

async fn ask(client: &Client, topic: &str, payload: &str) -> String {
    let reply = client.request(topic, payload.to_owned(), PATIENCE).await;
    let reply = reply.unwrap_or_else(|error| panic!("{topic}: {error}"));
    String::from_utf8_lossy(reply.payload()).into_owned()
}

async fn stop(server: &Handle) {
    server.shutdown();
    let stopped = timeout(PATIENCE, server.wait()).await;
    stopped.expect("the server stops");
}

#[tokio::test]
async fn what_is_published_is_kept_and_given_out() {
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
            // A record has its own topic, wherever it goes.
            let inbox = client.new_inbox();
            let mut records = client.subscribe(&inbox).await.expect("subscribed");
            let pull = OutgoingMessage {
                topic: format!("$JS.API.CONSUMER.MSG.NEXT.{storage}.d"),
                reply: Some(inbox),
                payload: "1".into(),
                ..OutgoingMessage::default()
            };
            client.publish_message(&pull).await.expect("published");
            let next = timeout(PATIENCE, records.next()).await.expect("in time");
            let next = next.expect("a record");
            assert_eq!(next.payload(), b"tea");
            assert_eq!(next.topic(), format!("{storage}.cup"));
        }
        stop(&server).await;
    }
}

#[tokio::test]
async fn a_store_folder_is_for_one_server() {
    let folder = TempFolder::new("shared");
    let first = Server::start(with_store(1, &folder)).expect("the server starts");
    let second = Server::start(with_store(1, &folder)).expect_err("it is in use");
    let expected = format!(
        "the store folder {} is in use by another server",
        folder.0.display()
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
