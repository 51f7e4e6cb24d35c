//! Limits of accounts.

use super::tests::World;
use crate::auth::{Access, AccessConfig, Auth, ClientLimits, GLOBAL_ACCOUNT};
use crate::limits::Limits;

fn world(shards: usize, limits: ClientLimits) -> World {
    let mut config = AccessConfig::default();
    config.account_mut(GLOBAL_ACCOUNT).limits = limits;
    let access = Access::new(config).unwrap();
    World::with(shards, Limits::default(), Auth::Directory(access.into()))
}

/// Regression: only clients that had sent CONNECT were counted, but an open server does not require CONNECT.
#[test]
fn silent_client_is_counted() {
    for shards in [1, 2] {
        let limits = ClientLimits {
            connections_max: Some(2),
            ..ClientLimits::default()
        };
        let mut world = world(shards, limits);
        let first = world.open(0);
        world.say(first, "PING\r\n");
        assert!(world.read(first).ends_with("PONG\r\n"));
        let second = world.client(shards - 1);
        world.say(second, "PING\r\n");
        assert_eq!(world.read(second), "PONG\r\n");
        let third = world.open(0);
        let told = world.read(third);
        let refusal = "-ERR 'maximum account active connections exceeded'\r\n";
        assert!(
            told.starts_with("INFO ") && told.ends_with(refusal),
            "{told}"
        );
        // A connection that is counted remains so, whatever it sends.
        world.say(second, "CONNECT {\"verbose\":false}\r\nPING\r\n");
        assert_eq!(world.read(second), "PONG\r\n");
    }
}

#[test]
fn info_has_the_max_payload_of_the_account() {
    let limits = ClientLimits {
        payload_bytes_max: Some(10),
        ..ClientLimits::default()
    };
    let mut world = world(1, limits);
    for shard in &mut world.shards {
        shard.broker.exchange.info.max_payload = 1000;
    }
    let client = world.open(0);
    assert!(world.read(client).contains("\"max_payload\":10,"));
    world.say(
        client,
        "CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\n",
    );
    let told = world.read(client);
    assert!(told.contains("\"max_payload\":10,"), "{told}");
}
