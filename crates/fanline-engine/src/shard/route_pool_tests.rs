//! Routes of a pool, and dedicated ones: each account has one route to each peer.

use std::sync::Arc;
use std::time::Duration;

use super::route_tests::{connect, explicit, info, settings};
use super::tests::{Client, Simulation};
use crate::auth::{Access, AccessConfig, Auth, ConnectionKind, Peer};
use crate::codec::nats::error::CloseReason;
use crate::session::leaf::Agreed;
use crate::session::route::{
    Carries, GossipMode, RouteDial, RouteEvent, RouteInfo, RouteOutcome, RouteSettings,
};

const OWN: &str = "NOWN";

/// Returns a server with a pool of three, in which the accounts `$G`, `A` and `C` have the slots 2, 0, and 1. The
/// account `P` has dedicated routes.
pub(super) fn pooled(shards: usize) -> Simulation {
    with_pool(shards, 3)
}

/// Does the same with a pool of this size.
fn with_pool(shards: usize, pool_size: u32) -> Simulation {
    let mut config = AccessConfig::default();
    for name in ["A", "C", "P"] {
        config.account_mut(name);
    }
    let access = Access::new(config).unwrap();
    let auth = Auth::Directory(Arc::new(access));
    let routes = RouteSettings {
        pool_size,
        accounts: vec!["P".into(), "$SYS".into()],
        shards: u16::try_from(shards).unwrap(),
        ..settings()
    };
    Simulation::with_routes(OWN, "own", shards, auth, routes)
}

/// Returns the INFO of a peer with a pool of this size, for a route that carries this.
fn pool_info(id: &str, size: u32, carries: &Carries) -> String {
    let what = match carries {
        Carries::Slot(slot) => format!("\"route_pool_idx\":{slot}"),
        Carries::Account(name) => format!("\"route_account\":\"{name}\""),
    };
    info(id).replace(
        "\"port\"",
        &format!("\"route_pool_size\":{size},{what},\"port\""),
    )
}

pub(super) fn account(name: &str) -> Carries {
    Carries::Account(name.into())
}

/// Opens a route on the shard that serves what it carries.
fn open(simulation: &mut Simulation, carries: &Carries, dial: Option<RouteDial>) -> Client {
    let exchange = &simulation.shards[0].broker.exchange;
    let shard = exchange.config.routes.as_ref().unwrap().shard_of(carries);
    let route = simulation.open_route_on(usize::from(shard), dial);
    simulation.read(route);
    route
}

/// Accepts a route from a peer with a pool of three.
pub(super) fn accepted(simulation: &mut Simulation, id: &str, carries: &Carries) -> Client {
    accepted_from_pool(simulation, id, 3, carries)
}

fn accepted_from_pool(
    simulation: &mut Simulation,
    id: &str,
    pool_size: u32,
    carries: &Carries,
) -> Client {
    let route = open(simulation, carries, None);
    simulation.send(route, &(connect(id) + &pool_info(id, pool_size, carries)));
    route
}

/// Opens a client in an account.
pub(super) fn client_in(simulation: &mut Simulation, shard: usize, name: &str) -> Client {
    let client = simulation.client(shard);
    let broker = &mut simulation.shards[shard].broker;
    let account = broker.exchange.access.account_id(name).unwrap();
    broker.bind(client.id, account);
    client
}

/// What a route of each kind carries, and the account in the test that it belongs to.
pub(super) fn kinds() -> [(Carries, &'static str, &'static str); 4] {
    [
        (Carries::Slot(0), "A", "A "),
        (Carries::Slot(1), "C", "C "),
        (Carries::Slot(2), "$G", "$G "),
        (account("P"), "P", ""),
    ]
}

#[test]
fn each_account_crosses_on_its_route() {
    for shards in [1, 2, 4] {
        let mut simulation = pooled(shards);
        let routes = kinds().map(|(carries, ..)| accepted(&mut simulation, "NA", &carries));
        for route in routes {
            assert_eq!(simulation.read(route), "");
        }
        for (at, (_, name, shown)) in kinds().into_iter().enumerate() {
            let client = client_in(&mut simulation, shards - 1, name);
            simulation.send(client, "SUB here 1\r\nSUB here q 2\r\nPING\r\n");
            for (nth, route) in routes.into_iter().enumerate() {
                let expected = match nth == at {
                    true => format!("RS+ {shown}here\r\nRS+ {shown}here q 1\r\n"),
                    false => String::new(),
                };
                assert_eq!(simulation.read(route), expected, "{name} {nth} of {shards}");
            }
            simulation.read(client);
            let input = format!("RS+ {shown}there\r\nRMSG {shown}here 2\r\nhi\r\n");
            simulation.send(routes[at], &input);
            assert_eq!(simulation.read(client), "MSG here 1 2\r\nhi\r\n", "{name}");
            for message in ["PUB there 2\r\nhi\r\n", "PUB there r 2\r\nhi\r\n"] {
                simulation.send(client, &message.repeat(3));
                let args = message.strip_prefix("PUB ").unwrap();
                let expected = format!("RMSG {shown}{args}").repeat(3);
                assert_eq!(simulation.read(routes[at]), expected, "{name} of {shards}");
            }
            // No other account has this interest.
            let other = client_in(&mut simulation, 0, if name == "A" { "C" } else { "A" });
            simulation.send(other, "PUB there 2\r\nhi\r\n");
            simulation.send(routes[at], &format!("RS- {shown}there\r\n"));
            simulation.send(client, "PUB there 2\r\nhi\r\n");
            for route in routes {
                assert_eq!(simulation.read(route), "", "{name} of {shards}");
            }
        }
    }
}

#[test]
fn new_route_receives_the_interest_of_its_accounts_only() {
    for shards in [1, 2] {
        let mut simulation = pooled(shards);
        for (_, name, _) in kinds() {
            let client = client_in(&mut simulation, shards - 1, name);
            simulation.send(client, "SUB here 1\r\n");
        }
        for (carries, _, shown) in kinds() {
            for id in ["NA", "NB"] {
                let route = accepted(&mut simulation, id, &carries);
                let expected = format!("RS+ {shown}here\r\n");
                assert_eq!(simulation.read(route), expected, "{carries:?} of {shards}");
            }
        }
        // A peer without a pool has one route for all accounts.
        let all = open(&mut simulation, &Carries::default(), None);
        simulation.send(all, &(connect("NC") + &info("NC")));
        let output = simulation.read(all);
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["RS+ $G here", "RS+ A here", "RS+ C here", "RS+ P here"]
        );
        let client = client_in(&mut simulation, 0, "P");
        simulation.send(all, "RS+ P there\r\n");
        simulation.send(client, "PUB there 2\r\nhi\r\n");
        assert_eq!(simulation.read(all), "RMSG P there 2\r\nhi\r\n");
    }
}

#[test]
fn interest_is_current_after_a_route_was_lost() {
    for shards in [1, 2] {
        let mut simulation = pooled(shards);
        let slot = Carries::Slot(2);
        let other = accepted(&mut simulation, "NA", &Carries::Slot(0));
        let route = accepted(&mut simulation, "NA", &slot);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB before 1\r\nSUB stays 2\r\n");
        simulation.events();
        simulation.shards[route.shard].remove(route.id, CloseReason::ReadError);
        let left = RouteEvent::Left {
            id: "NA".into(),
            carries: slot.clone(),
        };
        assert_eq!(simulation.events(), [left]);
        simulation.send(client, "UNSUB 1\r\nSUB after 3\r\n");
        let again = accepted(&mut simulation, "NA", &slot);
        let output = simulation.read(again);
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["RS+ $G after", "RS+ $G stays"]);
        assert_eq!(simulation.read(other), "");
    }
}

/// Slots 2 and 6 share a lane. While only one of them has a route, changes in accounts of the other one are not
/// recorded.
#[test]
fn route_that_joins_a_lane_receives_what_has_changed_before() {
    const SIZE: u32 = 8;
    for shards in [1, 2] {
        let mut simulation = with_pool(shards, SIZE);
        let settings = simulation.shards[0].broker.exchange.config.routes.clone();
        let slot = settings.unwrap().slot_of(b"A").unwrap();
        let neighbor = Carries::Slot((slot + 4) % SIZE);
        let slot = Carries::Slot(slot);
        let other = accepted_from_pool(&mut simulation, "NA", SIZE, &neighbor);
        let client = client_in(&mut simulation, shards - 1, "A");
        simulation.send(client, "SUB early 1\r\nSUB gone 2\r\nPING\r\n");
        simulation.send(client, "UNSUB 2\r\nPING\r\n");
        let route = accepted_from_pool(&mut simulation, "NA", SIZE, &slot);
        assert_eq!(simulation.read(route), "RS+ A early\r\n");
        simulation.send(client, "SUB late 3\r\nPING\r\n");
        assert_eq!(simulation.read(route), "RS+ A late\r\n");
        simulation.shards[route.shard].remove(route.id, CloseReason::ReadError);
        simulation.send(client, "UNSUB 1\r\nPING\r\n");
        let again = accepted_from_pool(&mut simulation, "NA", SIZE, &slot);
        assert_eq!(simulation.read(again), "RS+ A late\r\n");
        assert_eq!(simulation.read(other), "");
    }
}

#[test]
fn leaf_nodes_are_announced_on_all_routes() {
    for shards in [1, 2, 3, 4] {
        let mut simulation = pooled(shards);
        let before = accepted(&mut simulation, "NA", &Carries::Slot(2));
        let peer = Peer {
            kind: ConnectionKind::Leafnode,
            ..Peer::default()
        };
        let id = simulation.shards[0].open_leaf(7, peer, None, Agreed::default(), Duration::ZERO);
        let leaf = Client { shard: 0, id };
        simulation.send(
            leaf,
            "CONNECT {\"name\":\"edge\",\"cluster\":\"edge\",\"headers\":true,\"protocol\":3}\r\n",
        );
        simulation.send(leaf, "LS+ a\r\nLS+ b q 2\r\n");
        let after = accepted(&mut simulation, "NB", &Carries::Slot(2));
        for route in [before, after] {
            let output = simulation.read(route);
            for line in ["RS+ $G a\r\n", "RS+ $G b q 2\r\n"] {
                assert!(output.contains(line), "{shards} shards: {output}");
            }
        }
        simulation.send(leaf, "LS- a\r\nLS- b q\r\n");
        for route in [before, after] {
            let output = simulation.read(route);
            for line in ["RS- $G a\r\n", "RS- $G b q\r\n"] {
                assert!(output.contains(line), "{shards} shards: {output}");
            }
        }
    }
}

#[test]
fn slots_follow_the_larger_pool() {
    let mut simulation = pooled(1);
    for (size, slot, is_open) in [(5, 4, true), (5, 5, false), (2, 2, true), (2, 3, false)] {
        let route = simulation.open_route_on(0, None);
        simulation.read(route);
        let carries = Carries::Slot(slot);
        simulation.send(route, &(connect("NA") + &pool_info("NA", size, &carries)));
        let (reason, answer) = match is_open {
            true => (None, String::new()),
            false => {
                let size = size.max(3);
                let text = format!("Invalid route pool index: {slot} - pool size is {size}");
                let reason = CloseReason::ProtocolViolation;
                (Some(reason), format!("-ERR '{text}'\r\n"))
            }
        };
        assert_eq!(simulation.is_ended(route), reason, "{slot} of {size}");
        assert_eq!(simulation.read(route), answer, "{slot} of {size}");
        simulation.shards[0].remove(route.id, CloseReason::ReadError);
    }
}

#[test]
fn dedicated_route_needs_an_account_that_is_configured_for_it() {
    let mut simulation = pooled(1);
    for (name, size, answer, reason) in [
        (
            "A",
            3,
            "No route for account \"A\"",
            CloseReason::ProtocolViolation,
        ),
        (
            "nobody",
            3,
            "Unable to lookup account \"nobody\": account missing",
            CloseReason::MissingAccount,
        ),
        (
            "P",
            0,
            "Not possible to have a dedicated route for account \"P\" between those servers",
            CloseReason::ProtocolViolation,
        ),
    ] {
        let route = simulation.open_route_on(0, None);
        simulation.read(route);
        let line = pool_info("NA", size, &account(name));
        simulation.send(route, &(connect("NA") + &line));
        assert_eq!(simulation.read(route), format!("-ERR '{answer}'\r\n"));
        assert_eq!(simulation.is_ended(route), Some(reason), "{name}");
    }
}

#[test]
fn dialer_requests_what_its_route_is_to_carry() {
    let mut simulation = pooled(1);
    for (carries, key) in [
        (Carries::Slot(2), "\"route_pool_idx\":2"),
        (account("P"), "\"route_account\":\"P\""),
    ] {
        let dial = RouteDial {
            carries: carries.clone(),
            ..explicit()
        };
        let route = open(&mut simulation, &carries, Some(dial.clone()));
        simulation.send(route, &pool_info("NA", 3, &Carries::default()));
        let output = simulation.read(route);
        assert!(
            output.contains(key) && output.contains("\"route_pool_size\":3"),
            "{output}"
        );
        let second = open(&mut simulation, &carries, Some(dial.clone()));
        simulation.send(second, &pool_info("NA", 3, &Carries::default()));
        assert_eq!(
            simulation.outcome(second),
            RouteOutcome::Duplicate("NA".into())
        );
        // A peer without a pool has no such route.
        let third = open(&mut simulation, &carries, Some(dial));
        simulation.send(third, &info("NB"));
        assert_eq!(simulation.outcome(third), RouteOutcome::Superfluous);
    }
    let wrong = open(&mut simulation, &Carries::default(), Some(explicit()));
    simulation.send(wrong, &pool_info("NC", 3, &Carries::Slot(1)));
    assert_eq!(
        simulation.read(wrong),
        "-ERR 'Route pool index should not be set but is set to 1'\r\n"
    );
}

#[test]
fn further_routes_are_dialed_after_the_password_was_accepted() {
    for (size, expected) in [
        (0, None),
        (2, Some(3)),
        (5, Some(5)),
        (u32::MAX, Some(1024)),
    ] {
        let mut simulation = pooled(1);
        let route = open(&mut simulation, &Carries::default(), Some(explicit()));
        simulation.send(route, &pool_info("NA", size, &Carries::default()));
        let output = simulation.read(route);
        assert_eq!(output.ends_with("PING\r\n"), expected.is_some(), "{output}");
        let is_proven = |event: &RouteEvent| matches!(event, RouteEvent::Proven { .. });
        assert!(!simulation.events().iter().any(is_proven), "{size}");
        simulation.send(route, "PONG\r\nPONG\r\n");
        let proven = expected.map(|pool_size| RouteEvent::Proven {
            dial: 1,
            pool_size,
            accounts: vec!["P".into(), "$SYS".into()],
        });
        assert_eq!(simulation.events(), Vec::from_iter(proven), "{size}");
    }
}

#[test]
fn dedicated_route_of_a_peer_is_announced_to_the_others() {
    for shards in [1, 2, 4] {
        let mut simulation = pooled(shards);
        let others = ["$SYS", "P"].map(|name| accepted(&mut simulation, "NA", &account(name)));
        accepted(&mut simulation, "NB", &Carries::Slot(1));
        accepted(&mut simulation, "NB", &account("P"));
        let [none, output] = others.map(|route| simulation.read(route));
        assert!(!none.contains("INFO "), "{none}");
        let infos: Vec<RouteInfo> = (output.lines())
            .filter_map(|line| RouteInfo::parse(line.strip_prefix("INFO ")?.trim().as_bytes()))
            .collect();
        assert_eq!(infos.len(), 1, "{output}");
        assert_eq!(
            (&*infos[0].server_id, &*infos[0].route_account),
            ("NB", "P")
        );
        assert_eq!(infos[0].gossip_mode, GossipMode::Disabled);
    }
}

#[test]
fn gossip_about_dedicated_routes_of_own_accounts_is_reported() {
    let mut simulation = pooled(1);
    let route = accepted(&mut simulation, "NA", &account("P"));
    simulation.events();
    for name in ["P", "unknown"] {
        let place = "\"ip\":\"nats-route://10.0.0.3:6222/\",\"port\"";
        let gossip = pool_info("NC", 3, &account(name)).replace("\"port\"", place);
        simulation.send(route, &gossip);
    }
    assert_eq!(
        simulation.events(),
        [RouteEvent::Discovered {
            id: "NC".into(),
            url: "nats-route://10.0.0.3:6222/".into(),
            gossip_mode: GossipMode::Default,
            carries: account("P"),
        }]
    );
}
