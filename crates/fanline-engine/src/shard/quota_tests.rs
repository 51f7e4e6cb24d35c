//! Limits of accounts.

use super::route_origin_tests::leaf;
use super::tests::Simulation;
use crate::auth::{Access, AccessConfig, AccountId, Auth, ClientLimits, GLOBAL_ACCOUNT};
use crate::codec::nats::error::CloseReason;
use crate::limits::Limits;

fn simulation(shards: usize, limits: ClientLimits) -> Simulation {
    let mut config = AccessConfig::default();
    config.account_mut(GLOBAL_ACCOUNT).limits = limits;
    let access = Access::new(config).unwrap();
    Simulation::with(shards, Limits::default(), Auth::Directory(access.into()))
}

/// Regression: only clients that had sent CONNECT were counted, but an open server does not require CONNECT.
#[test]
fn silent_client_is_counted() {
    for shards in [1, 2] {
        let limits = ClientLimits {
            connections_max: Some(2),
            ..ClientLimits::default()
        };
        let mut simulation = simulation(shards, limits);
        let first = simulation.open(0);
        simulation.send(first, "PING\r\n");
        assert!(simulation.read(first).ends_with("PONG\r\n"));
        let second = simulation.client(shards - 1);
        simulation.send(second, "PING\r\n");
        assert_eq!(simulation.read(second), "PONG\r\n");
        let third = simulation.open(0);
        let received = simulation.read(third);
        let refusal = "-ERR 'maximum account active connections exceeded'\r\n";
        assert!(
            received.starts_with("INFO ") && received.ends_with(refusal),
            "{received}"
        );
        // A connection that is counted remains so, whatever it sends.
        simulation.send(second, "CONNECT {\"verbose\":false}\r\nPING\r\n");
        assert_eq!(simulation.read(second), "PONG\r\n");
    }
}

#[test]
fn connections_to_other_servers_count() {
    let limits = ClientLimits {
        connections_max: Some(2),
        ..ClientLimits::default()
    };
    let mut simulation = simulation(1, limits);
    let first = simulation.open(0);
    simulation.shards[0].set_remote_connections(AccountId::GLOBAL, 1, 9);
    let refused = simulation.open(0);
    let refusal = "-ERR 'maximum account active connections exceeded'\r\n";
    assert!(simulation.read(refused).ends_with(refusal));
    simulation.shards[0].set_remote_connections(AccountId::GLOBAL, 0, 9);
    let second = simulation.open(0);
    assert!(!simulation.read(second).contains("-ERR"));
    // The other servers have more again, so this one closes a client.
    assert_eq!(simulation.read(first).matches("-ERR").count(), 0);
    let cid = simulation.shards[0].cid(first.id).expect("it is open");
    assert!(simulation.shards[0].close_over_limit(cid));
    assert!(simulation.read(first).ends_with(refusal));
    assert!(!simulation.shards[0].close_over_limit(cid));
}

#[test]
fn leaf_connections_take_the_place_of_clients() {
    for shards in [1, 2] {
        let limits = ClientLimits {
            connections_max: Some(2),
            ..ClientLimits::default()
        };
        let mut simulation = simulation(shards, limits);
        let mut leafs = ["l1", "l2", "l3"]
            .map(|name| leaf(&mut simulation, name, name))
            .to_vec();
        for left in leafs.iter().rev() {
            assert_eq!(simulation.is_ended(*left), None);
        }
        let is_refused = |simulation: &mut Simulation| {
            let client = simulation.open(shards - 1);
            simulation.exchange();
            simulation
                .read(client)
                .contains("maximum account active connections exceeded")
        };
        assert!(is_refused(&mut simulation));
        for _ in 0..2 {
            let left = leafs.pop().unwrap();
            simulation.shards[0].end(left.id, CloseReason::ClientClosed);
            simulation.exchange();
        }
        assert!(!is_refused(&mut simulation));
        assert!(is_refused(&mut simulation));
        // A reload counts them again.
        let access = simulation.shards[0].broker.exchange.access.clone();
        for shard in &mut simulation.shards {
            shard.broker.exchange.set_quotas(&access);
        }
        simulation.exchange();
        assert!(is_refused(&mut simulation));
    }
}

#[test]
fn info_has_the_max_payload_of_the_account() {
    let limits = ClientLimits {
        payload_bytes_max: Some(10),
        ..ClientLimits::default()
    };
    let mut simulation = simulation(1, limits);
    for shard in &mut simulation.shards {
        shard.broker.exchange.info.max_payload = 1000;
    }
    let client = simulation.open(0);
    assert!(simulation.read(client).contains("\"max_payload\":10,"));
    simulation.send(
        client,
        "CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\n",
    );
    let received = simulation.read(client);
    assert!(received.contains("\"max_payload\":10,"), "{received}");
}
