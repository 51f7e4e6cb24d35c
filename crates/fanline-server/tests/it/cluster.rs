//! Clusters of Fanline servers over real sockets: formation, messages, and the loss of a node.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fanline_server::{
    ClientCertificates, ClusterOptions, CompressionLevel, JetStreamOptions, LinkCompression,
    Options, Server, TlsOptions,
};
use serde_json::Value;

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, options, until};
use crate::transports::Authority;

/// Returns the options of a node that dials these routes.
fn node_options(name: &str, shards: usize, routes: Vec<String>) -> Options {
    Options {
        server_name: Some(name.into()),
        monitoring: Some(("127.0.0.1".into(), 0)),
        cluster_name: Some("east".into()),
        cluster: Some(ClusterOptions {
            user: Some("ada".into()),
            password: Some("secret".into()),
            routes,
            ..ClusterOptions::default()
        }),
        ..options(shards)
    }
}

/// Returns the URL of a node's listener for routes.
fn route_to(server: &TestServer) -> String {
    let address = server.handle.addresses().cluster.expect("it listens");
    format!("nats-route://ada:secret@{address}")
}

/// Starts a cluster, in which each node knows the first one only.
fn cluster(nodes: usize, shards: usize) -> Vec<TestServer> {
    let mut servers: Vec<TestServer> = Vec::new();
    for at in 0..nodes {
        let seed = servers.first().map(route_to);
        let options = node_options(&format!("node-{at}"), shards, seed.into_iter().collect());
        servers.push(TestServer::with(options));
    }
    for server in &servers {
        until_peers(server, nodes - 1);
    }
    servers
}

/// Returns the routes of a server.
fn routes(server: &TestServer) -> Vec<Value> {
    let reply = monitor(server, "routez");
    reply["routes"].as_array().cloned().unwrap_or_default()
}

/// Returns the name of a server's cluster.
fn name(server: &TestServer) -> String {
    let reply = monitor(server, "varz");
    reply["cluster"]["name"].as_str().unwrap_or_default().into()
}

/// Returns a page of a server's monitoring.
pub(crate) fn monitor(server: &TestServer, page: &str) -> Value {
    let address = server.handle.addresses().monitoring.expect("it is on");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /{page} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (_, body) = text.split_once("\r\n\r\n").expect("headers end");
    serde_json::from_str(body).expect("JSON")
}

/// Waits until a server has all routes to this number of other servers: three slots, and one for `$SYS`.
#[track_caller]
fn until_peers(server: &TestServer, count: usize) {
    until("the mesh", || routes(server).len() == 4 * count);
}

/// Waits until a message on one server reaches a subscriber on another one.
pub(crate) fn settle(from: &mut RawClient, to: &mut RawClient, subject: &str) {
    to.subscribe(subject, "99");
    until(subject, || {
        from.publish(subject, "");
        from.settle();
        std::thread::sleep(Duration::from_millis(5));
        !to.settle().is_empty()
    });
    to.send("UNSUB 99\r\n");
    to.settle();
}

#[test]
fn three_nodes_find_each_other_from_a_seed() {
    for shards in SHARD_COUNTS {
        let servers = cluster(3, shards);
        let mut clients: Vec<RawClient> = servers.iter().map(TestServer::client).collect();
        for client in &mut clients {
            client.subscribe("all.*", "1");
        }
        for from in 0..3 {
            for to in 0..3 {
                if from != to {
                    let (mut from, mut to) = (servers[from].client(), servers[to].client());
                    settle(&mut from, &mut to, &format!("ready.{shards}"));
                }
            }
        }
        for (at, client) in clients.iter_mut().enumerate() {
            for n in 0..100 {
                client.publish("all.in", format!("{at} {n}"));
            }
        }
        for client in &mut clients {
            let mut next = [0; 3];
            for _ in 0..300 {
                let message = client.message();
                let text = String::from_utf8(message.payload).expect("text");
                let (at, n) = text.split_once(' ').expect("two numbers");
                let (at, n): (usize, usize) = (at.parse().unwrap(), n.parse().unwrap());
                assert_eq!(n, next[at], "from {at}");
                next[at] += 1;
            }
        }
    }
}

#[test]
fn interest_of_a_stopped_node_is_gone() {
    let servers = cluster(2, 1);
    let [mut here, mut there] = [0, 1].map(|at| servers[at].client());
    settle(&mut here, &mut there, "ready");
    there.subscribe("service", "1");
    settle(&mut here, &mut there, "ready");
    servers[1].handle.shutdown();
    servers[1].wait();
    until_peers(&servers[0], 0);
    here.subscribe("in", "1");
    here.send("PUB service in 0\r\n\r\n");
    let status = here.message();
    assert_eq!(status.subject, "in");
}

#[test]
fn both_nodes_dial_each_other_and_keep_one_route() {
    let first = TestServer::with(node_options("first", 1, Vec::new()));
    let to_first = route_to(&first);
    let second = TestServer::with(node_options("second", 1, vec![to_first.clone()]));
    until_peers(&second, 1);
    // A node with itself among its routes, as when all nodes have the same list.
    let third = node_options("third", 1, vec![to_first, route_to(&second)]);
    let third = TestServer::with(third);
    for server in [&first, &second, &third] {
        until_peers(server, 2);
    }
}

#[test]
fn wrong_password_and_wrong_name_are_refused() {
    let first = TestServer::with(node_options("first", 1, Vec::new()));
    let wrong = route_to(&first).replace("secret", "wrong");
    let second = TestServer::with(node_options("second", 1, vec![wrong]));
    let other = TestServer::with(Options {
        cluster_name: Some("west".into()),
        ..node_options("other", 1, vec![route_to(&first)])
    });
    let third = TestServer::with(node_options("third", 1, vec![route_to(&first)]));
    until_peers(&third, 1);
    until_peers(&first, 1);
    assert_eq!((routes(&second).len(), routes(&other).len()), (0, 0));
}

#[test]
fn generated_names_settle_on_one() {
    let unnamed = |name: &str, routes| Options {
        cluster_name: None,
        ..node_options(name, 2, routes)
    };
    let first = TestServer::with(unnamed("first", Vec::new()));
    let second = TestServer::with(unnamed("second", vec![route_to(&first)]));
    until_peers(&first, 1);
    until_peers(&second, 1);
    // A configured name replaces the generated ones.
    let third = TestServer::with(node_options("third", 1, vec![route_to(&first)]));
    for server in [&first, &second, &third] {
        until_peers(server, 2);
    }
    until("the name", || name(&second) == "east");
}

/// Returns the options of a node with a certificate of this authority.
fn tls_node_options(name: &str, authority: &Authority, routes: Vec<String>) -> Options {
    let mut options = node_options(name, 2, routes);
    let cluster = options.cluster.get_or_insert_default();
    cluster.tls = Some(TlsOptions {
        certificates: vec![authority.host("127.0.0.1")],
        ca_file: Some(authority.ca()),
        client_certificates: ClientCertificates::Required,
        ..TlsOptions::default()
    });
    options
}

#[test]
fn nodes_verify_each_other_over_tls() {
    let (authority, other) = (Authority::new(), Authority::new());
    let first = TestServer::with(tls_node_options("first", &authority, Vec::new()));
    let seed = vec![route_to(&first)];
    let stranger = TestServer::with(tls_node_options("stranger", &other, seed.clone()));
    let plain = TestServer::with(node_options("plain", 1, seed.clone()));
    let second = TestServer::with(tls_node_options("second", &authority, seed.clone()));
    let third = TestServer::with(tls_node_options("third", &authority, seed));
    for server in [&first, &second, &third] {
        until_peers(server, 2);
    }
    settle(&mut second.client(), &mut third.client(), "ready");
    assert_eq!((routes(&stranger).len(), routes(&plain).len()), (0, 0));
}

#[test]
fn unusable_options_are_refused() {
    let usual = || node_options("node", 1, Vec::new());
    let authority = Authority::new();
    let mut one_sided = tls_node_options("node", &authority, Vec::new());
    if let Some(tls) = one_sided.cluster.as_mut().and_then(|own| own.tls.as_mut()) {
        tls.client_certificates = ClientCertificates::NotAsked;
    }
    let empty_name = Options {
        cluster_name: Some(String::new()),
        ..usual()
    };
    let without_a_name = Options {
        jetstream: Some(JetStreamOptions::default()),
        server_name: None,
        ..usual()
    };
    let with_route = node_options("node", 1, vec!["nats://ada:secret@host".into()]);
    for (options, expected) in [
        (empty_name, "cluster name cannot be empty"),
        (without_a_name, "jetstream cluster requires `server_name`"),
        (one_sided, "TLS of routes requires client certificates"),
        (with_route, "route \"nats://host\" has no port"),
    ] {
        let error = Server::start(options).map(drop).expect_err(expected);
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn reload_changes_routes_one_by_one() {
    let first = TestServer::with(node_options("first", 2, Vec::new()));
    let [second, third] = ["second", "third"].map(|name| node_options(name, 1, Vec::new()));
    let [second, third] = [second, third].map(TestServer::with);
    let reload = |routes: &[&TestServer]| {
        let options = node_options(
            "first",
            2,
            routes.iter().map(|server| route_to(server)).collect(),
        );
        first.handle.reload(options).expect("the options are valid");
    };
    let rids = || {
        let of_second = |route: &&Value| route["remote_name"] == "second";
        let routes = routes(&first);
        let ids: Vec<u64> = (routes.iter().filter(of_second))
            .filter_map(|route| route["rid"].as_u64())
            .collect();
        ids
    };
    reload(&[&second]);
    until_peers(&first, 1);
    let before = rids();
    reload(&[&second, &third]);
    for server in [&first, &second, &third] {
        until_peers(server, 2);
    }
    reload(&[&second]);
    until_peers(&first, 1);
    assert_eq!(rids(), before);
}

#[test]
fn useless_lists_of_accounts_are_refused() {
    for (pool_size, accounts, expected) in [
        (
            0,
            vec!["$G"],
            "pool_size cannot be negative if pinned accounts",
        ),
        (3, vec!["$G", "$G"], "found duplicate account name \"$G\""),
    ] {
        let mut options = node_options("node", 1, Vec::new());
        if let Some(cluster) = &mut options.cluster {
            cluster.pool_size = pool_size;
            cluster.accounts = accounts.into_iter().map(str::to_owned).collect();
        }
        let error = Server::start(options).map(drop).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn dedicated_and_compressed_routes_carry_messages() {
    for shards in SHARD_COUNTS {
        let node = |name: &str, routes| {
            let mut options = node_options(name, shards, routes);
            if let Some(cluster) = &mut options.cluster {
                cluster.accounts = vec!["$G".into()];
                cluster.compression = LinkCompression::Always(CompressionLevel::Better);
            }
            options
        };
        let first = TestServer::with(node("first", Vec::new()));
        let second = TestServer::with(node("second", vec![route_to(&first)]));
        for server in [&first, &second] {
            until("the mesh", || routes(server).len() == 5);
            for route in routes(server) {
                assert_eq!(route["compression"], "s2_better", "{route}");
            }
        }
        let (mut here, mut there) = (first.client(), second.client());
        settle(&mut here, &mut there, "ready");
        there.subscribe("data", "1");
        settle(&mut here, &mut there, "ready");
        for size in [0, 1, 1000, 100_000, 900_000] {
            let text = "message ".repeat(size / 8);
            here.publish("data", &text);
            assert_eq!(there.message().payload, text.as_bytes());
        }
    }
}
