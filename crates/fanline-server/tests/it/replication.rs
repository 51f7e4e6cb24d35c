//! Replicated streams on three servers: what was acknowledged is there after any of them was lost.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fanline_server::client::{Client, Headers, OutgoingMessage};
use fanline_server::{ClusterOptions, Handle, JetStreamOptions, Options, Server};
use serde_json::Value;

use crate::folder::TempFolder;
use crate::jetstream::stop;
use crate::raw::{WAIT_MAX, options};

/// Time after which a request is repeated.
const PATIENCE: Duration = Duration::from_secs(2);

struct Cluster {
    folders: [TempFolder; 3],
    servers: [Option<Handle>; 3],
}

impl Cluster {
    fn start() -> Self {
        let mut cluster = Cluster {
            folders: ["a", "b", "c"].map(|name| TempFolder::new(&format!("replicas-{name}"))),
            servers: [None, None, None],
        };
        for at in 0..3 {
            cluster.run(at);
        }
        cluster
    }

    /// Starts a server with routes to the others.
    fn run(&mut self, at: usize) {
        let others = self.servers.iter().flatten();
        let routes = others.map(|server| {
            let address = server.addresses().cluster.expect("it listens");
            format!("nats-route://{address}")
        });
        let options = Options {
            server_name: Some(format!("server-{at}")),
            cluster_name: Some("east".into()),
            cluster: Some(ClusterOptions {
                routes: routes.collect(),
                ..ClusterOptions::default()
            }),
            jetstream: Some(JetStreamOptions {
                store_dir: Some(self.folders[at].0.clone()),
                ..JetStreamOptions::default()
            }),
            ..options(1)
        };
        self.servers[at] = Some(Server::start(options).expect("the server starts"));
    }

    async fn stop(&mut self, at: usize) {
        let server = self.servers[at].take().expect("it runs");
        stop(&server).await;
    }

    async fn client(&self, at: usize) -> Client {
        let server = self.servers[at].as_ref().expect("it runs");
        server.client().await.expect("connected")
    }
}

/// Repeats a request until its response is wanted.
async fn until(
    client: &Client,
    message: &OutgoingMessage,
    is_wanted: impl Fn(&Value) -> bool,
) -> Value {
    let began = Instant::now();
    loop {
        let reply = client.request_message(message, PATIENCE).await;
        let response = reply
            .as_ref()
            .ok()
            .and_then(|reply| serde_json::from_slice(reply.payload()).ok());
        if let Some(response) = response.filter(&is_wanted) {
            return response;
        }
        assert!(began.elapsed() < WAIT_MAX, "{}: {reply:?}", message.subject);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns whether a store has a folder of the stream.
fn has_stream(store: &TempFolder) -> bool {
    let lanes = store.path("jetstream/fanline/replicated");
    let mut lanes = std::fs::read_dir(lanes).into_iter().flatten().flatten();
    lanes.any(|lane| lane.path().join("$G/ORDERS").is_dir())
}

fn message(subject: &str, payload: String, id: Option<u64>) -> OutgoingMessage {
    let mut headers = Headers::new();
    if let Some(id) = id {
        let added = headers.append("Nats-Msg-Id", &id.to_string());
        added.expect("it is valid");
    }
    OutgoingMessage {
        subject: subject.into(),
        payload: payload.into(),
        headers,
        ..OutgoingMessage::default()
    }
}

fn succeeds(response: &Value) -> bool {
    response.get("error").is_none()
}

/// Publishes messages, and returns their sequences.
async fn publish(client: &Client, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let mut sequences = Vec::new();
    for number in numbers {
        let sent = message("orders.new", number.to_string(), Some(number));
        let ack = until(client, &sent, succeeds).await;
        sequences.push(ack["seq"].as_u64().expect("a sequence"));
    }
    sequences
}

/// Checks that a server reads every message in its place, and nothing else.
async fn check(client: &Client, count: u64) {
    for number in 0..count {
        let request = message(
            "$JS.API.STREAM.MSG.GET.ORDERS",
            format!(r#"{{"seq":{}}}"#, number + 1),
            None,
        );
        let found = until(client, &request, succeeds).await;
        let data = found["message"]["data"].as_str().expect("a payload");
        assert_eq!(STANDARD.decode(data), Ok(number.to_string().into_bytes()));
    }
    let info = until(
        client,
        &message("$JS.API.STREAM.INFO.ORDERS", String::new(), None),
        succeeds,
    )
    .await;
    assert_eq!(info["state"]["messages"], count);
}

#[tokio::test]
async fn acknowledged_messages_survive_the_loss_of_each_server() {
    let mut cluster = Cluster::start();
    let client = cluster.client(0).await;
    let config = r#"{"name":"ORDERS","subjects":["orders.>"],"num_replicas":3}"#;
    let create = message("$JS.API.STREAM.CREATE.ORDERS", config.into(), None);
    let created = until(&client, &create, succeeds).await;
    assert_eq!(created["config"]["num_replicas"], 3);
    let mut count = 0;
    // Whichever server leads, it is among those that stop.
    for stopped in 0..3 {
        let other = (stopped + 1) % 3;
        let sequences = publish(&cluster.client(stopped).await, count..count + 20).await;
        assert_eq!(sequences, (count + 1..=count + 20).collect::<Vec<_>>());
        cluster.stop(stopped).await;
        let sequences = publish(&cluster.client(other).await, count + 20..count + 40).await;
        assert_eq!(sequences, (count + 21..=count + 40).collect::<Vec<_>>());
        count += 40;
        check(&cluster.client(other).await, count).await;
        cluster.run(stopped);
        check(&cluster.client(stopped).await, count).await;
    }
}

#[tokio::test]
async fn a_server_with_an_empty_disk_takes_its_place_again() {
    let mut cluster = Cluster::start();
    let client = cluster.client(0).await;
    let config = r#"{"name":"ORDERS","subjects":["orders.>"],"num_replicas":3}"#;
    let create = message("$JS.API.STREAM.CREATE.ORDERS", config.into(), None);
    until(&client, &create, succeeds).await;
    publish(&client, 0..20).await;
    cluster.stop(2).await;
    cluster.folders[2] = TempFolder::new("replicas-empty");
    cluster.run(2);
    // Each of the others is needed for a majority without the new disk.
    for stopped in [0, 1] {
        let client = cluster.client(2).await;
        let number = 20 + stopped as u64;
        publish(&client, number..number + 1).await;
        // The server has executed entries as a new member, so the leader knows that it is one.
        crate::raw::until("a copy of the stream", || has_stream(&cluster.folders[2]));
        until(
            &client,
            &message("$JS.API.STREAM.INFO.ORDERS", String::new(), None),
            |info| {
                let replicas = info["cluster"]["replicas"].as_array();
                replicas.is_some_and(|all| {
                    all.len() == 2 && all.iter().all(|peer| peer["current"] == true)
                })
            },
        )
        .await;
        cluster.stop(stopped).await;
        let client = cluster.client(2).await;
        check(&client, number + 1).await;
        cluster.run(stopped);
    }
}
