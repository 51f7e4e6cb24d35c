//! Clusters that are connected by gateways, over real sockets.

use fanline_server::{
    ClusterOptions, GatewayOptions, JetStreamOptions, Options, RemoteGateway, Server,
};

use crate::cluster::{monitor, settle};
use crate::raw::{RawClient, SHARD_COUNTS, TestServer, options, until};

/// Returns the options of a server in a cluster, which dials these other clusters.
fn member(name: &str, cluster: &str, shards: usize, others: &[(&str, &TestServer)]) -> Options {
    let gateways = others.iter().map(|(name, server)| {
        let address = server.handle.addresses().gateway.expect("it listens");
        RemoteGateway {
            name: (*name).into(),
            urls: vec![format!("nats://{address}")],
        }
    });
    Options {
        server_name: Some(name.into()),
        monitoring: Some(("127.0.0.1".into(), 0)),
        gateway: Some(GatewayOptions {
            name: cluster.into(),
            user: Some("ada".into()),
            password: Some("secret".into()),
            gateways: gateways.collect(),
            ..GatewayOptions::default()
        }),
        ..options(shards)
    }
}

/// Returns the names of the clusters to which a server has dialed a connection.
fn outbound(server: &TestServer) -> Vec<String> {
    let page = monitor(server, "gatewayz");
    let gateways = page["outbound_gateways"].as_object();
    gateways.map_or_else(Vec::new, |gateways| gateways.keys().cloned().collect())
}

#[test]
fn three_clusters_find_each_other_through_one() {
    for shards in SHARD_COUNTS {
        let east = TestServer::with(member("e-1", "east", shards, &[]));
        let others = [("west", "w-1"), ("north", "n-1")];
        let mut servers = vec![];
        for (cluster, name) in others {
            servers.push(TestServer::with(member(
                name,
                cluster,
                shards,
                &[("east", &east)],
            )));
        }
        servers.push(east);
        for server in &servers {
            until("two gateways", || outbound(server).len() == 2);
        }
        let mut clients: Vec<RawClient> = servers.iter().map(TestServer::client).collect();
        for client in &mut clients {
            client.subscribe("all.*", "1");
        }
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                let (mut from, mut to) = (servers[from].client(), servers[to].client());
                settle(&mut from, &mut to, &format!("ready.{shards}"));
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
                let (from, n) = text.split_once(' ').expect("two numbers");
                let from: usize = from.parse().expect("a server");
                assert_eq!(n, next[from].to_string(), "from server {from}");
                next[from] += 1;
            }
            assert_eq!(client.settle(), []);
        }
    }
}

#[test]
fn requests_cross_within_a_cluster_and_between_clusters() {
    let east = TestServer::with(member("e-1", "east", 2, &[]));
    let clustered = |options: Options, routes: Vec<String>| Options {
        cluster: Some(ClusterOptions {
            routes,
            ..ClusterOptions::default()
        }),
        ..options
    };
    let west = member("w-1", "west", 2, &[("east", &east)]);
    let west = TestServer::with(clustered(west, Vec::new()));
    let route = west.handle.addresses().cluster.expect("it listens");
    let second = member("w-2", "west", 2, &[("east", &east)]);
    let second = TestServer::with(clustered(second, vec![format!("nats://{route}")]));
    for (server, other) in [(&east, "west"), (&west, "east"), (&second, "east")] {
        until("a gateway", || outbound(server) == [other]);
    }
    for (one, other) in [(&east, &west), (&second, &east), (&east, &second)] {
        let (mut requester, mut responder) = (one.client(), other.client());
        responder.subscribe("svc", "1");
        settle(&mut requester, &mut responder, "ready");
        for n in 0..50 {
            // In one write, so that the interest has no time to spread.
            requester.send(format!("SUB in.{n} {n}\r\nPUB svc in.{n} 2\r\nhi\r\n"));
            let request = responder.message();
            let reply = request.reply.expect("a reply subject");
            assert_eq!(reply, format!("in.{n}"));
            responder.publish(&reply, n.to_string());
            assert_eq!(requester.message().payload, n.to_string().into_bytes());
        }
        assert_eq!(requester.settle(), []);
    }
}

#[test]
fn jetstream_with_gateways_is_refused() {
    let options = Options {
        jetstream: Some(JetStreamOptions::default()),
        ..member("e-1", "east", 1, &[])
    };
    let error = Server::start(options).map(drop).expect_err("it is refused");
    assert!(
        error.to_string().contains("together with gateways"),
        "{error}"
    );
}
