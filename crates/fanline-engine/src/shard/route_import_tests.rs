//! Imports between accounts whose clients are connected to several servers of a cluster.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::account_tests::{ask, export, read};
use super::route_tests::Mesh;
use super::tests::Client;
use crate::auth::{
    Access, AccessConfig, AccountId, Auth, ExportKind, Latency, ResponseKind, Sampling,
};

/// Three servers with an account `A` that exports, and an account `B` that imports.
struct Cluster {
    mesh: Mesh,
    shards: usize,
    exporter: AccountId,
    importer: AccountId,
}

/// A service whose latency is reported.
fn measured() -> ExportKind {
    ExportKind::Service {
        response: ResponseKind::Single,
        response_threshold: None,
        latency: Some(Latency {
            subject: "latency".into(),
            sampling: Sampling::Percent(100),
        }),
    }
}

/// A client of one of the servers.
#[derive(Clone, Copy)]
struct At(usize, Client);

impl Cluster {
    fn new(shards: usize) -> Self {
        let mut config = AccessConfig::default();
        config.account_mut("A").exports = vec![
            export(ExportKind::Stream, "ev.>"),
            export(measured(), "svc.*"),
        ];
        config.account_mut("B").imports = vec![
            read("A", "ev.*.x", Some("seen.$1")),
            read("A", "ev.same.>", None),
            ask("A", "svc.*", Some("ask.*")),
        ];
        let access = Access::new(config).expect("it is valid");
        let account = |name| access.account_id(name).expect("it exists");
        let (exporter, importer) = (account("A"), account("B"));
        Cluster {
            mesh: Mesh::with(3, shards, &Auth::Directory(Arc::new(access))),
            shards,
            exporter,
            importer,
        }
    }

    fn client(&mut self, server: usize, account: AccountId) -> At {
        let shard = self.shards - 1;
        let simulation = &mut self.mesh.servers[server];
        let client = simulation.client(shard);
        simulation.shards[shard].broker.bind(client.id, account);
        At(server, client)
    }

    fn send(&mut self, At(server, client): At, bytes: &str) {
        self.mesh.servers[server].send(client, bytes);
        self.mesh.settle();
    }

    fn read(&mut self, At(server, client): At) -> String {
        self.mesh.servers[server].read(client)
    }
}

#[test]
fn request_reaches_a_responder_and_its_response_an_inbox_on_other_servers() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards);
        let (exporter, importer) = (cluster.exporter, cluster.importer);
        let responder = cluster.client(0, exporter);
        let requester = cluster.client(1, importer);
        let inbox = cluster.client(2, importer);
        cluster.send(responder, "SUB svc.* 1\r\n");
        cluster.send(inbox, "SUB in 1\r\n");
        cluster.send(requester, "PUB ask.x in 2\r\nhi\r\n");
        let request = cluster.read(responder);
        let reply = request.split(' ').nth(3).expect("a reply");
        assert!(reply.starts_with("_R_.N1"), "{request}");
        cluster.send(responder, &format!("PUB {reply} 3\r\nyes\r\n"));
        assert_eq!(cluster.read(inbox), "MSG in 1 3\r\nyes\r\n");
        assert_eq!(cluster.read(requester), "");
        // The response has ended the request.
        cluster.send(responder, &format!("PUB {reply} 3\r\nyes\r\n"));
        assert_eq!(cluster.read(inbox), "");
        cluster.send(responder, "UNSUB 1\r\n");
        cluster.send(requester, "SUB out 1\r\nPUB ask.x out 2\r\nhi\r\n");
        let status = cluster.read(requester);
        assert!(status.starts_with("HMSG out 1 "), "{status}");
    }
}

#[test]
fn stream_import_receives_from_other_servers_once() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards);
        let (exporter, importer) = (cluster.exporter, cluster.importer);
        let publisher = cluster.client(0, exporter);
        let subscribers = [1, 2].map(|server| cluster.client(server, importer));
        for subscriber in subscribers {
            cluster.send(subscriber, "SUB seen.7 1\r\nSUB ev.same.a 2\r\n");
        }
        cluster.send(
            publisher,
            "PUB ev.7.x 1\r\na\r\nPUB ev.7.y 1\r\nb\r\nPUB ev.same.a 1\r\nc\r\n",
        );
        for subscriber in subscribers {
            let expected = "MSG seen.7 1 1\r\na\r\nMSG ev.same.a 2 1\r\nc\r\n";
            assert_eq!(cluster.read(subscriber), expected);
            cluster.send(subscriber, "UNSUB 1\r\nUNSUB 2\r\n");
        }
        // The interest of the import ends with that of its subscribers.
        cluster.send(publisher, "SUB in 1\r\nPUB ev.7.x in 1\r\na\r\n");
        let status = cluster.read(publisher);
        assert!(status.starts_with("HMSG in 1 "), "{status}");
    }
}

#[test]
fn queue_group_of_importers_is_one_group_in_the_cluster() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards);
        let (exporter, importer) = (cluster.exporter, cluster.importer);
        let publisher = cluster.client(0, exporter);
        let members = [0, 1, 2, 2].map(|server| cluster.client(server, importer));
        for member in members {
            cluster.send(member, "SUB seen.* q 1\r\n");
        }
        cluster.send(publisher, &"PUB ev.7.x 1\r\na\r\n".repeat(400));
        let counts = members.map(|member| cluster.read(member).matches("MSG seen.7").count());
        assert_eq!(counts.iter().sum::<usize>(), 400, "{counts:?}");
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }
}

#[test]
fn import_that_a_reload_removes_receives_nothing_from_other_servers() {
    let mut cluster = Cluster::new(1);
    let (exporter, importer) = (cluster.exporter, cluster.importer);
    let publisher = cluster.client(0, exporter);
    let subscriber = cluster.client(1, importer);
    cluster.send(subscriber, "SUB seen.7 1\r\n");
    let mut config = AccessConfig::default();
    config.account_mut("A").exports = vec![export(ExportKind::Stream, "ev.>")];
    config.account_mut("B");
    let access = Arc::new(Access::new(config).expect("it is valid"));
    for shard in &mut cluster.mesh.servers[1].shards {
        let exchange = &mut shard.broker.exchange;
        exchange.access = Arc::clone(&access);
        shard.broker.set_accounts(&access);
        shard.broker.exchange.renew_imports();
        shard.broker.exchange.announce_to_routes();
    }
    cluster.mesh.settle();
    cluster.send(publisher, "SUB in 1\r\nPUB ev.7.x in 1\r\na\r\n");
    let status = cluster.read(publisher);
    assert!(status.starts_with("HMSG in 1 "), "{status}");
}

/// Returns the reports of latency in output that also contains pings.
fn reports(output: &str) -> Vec<Value> {
    let lines = output.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn latency_has_the_responder_at_another_server() {
    for (shards, at) in [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)] {
        let mut cluster = Cluster::new(shards);
        let (exporter, importer) = (cluster.exporter, cluster.importer);
        let responder = cluster.client(0, exporter);
        let requester = cluster.client(1, importer);
        let listener = cluster.client(at, exporter);
        cluster.send(responder, "SUB svc.* 1\r\n");
        cluster.send(requester, "SUB in 1\r\n");
        cluster.send(listener, "SUB latency 1\r\n");
        for _ in 0..2 {
            cluster.send(requester, "PUB ask.x in 2\r\nhi\r\n");
            let request = cluster.read(responder);
            let reply = request.split(' ').nth(3).expect("a reply");
            assert!(reply.ends_with(".T"), "{request}");
            cluster.send(responder, &format!("PUB {reply} 3\r\nyes\r\n"));
            assert_eq!(cluster.read(requester), "MSG in 1 3\r\nyes\r\n");
            let found = reports(&cluster.read(listener));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0]["status"], 200);
            assert_eq!(found[0]["requestor"]["acc"], "B");
            assert_eq!(found[0]["responder"]["acc"], "A");
            assert!(found[0]["responder"]["id"].is_u64(), "{found:?}");
        }
    }
}

#[test]
fn latency_is_reported_without_the_half_of_the_responder() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards);
        let (exporter, importer) = (cluster.exporter, cluster.importer);
        let responder = cluster.client(0, exporter);
        let requester = cluster.client(1, importer);
        let other = cluster.client(2, exporter);
        let listener = cluster.client(1, exporter);
        cluster.send(responder, "SUB svc.* 1\r\n");
        cluster.send(listener, "SUB latency 1\r\n");
        cluster.send(requester, "SUB in 1\r\nPUB ask.x in 2\r\nhi\r\n");
        let request = cluster.read(responder);
        let reply = request.split(' ').nth(3).expect("a reply");
        // Another server than that of the responder has not received the request.
        cluster.send(other, &format!("PUB {reply} 3\r\nyes\r\n"));
        assert_eq!(cluster.read(requester), "MSG in 1 3\r\nyes\r\n");
        assert_eq!(cluster.read(listener), "");
        let shard = &mut cluster.mesh.servers[1].shards[shards - 1];
        shard.handle_timeout(Duration::from_secs(3));
        cluster.mesh.settle();
        let found = reports(&cluster.read(listener));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["responder"], json!({ "acc": "A" }));
        assert_eq!(found[0]["total"], 0);
    }
}
